//! Why a group failed, in a form that travels.

pub(crate) mod stalled;

use std::fmt;

use unisono_core::Rank;

/// An operation as people count them: the name of the exchange, and its number in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation {
    /// `all_reduce`, `send`, ...
    pub name: &'static str,
    /// Number of collectives that the rank had started before, from 0.
    pub sequence: u64,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.name, self.sequence)
    }
}

/// Why a group failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub struct Cause {
    /// The rank that noticed.
    pub origin: Rank,
    /// What it was doing.
    pub operation: Option<Operation>,
    /// What it noticed.
    pub kind: Kind,
}

/// What a rank noticed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The link to a peer closed in the middle of an operation.
    Lost {
        /// The peer.
        rank: Rank,
    },
    /// A peer called something else.
    Mismatch {
        /// The peer.
        rank: Rank,
        /// What differs: `count`, `dtype`, ...
        field: String,
        /// At the rank that noticed.
        mine: String,
        /// At the peer.
        theirs: String,
    },
    /// An operation was not done in time.
    Deadline {
        /// The time it had, in milliseconds.
        millis: u64,
        /// The peers it still waited for.
        waiting_for: Vec<Rank>,
    },
    /// The rank left while operations of its own were under way.
    Left,
    /// The rank panicked inside a call.
    Panicked,
    /// Anything else, in words.
    Other {
        /// The words.
        text: String,
    },
}

impl Cause {
    /// A cause noticed by `origin`.
    pub fn new(origin: Rank, operation: Option<Operation>, kind: Kind) -> Cause {
        Cause {
            origin,
            operation,
            kind,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin;
        match &self.kind {
            Kind::Lost { rank } => write!(f, "rank {rank} was lost")?,
            Kind::Mismatch {
                rank,
                field,
                mine,
                theirs,
            } => write!(
                f,
                "ranks disagree on {field}: {mine} at rank {origin}, {theirs} at rank {rank}"
            )?,
            Kind::Deadline {
                millis,
                waiting_for,
            } => {
                let seconds = *millis as f64 / 1000.0;
                write!(f, "rank {origin} gave up after {seconds} s")?;
                let ranks: Vec<String> = waiting_for.iter().map(|r| format!("rank {r}")).collect();
                if !ranks.is_empty() {
                    write!(f, " waiting for {}", ranks.join(", "))?;
                }
            }
            Kind::Left => write!(f, "rank {origin} left the group")?,
            Kind::Panicked => write!(f, "rank {origin} panicked")?,
            Kind::Other { text } => write!(f, "rank {origin}: {text}")?,
        }
        match &self.operation {
            Some(operation) => write!(f, " during {operation}"),
            None => Ok(()),
        }
    }
}
