//! From text to faults.

use std::str::FromStr;

use unisono_core::Rank;

use super::{Cable, Fault, Mishap, Part};

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// No word at all.
    #[error("an empty fault; known are {KINDS}")]
    Empty,
    /// A kind of fault that does not exist.
    #[error("fault `{kind}` does not exist; known are {KINDS}")]
    UnknownKind {
        /// What was written.
        kind: String,
    },
    /// A word that is not `key=value`.
    #[error("fault `{kind}`: `{word}` is not key=value")]
    NotAssignment {
        /// The kind of fault.
        kind: String,
        /// What was written.
        word: String,
    },
    /// A key that this kind of fault has not.
    #[error("fault `{kind}` has no `{key}`; it takes {}", .known.join(", "))]
    UnknownKey {
        /// The kind of fault.
        kind: String,
        /// What was written.
        key: String,
        /// The keys it has.
        known: Vec<&'static str>,
    },
    /// A key twice.
    #[error("fault `{kind}`: `{key}` is given twice")]
    RepeatedKey {
        /// The kind of fault.
        kind: String,
        /// The key.
        key: String,
    },
    /// A key is missing.
    #[error("fault `{kind}` needs `{key}`")]
    MissingKey {
        /// The kind of fault.
        kind: String,
        /// The key.
        key: &'static str,
    },
    /// A value cannot be read.
    #[error("fault `{kind}`: `{key}={value}` must be {expected}")]
    BadValue {
        /// The kind of fault.
        kind: String,
        /// The key.
        key: &'static str,
        /// What was written.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}

const KINDS: &str = "crash, stall, down, slow, drop, duplicate, corrupt, delay, oneway, loss";

const TIME: &str = "a time such as 100us (ns, us, ms or s)";

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let mut words = text.split_whitespace();
        let kind = words.next().ok_or(FaultError::Empty)?;
        let (needed, optional): (&[&'static str], &[&'static str]) = match kind {
            "crash" => (&["rank", "at"], &[]),
            "stall" => (&["rank", "at", "for"], &[]),
            "down" => (&["link", "at"], &["up"]),
            "slow" => (&["link", "factor"], &["at"]),
            "drop" | "duplicate" => (&["link", "nth"], &[]),
            "corrupt" => (&["link", "nth"], &["part"]),
            "delay" => (&["link", "nth", "by"], &[]),
            "oneway" => (&["link", "at"], &[]),
            "loss" => (&["link", "rate"], &[]),
            _ => {
                let kind = kind.to_owned();
                return Err(FaultError::UnknownKind { kind });
            }
        };
        let words = Words::read(kind, words, needed, optional)?;
        let link = || words.cable("link");
        let at = || words.time("at");
        let nth = |what| -> Result<Fault, FaultError> {
            let link = link()?;
            let nth = words.nth("nth")?;
            Ok(Fault::Message { link, nth, what })
        };
        match kind {
            "crash" => Ok(Fault::Crash {
                rank: words.rank("rank")?,
                at_ps: at()?,
            }),
            "stall" => Ok(Fault::Stall {
                rank: words.rank("rank")?,
                at_ps: at()?,
                for_ps: words.time("for")?,
            }),
            "down" => {
                let (link, at_ps) = (link()?, at()?);
                let up_ps = words.has("up").then(|| words.time("up")).transpose()?;
                if up_ps.is_some_and(|up| up <= at_ps) {
                    return Err(words.bad("up", "later than `at`"));
                }
                Ok(Fault::Down { link, at_ps, up_ps })
            }
            "slow" => Ok(Fault::Slow {
                link: link()?,
                factor: words.number("factor", "a number above 0", |x| x > 0.0)?,
                at_ps: if words.has("at") { at()? } else { 0 },
            }),
            "drop" => nth(Mishap::Drop),
            "duplicate" => nth(Mishap::Duplicate),
            "corrupt" => nth(Mishap::Corrupt(match words.value("part") {
                "" | "payload" => Part::Payload,
                "frame" => Part::Frame,
                _ => return Err(words.bad("part", "`payload` or `frame`")),
            })),
            "delay" => nth(Mishap::Delay(words.time("by")?)),
            "oneway" => match link()? {
                Cable {
                    a,
                    b,
                    one_way: true,
                } => Ok(Fault::OneWay {
                    from: a,
                    to: b,
                    at_ps: at()?,
                }),
                _ => Err(words.bad("link", "a direction such as 0>1")),
            },
            _ => Ok(Fault::Loss {
                link: link()?,
                rate: words.number("rate", "a number from 0 to 1", |x| (0.0..=1.0).contains(&x))?,
            }),
        }
    }
}

