//! The parser of overrides: left to right, one look ahead, every refusal with its place.

use std::str::FromStr;

use unisono_core::{Collective, Rank};

use super::{Entry, Tune};

/// What is wrong with an override.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("override, character {position}: {fault}")]
#[non_exhaustive]
pub struct TuneError {
    /// Where, in bytes from the beginning of the text.
    pub position: usize,
    /// What.
    pub fault: TuneFault,
}

/// What can be wrong with an override.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneFault {
    /// Something else must stand here.
    #[error("found {found}; expected {expected}")]
    Expected {
        /// What would do.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// No such collective.
    #[error("unknown collective `{name}`; known: *, {}", Collective::ALL.map(Collective::name).join(", "))]
    Collective {
        /// As it was given.
        name: String,
    },
    /// No such algorithm.
    #[error("unknown algorithm `{name}`; known: {known}")]
    Algorithm {
        /// As it was given.
        name: String,
        /// The known names, comma separated.
        known: String,
    },
    /// No such transport.
    #[error("unknown transport `{name}`; known: {}", TRANSPORTS.join(", "))]
    Transport {
        /// As it was given.
        name: String,
    },
    /// No such parameter.
    #[error("unknown parameter `{name}`; known: channels, segments")]
    Parameter {
        /// As it was given.
        name: String,
    },
    /// A parameter named twice.
    #[error("parameter `{name}` stands twice")]
    Twice {
        /// The parameter.
        name: &'static str,
    },
    /// A number that is out of range.
    #[error("{what} is {text}; expected {least} to {most}")]
    Range {
        /// Of what.
        what: &'static str,
        /// As it was given.
        text: String,
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// Nothing lies in a range.
    #[error("no {what} is in {lo}-{hi}")]
    Empty {
        /// Of what: `size`, `number of ranks`.
        what: &'static str,
        /// The lower end.
        lo: u64,
        /// The upper end.
        hi: u64,
    },
    /// Neither an algorithm nor a transport.
    #[error("nothing is asked for; expected an algorithm, @transport, or both")]
    Nothing,
    /// An exclusion with parameters.
    #[error("`^` excludes an algorithm whole; expected no parameters")]
    ExcludedVariant,
}

/// Names that a transport may have.
const TRANSPORTS: [&str; 6] = ["rdma", "tcp", "rdma+tcp", "inproc", "shm", "sim"];

impl FromStr for Tune {
    type Err = TuneError;

    fn from_str(text: &str) -> Result<Tune, TuneError> {
        let mut entries = Vec::new();
        let mut start = 0;
        for part in text.split(';') {
            let entry = part.trim();
            let position = start + (part.len() - part.trim_start().len());
            if !entry.is_empty() {
                let mut scanner = Scanner {
                    text: entry,
                    at: 0,
                    base: position,
                };
                entries.push(scanner.entry()?);
            }
            start += part.len() + 1;
        }
        Ok(Tune { entries })
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    base: usize,
}

impl<'a> Scanner<'a> {
    fn entry(&mut self) -> Result<Entry, TuneError> {
        let position = self.base;
        let collective = self.collective()?;
        let (mut lo, mut hi, mut least_ranks, mut most_ranks) = (None, None, None, None);
        if self.take(":") {
            let from = self.at;
            lo = self.size()?;
            self.need("-", "a range of sizes, such as 4K-1M, 4K- or -1M")?;
            hi = self.size()?;
            if let (Some(lo), Some(hi)) = (lo, hi)
                && lo >= hi
            {
                let what = "size";
                return Err(self.fault(from, TuneFault::Empty { what, lo, hi }));
            }
        }
        if self.take("@") {
            self.need("ranks=", "@ranks=a-b before the =")?;
            let from = self.at;
            least_ranks = self.ranks()?;
            self.need("-", "numbers of ranks, such as 2-8, 2- or -8")?;
            most_ranks = self.ranks()?;
            if let (Some(lo), Some(hi)) = (least_ranks, most_ranks)
                && lo > hi
            {
                let (what, lo, hi) = ("number of ranks", lo.into(), hi.into());
                return Err(self.fault(from, TuneFault::Empty { what, lo, hi }));
            }
        }
        self.need("=", "`=`")?;
        let mut entry = Entry {
            collective,
            lo,
            hi,
            least_ranks,
            most_ranks,
            exclude: self.take("^"),
            algorithm: None,
            channels: None,
            segments: None,
            transport: None,
            position,
        };
        self.wanted(&mut entry)?;
        Ok(entry)
    }

    fn collective(&mut self) -> Result<Option<Collective>, TuneError> {
        if self.take("*") {
            return Ok(None);
        }
        let from = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.expected("a collective, or * for any"));
        }
        let known = name.parse().map(Some);
        known.map_err(|_| self.fault(from, TuneFault::Collective { name: name.into() }))
    }

    /// What stands behind `=`.
    fn wanted(&mut self, entry: &mut Entry) -> Result<(), TuneError> {
        let from = self.at;
        let name = self.word();
        if !name.is_empty() {
            entry.algorithm = Some(name.to_owned());
            let parenthesis = self.at;
            if self.take("(") {
                self.params(entry)?;
                if entry.exclude {
                    return Err(self.fault(parenthesis, TuneFault::ExcludedVariant));
                }
            }
        }
        if self.take("@") {
            let from = self.at;
            let name = self.word();
            if !TRANSPORTS.contains(&name) {
                return Err(self.fault(from, TuneFault::Transport { name: name.into() }));
            }
            entry.transport = Some(name.to_owned());
        }
        if self.at < self.text.len() {
            return Err(self.expected(match (&entry.algorithm, &entry.transport) {
                (_, Some(_)) => "the end of the entry, or `;`",
                (Some(_), None) => "(params), @transport, the end of the entry, or `;`",
                _ => "an algorithm, or @transport",
            }));
        }
        if entry.algorithm.is_none() && entry.transport.is_none() {
            return Err(self.fault(from, TuneFault::Nothing));
        }
        Ok(())
    }

    fn params(&mut self, entry: &mut Entry) -> Result<(), TuneError> {
        loop {
            let from = self.at;
            let name = match self.word() {
                "channels" => "channels",
                "segments" => "segments",
                "" => return Err(self.expected("a parameter: channels=N or segments=N")),
                name => {
                    return Err(self.fault(from, TuneFault::Parameter { name: name.into() }));
                }
            };
            self.need("=", "`=` and a number")?;
            let most = if name == "channels" { 256 } else { 65_536 };
            let value = self.number(name, 1, most)?;
            let twice = match name {
                "channels" => entry.channels.replace(value as u16).is_some(),
                _ => entry.segments.replace(value).is_some(),
            };
            if twice {
                return Err(self.fault(from, TuneFault::Twice { name }));
            }
            if self.take(")") {
                return Ok(());
            }
            self.need(",", "`,` or `)`")?;
        }
    }

    /// A size, or nothing.
    fn size(&mut self) -> Result<Option<u64>, TuneError> {
        if !self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let from = self.at;
        let number = self.digits();
        let shift = match self.rest().chars().next() {
            Some('K') => 10,
            Some('M') => 20,
            Some('G') => 30,
            _ => 0,
        };
        self.at += usize::from(shift > 0);
        let bytes = number.parse::<u64>().ok();
        let bytes = bytes.and_then(|n| n.checked_mul(1 << shift));
        let text = self.text[from..self.at].to_owned();
        bytes.map(Some).ok_or_else(|| {
            self.fault(
                from,
                TuneFault::Range {
                    what: "the size",
                    text,
                    least: 0,
                    most: u64::MAX,
                },
            )
        })
    }

    /// A number of ranks, or nothing.
    fn ranks(&mut self) -> Result<Option<Rank>, TuneError> {
        if !self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let most = Rank::MAX.into();
        let ranks = self.number("the number of ranks", 1, most)?;
        Ok(Some(ranks as Rank))
    }

    fn number(&mut self, what: &'static str, least: u64, most: u64) -> Result<u64, TuneError> {
        let from = self.at;
        let text = self.digits();
        if text.is_empty() {
            return Err(self.expected("a number"));
        }
        let value = text.parse().ok();
        value.filter(|n| (least..=most).contains(n)).ok_or_else(|| {
            let text = text.to_owned();
            self.fault(
                from,
                TuneFault::Range {
                    what,
                    text,
                    least,
                    most,
                },
            )
        })
    }

    fn digits(&mut self) -> &'a str {
        self.while_in(|c| c.is_ascii_digit())
    }

    /// A name, as algorithms, collectives and transports have them.
    fn word(&mut self) -> &'a str {
        self.while_in(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
    }

    fn while_in(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !of(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, what: &str) -> bool {
        let there = self.rest().starts_with(what);
        if there {
            self.at += what.len();
        }
        there
    }

    fn need(&mut self, what: &str, expected: &'static str) -> Result<(), TuneError> {
        match self.take(what) {
            true => Ok(()),
            false => Err(self.expected(expected)),
        }
    }

    fn expected(&self, expected: &'static str) -> TuneError {
        let found = match self.rest().chars().next() {
            None => "the end of the entry".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        self.fault(self.at, TuneFault::Expected { expected, found })
    }

    fn fault(&self, at: usize, fault: TuneFault) -> TuneError {
        TuneError {
            position: self.base + at,
            fault,
        }
    }
}
