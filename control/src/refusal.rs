//! Why a group did not form: [`Refusal`] travels, and is the same on every rank; [`JoinError`] is what one rank says.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use unisono_core::Rank;

/// Why a group could not form. Rank 0 finds it, or is told, and tells all who have come.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Ranks did not come in time.
    #[error("{} did not come within {} s", Ranks(.ranks), Seconds(.millis))]
    Missing {
        /// Who.
        ranks: Vec<Rank>,
        /// How long rank 0 waited, in milliseconds.
        millis: u64,
    },
    /// Ranks came, but did not connect to their peers in time.
    #[error("{} came, but did not connect within {} s", Ranks(.ranks), Seconds(.millis))]
    Unready {
        /// Who.
        ranks: Vec<Rank>,
        /// How long rank 0 waited, in milliseconds.
        millis: u64,
    },
    /// Two processes are the same rank.
    #[error("rank {rank} came twice: from {first} and from {second}")]
    Duplicate {
        /// Which.
        rank: Rank,
        /// The address of the one.
        first: String,
        /// The address of the other.
        second: String,
    },
    /// A rank that the group does not have.
    #[error("rank {rank} does not exist in a group of {size} (ranks 0 to {})", .size - 1)]
    OutOfRange {
        /// The rank.
        rank: Rank,
        /// Number of ranks.
        size: Rank,
    },
    /// Two ranks do not want the same group.
    #[error("ranks disagree on the {what}: {ours} at rank 0, {theirs} at rank {rank}")]
    Differs {
        /// The rank that is not as rank 0.
        rank: Rank,
        /// What differs: `size`, `job`, `wire version`, ...
        what: String,
        /// At rank 0.
        ours: String,
        /// At `rank`.
        theirs: String,
    },
    /// A rank went away after all had met.
    #[error("rank {rank} was lost while the group was connecting")]
    Lost {
        /// Who.
        rank: Rank,
    },
    /// A rank could not connect to its peers.
    #[error("rank {rank}: {text}")]
    Connect {
        /// Who.
        rank: Rank,
        /// What it says.
        text: String,
    },
}

/// Why this rank did not become part of a group.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The group did not form: every rank that came gets this same refusal.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The settings cannot be right.
    #[error("rank {rank}: {reason}")]
    Settings {
        /// This rank.
        rank: Rank,
        /// What is wrong.
        reason: String,
    },
    /// Somebody else listens at the coordinator's address.
    #[error(
        "rank 0 cannot listen at {coordinator}: the port is in use; choose another, or end what uses it"
    )]
    PortInUse {
        /// The coordinator.
        coordinator: String,
    },
    /// Rank 0 cannot listen at the coordinator's address.
    #[error("rank 0 cannot listen at {coordinator}: {error}")]
    Listen {
        /// The coordinator.
        coordinator: String,
        /// What the operating system says.
        error: Arc<io::Error>,
    },
    /// No rank 0 answered.
    #[error(
        "rank {rank}: coordinator {coordinator} did not answer within {} s: {last}",
        Seconds(.millis)
    )]
    Unreachable {
        /// This rank.
        rank: Rank,
        /// The coordinator.
        coordinator: String,
        /// How long it was tried, in milliseconds.
        millis: u64,
        /// What the last attempt met.
        last: String,
    },
    /// The network interface asked for cannot be used.
    #[error("rank {rank}: network interface {iface}: {reason}")]
    Interface {
        /// This rank.
        rank: Rank,
        /// The interface.
        iface: String,
        /// Why not.
        reason: String,
    },
    /// The file of the rendezvous cannot be written or read.
    #[error("rank {rank}: file {}: {error}", .path.display())]
    File {
        /// This rank.
        rank: Rank,
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        error: Arc<io::Error>,
    },
    /// No control thread could be started.
    #[error("rank {rank}: no control thread: {error}")]
    Thread {
        /// This rank.
        rank: Rank,
        /// What the operating system says.
        error: Arc<io::Error>,
    },
}

/// `rank 1, rank 2 and 7 more`.
pub(crate) struct Ranks<'a>(pub(crate) &'a [Rank]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 8;
        let named: Vec<String> = self.0.iter().map(|r| format!("rank {r}")).collect();
        match named.get(NAMED..) {
            Some(rest) if !rest.is_empty() => {
                write!(f, "{} and {} more", named[..NAMED].join(", "), rest.len())
            }
            _ => f.write_str(&named.join(", ")),
        }
    }
}

/// Milliseconds as people write seconds.
pub(crate) struct Seconds<'a>(pub(crate) &'a u64);

impl fmt::Display for Seconds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = *self.0 as f64 / 1000.0;
        // What was measured has more digits than anybody wants to read.
        if seconds < 10.0 {
            write!(f, "{}", (seconds * 100.0).round() / 100.0)
        } else {
            write!(f, "{}", seconds.round())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_named_and_many_are_counted() {
        let text = |ranks: Vec<Rank>| {
            let millis = 2500;
            Refusal::Missing { ranks, millis }.to_string()
        };
        assert_eq!(text(vec![1, 3]), "rank 1, rank 3 did not come within 2.5 s");
        let rounded = |millis: u64| Seconds(&millis).to_string();
        assert_eq!(
            [59_913, 60_000, 700, 1_234].map(rounded),
            ["60", "60", "0.7", "1.23"]
        );
        let many = text((1..=12).collect());
        assert!(many.contains("rank 8 and 4 more did"), "{many}");
    }
}
