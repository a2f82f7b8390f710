//! [`Tune`]: what somebody wants otherwise. One grammar for `UNISONO_TUNE`, files and builders.
//!
//! ```text
//! entry ; entry ; ...          spaces around `;` are ignored, the last entry that matches wins whole
//!
//! entry:  collective [:lo-hi] [@ranks=a-b] = [^] [algorithm [(params)]] [@transport]
//!
//!         collective   a name, or * for any
//!         :lo-hi       lo <= bytes < hi; either may be empty; K, M and G are powers of 1024
//!         @ranks=a-b   groups of a to b ranks, both included; either may be empty
//!         ^            not this one
//!         params       channels=N,segments=N
//! ```
//!
//! At least one of algorithm and transport stands behind `=`. `bytes` is the larger buffer of the call, as `unisono bench`
//! counts it. "Wins whole" means that entries never add up: of two that match, the earlier one does not count at all.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_select::Tune;
//!
//! let tune: Tune = "*=^ring; all_reduce:0-32K=mesh-oneshot; broadcast=@tcp".parse()?;
//! let entry = tune.find(Collective::AllReduce, 1024, 4).unwrap();
//! assert_eq!(entry.algorithm.as_deref(), Some("mesh-oneshot"));
//! let entry = tune.find(Collective::AllReduce, 32 * 1024, 4).unwrap();
//! assert!(entry.exclude && entry.algorithm.as_deref() == Some("ring"));
//!
//! let error = "broadcast=ring; all_reduce:32K-4K=tree".parse::<Tune>().unwrap_err();
//! assert_eq!(error.position, 27);
//! # Ok::<(), unisono_select::TuneError>(())
//! ```

mod parse;

use std::fmt;

use unisono_core::{Collective, Rank};

pub use parse::{TuneError, TuneFault};

/// Overrides, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tune {
    entries: Vec<Entry>,
}

/// One override.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Of this collective; `None`: of any.
    pub collective: Option<Collective>,
    /// From so many bytes on.
    pub lo: Option<u64>,
    /// Below so many bytes.
    pub hi: Option<u64>,
    /// In groups of at least so many ranks.
    pub least_ranks: Option<Rank>,
    /// In groups of at most so many ranks.
    pub most_ranks: Option<Rank>,
    /// What follows is excluded instead of asked for.
    pub exclude: bool,
    /// Name of an algorithm.
    pub algorithm: Option<String>,
    /// Its copies side by side.
    pub channels: Option<u16>,
    /// Segments of every step.
    pub segments: Option<u64>,
    /// Name of a transport.
    pub transport: Option<String>,
    /// Where the entry begins, in bytes of the text.
    pub position: usize,
}

impl Tune {
    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry that decides a call: the last one that matches.
    pub fn find(&self, collective: Collective, bytes: u64, ranks: Rank) -> Option<&Entry> {
        let mut last_first = self.entries.iter().rev();
        last_first.find(|e| e.matches(collective, bytes, ranks))
    }

    /// Every algorithm that is named, known or not.
    ///
    /// # Errors
    /// The first name that `known` does not know, with its place.
    pub fn check<'a>(
        &self,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Result<(), TuneError> {
        for entry in &self.entries {
            let Some(name) = &entry.algorithm else {
                continue;
            };
            if !known.clone().into_iter().any(|k| k == name) {
                let all: Vec<&str> = known.into_iter().collect();
                return Err(TuneError {
                    position: entry.position,
                    fault: TuneFault::Algorithm {
                        name: name.clone(),
                        known: all.join(", "),
                    },
                });
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Whether the entry speaks of such a call.
    pub fn matches(&self, collective: Collective, bytes: u64, ranks: Rank) -> bool {
        self.collective.is_none_or(|c| c == collective)
            && self.lo.is_none_or(|lo| lo <= bytes)
            && self.hi.is_none_or(|hi| bytes < hi)
            && self.least_ranks.is_none_or(|a| a <= ranks)
            && self.most_ranks.is_none_or(|b| ranks <= b)
    }
}

impl fmt::Display for Tune {
    /// In the form that reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, entry) in self.entries.iter().enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            write!(f, "{separator}{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.collective.map_or("*", Collective::name))?;
        if self.lo.is_some() || self.hi.is_some() {
            write!(f, ":{}-{}", size(self.lo), size(self.hi))?;
        }
        if self.least_ranks.is_some() || self.most_ranks.is_some() {
            let text = |n: Option<Rank>| n.map_or_else(String::new, |n| n.to_string());
            write!(
                f,
                "@ranks={}-{}",
                text(self.least_ranks),
                text(self.most_ranks)
            )?;
        }
        f.write_str(if self.exclude { "=^" } else { "=" })?;
        f.write_str(self.algorithm.as_deref().unwrap_or(""))?;
        let channels = self.channels.map(|n| format!("channels={n}"));
        let segments = self.segments.map(|n| format!("segments={n}"));
        let params: Vec<String> = channels.into_iter().chain(segments).collect();
        if !params.is_empty() {
            write!(f, "({})", params.join(","))?;
        }
        match &self.transport {
            Some(transport) => write!(f, "@{transport}"),
            None => Ok(()),
        }
    }
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
        None => String::new(),
        Some(n) if n > 0 && n % (1 << 30) == 0 => format!("{}G", n >> 30),
        Some(n) if n > 0 && n % (1 << 20) == 0 => format!("{}M", n >> 20),
        Some(n) if n > 0 && n % (1 << 10) == 0 => format!("{}K", n >> 10),
        Some(n) => n.to_string(),
    }
}

#[cfg(test)]
mod tests;