/// The assignments of a fault.
struct Words<'a> {
    kind: &'a str,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn read(
        kind: &'a str,
        words: impl Iterator<Item = &'a str>,
        needed: &[&'static str],
        optional: &[&'static str],
    ) -> Result<Words<'a>, FaultError> {
        let mut values: Vec<(&str, &str)> = Vec::new();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(FaultError::NotAssignment {
                    kind: kind.to_owned(),
                    word: word.to_owned(),
                });
            };
            if !needed.contains(&key) && !optional.contains(&key) {
                return Err(FaultError::UnknownKey {
                    kind: kind.to_owned(),
                    key: key.to_owned(),
                    known: [needed, optional].concat(),
                });
            }
            if values.iter().any(|(known, _)| *known == key) {
                return Err(FaultError::RepeatedKey {
                    kind: kind.to_owned(),
                    key: key.to_owned(),
                });
            }
            values.push((key, value));
        }
        for &key in needed {
            if !values.iter().any(|(known, _)| *known == key) {
                let kind = kind.to_owned();
                return Err(FaultError::MissingKey { kind, key });
            }
        }
        Ok(Words { kind, values })
    }

    fn has(&self, key: &str) -> bool {
        self.values.iter().any(|(known, _)| *known == key)
    }

    fn value(&self, key: &str) -> &'a str {
        let found = self.values.iter().find(|(known, _)| *known == key);
        found.map_or("", |(_, value)| value)
    }

    fn bad(&self, key: &'static str, expected: &'static str) -> FaultError {
        FaultError::BadValue {
            kind: self.kind.to_owned(),
            key,
            value: self.value(key).to_owned(),
            expected,
        }
    }

    fn rank(&self, key: &'static str) -> Result<Rank, FaultError> {
        whole(self.value(key)).ok_or_else(|| self.bad(key, "a rank such as 2"))
    }

    fn nth(&self, key: &'static str) -> Result<u64, FaultError> {
        whole(self.value(key))
            .filter(|nth| *nth > 0)
            .ok_or_else(|| self.bad(key, "a number from 1 on"))
    }

    fn cable(&self, key: &'static str) -> Result<Cable, FaultError> {
        let value = self.value(key);
        let two_ways = value.split_once('-').map(|ends| (ends, false));
        let found = two_ways.or_else(|| value.split_once('>').map(|ends| (ends, true)));
        found
            .and_then(|((a, b), one_way)| {
                let (a, b) = (whole(a)?, whole(b)?);
                (a != b).then_some(Cable { a, b, one_way })
            })
            .ok_or_else(|| self.bad(key, "two different ranks such as 0-1 or 0>1"))
    }

    fn time(&self, key: &'static str) -> Result<u64, FaultError> {
        picoseconds(self.value(key)).ok_or_else(|| self.bad(key, TIME))
    }

    fn number(
        &self,
        key: &'static str,
        expected: &'static str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<f64, FaultError> {
        let number = self.value(key).parse().ok();
        number
            .filter(|x: &f64| x.is_finite() && fits(*x))
            .ok_or_else(|| self.bad(key, expected))
    }
}

/// A number written in digits only.
fn whole<N: FromStr>(text: &str) -> Option<N> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// `1.5ms` in picoseconds, exactly; below a picosecond is cut off.
fn picoseconds(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let scale: u64 = match unit {
        "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        _ => return None,
    };
    let (before, after) = number.split_once('.').unwrap_or((number, "0"));
    let mut time = whole::<u64>(before)?.checked_mul(scale)?;
    let mut part = scale;
    for digit in after.bytes() {
        part /= 10;
        time = time.checked_add(u64::from(digit.checked_sub(b'0').filter(|d| *d < 10)?) * part)?;
    }
    (!after.is_empty()).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_the_grammar_is_read_and_written_back() {
        for text in [
            "crash rank=2 at=100us",
            "stall rank=3 at=0us for=20ms",
            "down link=0-1 at=1ms",
            "down link=0-1 at=1ms up=2ms",
            "slow link=2-3 factor=0.1",
            "slow link=2>3 factor=0.1 at=7ns",
            "drop link=0-1 nth=3",
            "duplicate link=0-1 nth=3",
            "corrupt link=0-1 nth=3",
            "corrupt link=0-1 nth=3 part=frame",
            "delay link=0-1 nth=3 by=1ms",
            "oneway link=0>1 at=1ms",
            "loss link=0-1 rate=0.01",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        let cases = [
            ("", "an empty fault; known are crash, stall"),
            ("explode rank=1", "fault `explode` does not exist; known"),
            ("crash rank=1", "fault `crash` needs `at`"),
            ("crash rank=-1 at=1s", "`rank=-1` must be a rank such as 2"),
            ("crash rank=1 at=100", "`at=100` must be a time such as"),
            ("crash rank=1 at=1.s", "`at=1.s` must be a time such as"),
            ("crash rank=1 rank=2 at=1s", "`rank` is given twice"),
            ("crash rank=1 at=1s x=1", "has no `x`; it takes rank, at"),
            ("crash rank=1 now", "`now` is not key=value"),
            ("down link=1-1 at=1s", "must be two different ranks"),
            ("down link=0-1 at=2s up=1s", "must be later than `at`"),
            ("slow link=0-1 factor=0", "must be a number above 0"),
            ("slow link=0-1 factor=NaN", "must be a number above 0"),
            ("loss link=0-1 rate=1.5", "must be a number from 0 to 1"),
            ("drop link=0-1 nth=0", "must be a number from 1 on"),
            ("oneway link=0-1 at=1s", "must be a direction such as 0>1"),
            ("crash rank=1 at=99999999999s", "must be a time such as"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
