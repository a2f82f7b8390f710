//! [`Network`]: what links, shared segments and cores cost.
//!
//! The same figures as the evaluator's [`Links`], which [`Network::links`] gives, and beside them what the evaluator
//! does not know: segments (a switch, a bus) that several links share.
//!
//! ```
//! use unisono_sim::Network;
//!
//! // 5 us and 5 GB/s per direction; every message costs either core half a microsecond.
//! let network = Network::uniform(5_000, 5_000_000_000).with_overhead_ns(500);
//! assert_eq!(network.links().cost(0, 1).alpha_ns, 5_000);
//! ```

use unisono_core::Rank;
use unisono_evaluator::{LinkCost, Links};

/// What links, shared segments and cores cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    links: Links,
    overhead_ns: u64,
    gamma: Option<u64>,
    segments: Vec<Segment>,
}

/// Something that several links pass through.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    /// Bytes per second.
    rate: u64,
    /// Directed links, as (from, to); empty: all.
    members: Vec<(Rank, Rank)>,
}

impl Network {
    /// All directed links alike: `alpha_ns` nanoseconds of latency, `beta` bytes per second (0: infinitely fast); cores
    /// cost nothing.
    pub fn uniform(alpha_ns: u64, beta: u64) -> Network {
        Network {
            links: Links::uniform(alpha_ns, beta),
            overhead_ns: 0,
            gamma: None,
            segments: Vec::new(),
        }
    }

    /// The same with another cost from `from` to `to`, one way.
    #[must_use]
    pub fn with_link(mut self, from: Rank, to: Rank, cost: LinkCost) -> Network {
        self.links = self.links.with_link(from, to, cost);
        self
    }

    /// The same where every message costs `nanoseconds` of its sender's core and of its receiver's core.
    #[must_use]
    pub fn with_overhead_ns(mut self, nanoseconds: u64) -> Network {
        self.links = self.links.with_overhead_ns(nanoseconds);
        self.overhead_ns = nanoseconds;
        self
    }

    /// The same where a core reduces or copies `gamma` bytes per second (of each operand beside the first).
    #[must_use]
    pub fn with_reduce_rate(mut self, gamma: u64) -> Network {
        self.links = self.links.with_reduce_rate(gamma);
        self.gamma = Some(gamma);
        self
    }

    /// The same where these directed links (none: all) pass through one segment of `rate` bytes per second: a bus, a
    /// hub, the fabric of a switch. A message occupies it for its bytes, whole messages one after the other.
    #[must_use]
    pub fn with_segment(
        mut self,
        rate: u64,
        members: impl IntoIterator<Item = (Rank, Rank)>,
    ) -> Network {
        let members = members.into_iter().collect();
        self.segments.push(Segment { rate, members });
        self
    }

    /// What the evaluator knows of it.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Whether links share anything: then the evaluator's time is a lower bound only.
    pub fn is_shared(&self) -> bool {
        !self.segments.is_empty()
    }

    pub(crate) fn overhead_ps(&self) -> u64 {
        self.overhead_ns.saturating_mul(1000)
    }

    /// Picoseconds that a core takes to reduce or copy `bytes`.
    pub(crate) fn compute_ps(&self, bytes: u64) -> u64 {
        match self.gamma {
            Some(beta) => LinkCost { alpha_ns: 0, beta }.transfer_ps(bytes),
            None => 0,
        }
    }

    /// Rate of every segment, in bytes per second.
    pub(crate) fn segment_rates(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.iter().map(|segment| segment.rate)
    }

    /// Segments that messages from `from` to `to` pass through.
    pub(crate) fn segments_of(&self, from: Rank, to: Rank) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.segments).filter_map(move |(index, s)| {
            (s.members.is_empty() || s.members.contains(&(from, to))).then_some(index)
        })
    }
}

impl Default for Network {
    /// RDMA over one Thunderbolt 5 cable: 5 us and 5 GB/s per direction (40 Gb/s, the lower of what is reported), 2 us of
    /// either core for every message, and 20 GB/s to reduce.
    fn default() -> Network {
        Network::uniform(5_000, 5_000_000_000)
            .with_overhead_ns(2_000)
            .with_reduce_rate(20_000_000_000)
    }
}
