//! What links and cores cost.

use std::collections::BTreeMap;

use unisono_core::Rank;

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCost {
    /// Nanoseconds between a message's leaving the link and its being there.
    pub alpha_ns: u64,
    /// Bytes per second; 0 is infinitely fast.
    pub beta: u64,
}

impl LinkCost {
    /// Picoseconds of latency.
    pub const fn latency_ps(&self) -> u64 {
        self.alpha_ns * 1000
    }

    /// Picoseconds that `bytes` occupy the link, rounded up.
    pub const fn transfer_ps(&self, bytes: u64) -> u64 {
        time_at(bytes, self.beta)
    }
}

/// The links of a world and the cores of its ranks.
///
/// Every ordered pair of ranks has a link: which of them may be used was settled when the programs were built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    default: LinkCost,
    others: BTreeMap<(Rank, Rank), LinkCost>,
    overhead_ns: u64,
    gamma: Option<u64>,
}

impl Links {
    /// All directed links alike: `alpha_ns` nanoseconds of latency, `beta` bytes per second; cores cost nothing.
    pub fn uniform(alpha_ns: u64, beta: u64) -> Links {
        Links {
            default: LinkCost { alpha_ns, beta },
            others: BTreeMap::new(),
            overhead_ns: 0,
            gamma: None,
        }
    }

    /// The same with another cost from `from` to `to`, one way.
    #[must_use]
    pub fn with_link(mut self, from: Rank, to: Rank, cost: LinkCost) -> Links {
        self.others.insert((from, to), cost);
        self
    }

    /// The same where every message costs `nanoseconds` of its sender's core and of its receiver's core.
    #[must_use]
    pub fn with_overhead_ns(mut self, nanoseconds: u64) -> Links {
        self.overhead_ns = nanoseconds;
        self
    }

    /// The same where a core reduces or copies `gamma` bytes per second (of each operand beside the first).
    #[must_use]
    pub fn with_reduce_rate(mut self, gamma: u64) -> Links {
        self.gamma = Some(gamma);
        self
    }

    /// What the link from `from` to `to` costs.
    pub fn cost(&self, from: Rank, to: Rank) -> LinkCost {
        self.others
            .get(&(from, to))
            .copied()
            .unwrap_or(self.default)
    }

    pub(crate) fn overhead_ps(&self) -> u64 {
        self.overhead_ns * 1000
    }

    /// Picoseconds that a core takes to reduce `bytes`.
    pub(crate) fn reduce_ps(&self, bytes: u64) -> u64 {
        self.gamma.map_or(0, |rate| time_at(bytes, rate))
    }

    /// Whether cores cost anything at all.
    pub(crate) fn cores_cost(&self) -> bool {
        self.overhead_ns > 0 || self.gamma.is_some()
    }
}

/// Picoseconds for `bytes` at `rate` bytes per second, rounded up; rate 0 takes no time.
const fn time_at(bytes: u64, rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    match bytes.checked_mul(SECOND) {
        Some(product) => product.div_ceil(rate),
        None => {
            let time = (bytes as u128 * SECOND as u128).div_ceil(rate as u128);
            if time > u64::MAX as u128 {
                u64::MAX
            } else {
                time as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_exact_up_to_one_picosecond_for_any_size() {
        let link = LinkCost {
            alpha_ns: 0,
            beta: 3,
        };
        assert_eq!(link.transfer_ps(1), 333_333_333_334);
        let fast = LinkCost {
            alpha_ns: 0,
            beta: 100_000_000_000,
        };
        assert_eq!(fast.transfer_ps(1), 10);
        assert_eq!(fast.transfer_ps(1 << 40), 10 << 40);
        assert_eq!(
            LinkCost {
                alpha_ns: 1,
                beta: 0
            }
            .transfer_ps(1 << 40),
            0
        );
    }
}
