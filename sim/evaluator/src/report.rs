//! What an evaluation says.

use std::fmt;

use unisono_core::Rank;

/// What a set of programs costs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// When each rank is done, in picoseconds.
    pub time_ps: Vec<u64>,
    /// When the last rank is done, in picoseconds.
    pub total_ps: u64,
    /// The critical path, first hop first: each hop ended when the next could start (a latency later where it is a
    /// message). `None` for programs with more steps than `Call::path_limit`.
    pub path: Option<Vec<Hop>>,
    /// Every directed link that the programs use, by sender and receiver.
    pub links: Vec<LinkLoad>,
    /// Messages on all links; skipped empty ones do not count.
    pub messages: u64,
    /// Steps, counted in segments.
    pub steps: u64,
    /// The link that is occupied longest (the first of several).
    pub bottleneck: Option<LinkLoad>,
}

impl Report {
    /// The total in seconds.
    pub fn seconds(&self) -> f64 {
        self.total_ps as f64 * 1e-12
    }

    /// Bytes on all links.
    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|l| l.bytes).sum()
    }
}

/// What one directed link carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLoad {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// Payload bytes.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
    /// Picoseconds that it was occupied.
    pub busy_ps: u64,
}

impl fmt::Display for LinkLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(
            f,
            "link {from}-{to}: {} bytes in {} messages",
            self.bytes, self.messages
        )
    }
}

/// One step on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The rank.
    pub rank: Rank,
    /// Index of the lane in its program.
    pub lane: u32,
    /// Step of the lane.
    pub step: u64,
    /// Segment of the step.
    pub segment: u64,
    /// When it was complete, in picoseconds.
    pub done_ps: u64,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank {} lane {} step {} segment {} at {} ns",
            self.rank,
            self.lane,
            self.step,
            self.segment,
            self.done_ps / 1000
        )
    }
}
