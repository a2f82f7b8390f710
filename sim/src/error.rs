//! How a simulated run can end badly.

use std::fmt;
use std::time::Duration;

use unisono_control::Cause;
use unisono_core::Rank;

/// How a simulated run ended, if not well. One line when shown.
///
/// What a *group* reports ([`unisono::Error`]) is the program's to handle and comes back in its results; this is what
/// the simulator says beside it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// Nothing can happen any more, and ranks are waiting.
    #[error("deadlock at {}: {deadlock}", Micros(*.at_ps))]
    Deadlock {
        /// When, in picoseconds.
        at_ps: u64,
        /// Who waits for whom.
        deadlock: Deadlock,
    },
    /// A rank awaits something that is no operation of its group; nothing in virtual time can wake it.
    #[error(
        "rank {rank} awaits something that is no operation of its group: only those can be awaited inside \
         Cluster::run"
    )]
    Foreign {
        /// The rank.
        rank: Rank,
    },
    /// A rank called a blocking operation that would have had to wait inside [`Cluster::run`](crate::Cluster::run).
    #[error(
        "rank {rank} blocks inside Cluster::run: await operations started by Group::start, or use \
         Cluster::run_blocking"
    )]
    Blocking {
        /// The rank.
        rank: Rank,
    },
    /// The thread of a rank did not come back to its group for long in real time: it waits for something else, and so
    /// keeps the turn from all others (or it computes longer than [`Cluster::turn_limit`](crate::Cluster::turn_limit)).
    #[error(
        "the thread of rank {rank} has not come back to its group for {limit:?}: inside Cluster::run_blocking it may \
         wait in calls of the group only"
    )]
    Held {
        /// The rank.
        rank: Rank,
        /// What was waited for, in real time.
        limit: Duration,
    },
    /// A rank panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank.
        rank: Rank,
        /// What the panic said.
        message: String,
    },
    /// The group failed: the first cause, which every rank got.
    #[error("{0}")]
    Failed(Cause),
    /// The world cannot be built as asked.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Why a world cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A fault at a rank that does not exist.
    #[error("fault `{fault}`: rank {rank} does not exist in a group of {size} (ranks 0 to {})", .size.saturating_sub(1))]
    NoSuchRank {
        /// The fault, as it is written.
        fault: String,
        /// The rank.
        rank: Rank,
        /// Number of ranks.
        size: Rank,
    },
    /// A fault at a link that does not exist.
    #[error("fault `{fault}`: ranks {a} and {b} have no link")]
    NoSuchLink {
        /// The fault, as it is written.
        fault: String,
        /// One end.
        a: Rank,
        /// The other end.
        b: Rank,
    },
    /// A topology without ranks.
    #[error("a group needs at least one rank")]
    NoRanks,
    /// A group could not be made of its parts.
    #[error("rank {rank}: {text}")]
    Group {
        /// The rank.
        rank: Rank,
        /// What it said.
        text: String,
    },
}

/// Who waits for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The chain, each waiting for the next.
    pub chain: Vec<Wait>,
    /// How the chain ends.
    pub end: End,
    /// Messages that faults had taken off the wire.
    pub lost: u64,
}

/// One rank's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub rank: Rank,
    /// For whom.
    pub peer: Rank,
    /// For a message of the peer, or for the peer to receive one.
    pub kind: WaitKind,
    /// The operation, as frames number it.
    pub operation: u64,
    /// The message of the operation on that FIFO.
    pub step: u32,
}

/// What a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// A message that has not come.
    Recv,
    /// A receive that was not posted, where unposted receives block.
    Send,
}

/// How a chain of waits ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In the rank named here, which stands in the chain already: a cycle.
    Cycle(Rank),
    /// In a rank that has ended.
    Ended(Rank),
    /// In a rank that has crashed.
    Crashed(Rank),
    /// In a rank that waits for nothing that messages could bring.
    Idle(Rank),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait {
            rank,
            peer,
            operation,
            step,
            ..
        } = self;
        let kind = match self.kind {
            WaitKind::Recv => "recv from",
            WaitKind::Send => "send to",
        };
        write!(
            f,
            "rank {rank} waits {kind} rank {peer} (op {operation}, step {step})"
        )
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wait in &self.chain {
            write!(f, "{wait} -> ")?;
        }
        match self.end {
            End::Cycle(rank) => write!(f, "rank {rank}")?,
            End::Ended(rank) => write!(f, "rank {rank} has ended")?,
            End::Crashed(rank) => write!(f, "rank {rank} has crashed")?,
            End::Idle(rank) => write!(f, "rank {rank} waits for no message")?,
        }
        match self.lost {
            0 => Ok(()),
            1 => write!(f, "; 1 message was lost"),
            lost => write!(f, "; {lost} messages were lost"),
        }
    }
}

/// A time in picoseconds as people read it.
pub(crate) struct Micros(pub(crate) u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 / 1000;
        write!(f, "{}.{:03} us", nanos / 1000, nanos % 1000)
    }
}
