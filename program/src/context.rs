//! What an algorithm may know when it emits the program of one rank.

use std::sync::Arc;

use unisono_core::{Collective, Link, Rank, RingOrder, Topology};

use crate::Unsupported;

/// Numbers that select a variant of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Params {
    /// Independent copies of the algorithm over disjoint shares of each block, each with its own FIFOs.
    pub channels: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params { channels: 1 }
    }
}

impl Params {
    /// The same with `channels` copies (0 counts as 1).
    #[must_use]
    pub fn with_channels(mut self, channels: u16) -> Params {
        self.channels = channels.max(1);
        self
    }
}

/// One call as an algorithm sees it: who am I, how many are we, what is asked, which links exist.
#[derive(Debug, Clone)]
pub struct Context {
    collective: Collective,
    rank: Rank,
    root: Rank,
    topology: Arc<Topology>,
    ring: Option<RingOrder>,
    commutative: bool,
    average: bool,
    params: Params,
}

impl Context {
    /// `collective` at `rank` of a world with these links; root 0, a commutative operator, no average.
    pub fn new(collective: Collective, rank: Rank, topology: Arc<Topology>) -> Context {
        Context {
            collective,
            rank,
            root: 0,
            ring: topology.ring(),
            topology,
            commutative: true,
            average: false,
            params: Params::default(),
        }
    }

    /// `collective` at `rank` of `size` ranks that are all linked.
    pub fn full(collective: Collective, rank: Rank, size: Rank) -> Context {
        Self::new(collective, rank, Arc::new(Topology::full(size)))
    }

    /// The same call seen from another rank.
    #[must_use]
    pub fn at_rank(&self, rank: Rank) -> Context {
        Context {
            rank,
            ..self.clone()
        }
    }

    /// The same call with another root.
    #[must_use]
    pub fn with_root(mut self, root: Rank) -> Context {
        self.root = root;
        self
    }

    /// The same call with an operator whose operands must stay in rank order.
    #[must_use]
    pub fn with_commutative(mut self, commutative: bool) -> Context {
        self.commutative = commutative;
        self
    }

    /// The same call, dividing by the number of ranks at the end.
    #[must_use]
    pub fn with_average(mut self, average: bool) -> Context {
        self.average = average;
        self
    }

    /// The same call with these parameters.
    #[must_use]
    pub fn with_params(mut self, params: Params) -> Context {
        self.params = params;
        self
    }

    /// The same call over this ring instead of the one found.
    #[must_use]
    pub fn with_ring(mut self, ring: RingOrder) -> Context {
        self.ring = Some(ring);
        self
    }

    /// What is asked for.
    pub fn collective(&self) -> Collective {
        self.collective
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// This rank, ready for index arithmetic.
    pub fn me(&self) -> i64 {
        self.rank.into()
    }

    /// Number of ranks.
    pub fn size(&self) -> Rank {
        self.topology.size()
    }

    /// The root of a rooted collective (0 elsewhere).
    pub fn root(&self) -> Rank {
        self.root
    }

    /// Whether operands may change places.
    pub fn commutative(&self) -> bool {
        self.commutative
    }

    /// Whether the result is divided by the number of ranks.
    pub fn average(&self) -> bool {
        self.average
    }

    /// The variant asked for.
    pub fn params(&self) -> Params {
        self.params
    }

    /// The links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// This rank's place in the ring.
    ///
    /// Rank order where no ring exists: algorithms that need one say so in `supports` by
    /// [`require_ring`](Context::require_ring).
    pub fn ring(&self) -> Ring {
        let order = self
            .ring
            .clone()
            .unwrap_or_else(|| RingOrder::in_rank_order(self.size()));
        Ring {
            position: order.position_of(self.rank),
            order,
        }
    }

    /// `Err` naming what is missing unless a ring through all ranks was found.
    pub fn require_ring(&self) -> Result<(), Unsupported> {
        match self.ring {
            Some(_) => Ok(()),
            None => Err(Unsupported::NoRing {
                missing: self.topology.missing().collect(),
            }),
        }
    }

    /// `Err` naming the missing pairs unless every pair is linked.
    pub fn require_mesh(&self) -> Result<(), Unsupported> {
        if self.topology.is_declared_full() {
            return Ok(());
        }
        self.require_links(self.topology.missing())
    }

    /// `Err` naming those of `links` that do not exist.
    pub fn require_links(&self, links: impl IntoIterator<Item = Link>) -> Result<(), Unsupported> {
        if self.topology.is_declared_full() {
            return Ok(());
        }
        let mut missing: Vec<Link> = links
            .into_iter()
            .filter(|l| l.a != l.b && !self.topology.linked(l.a, l.b))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Unsupported::MissingLinks { missing })
        }
    }

    /// `Err` unless operands may change places.
    pub fn require_commutative(&self) -> Result<(), Unsupported> {
        if self.commutative {
            Ok(())
        } else {
            Err(Unsupported::NotCommutative)
        }
    }

    /// `Err` unless the collective is one of `offered`.
    pub fn require_collective(&self, offered: &[Collective]) -> Result<(), Unsupported> {
        if offered.contains(&self.collective) {
            Ok(())
        } else {
            Err(Unsupported::Collective {
                asked: self.collective,
                offered: offered.to_vec(),
            })
        }
    }
}

/// One rank's place in a ring.
#[derive(Debug, Clone)]
pub struct Ring {
    position: i64,
    order: RingOrder,
}

impl Ring {
    /// This rank's position, `0..size`.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The rank at `position`, modulo the size.
    pub fn at(&self, position: i64) -> Rank {
        self.order.at(position)
    }

    /// The rank before this one.
    pub fn left(&self) -> Rank {
        self.order.at(self.position - 1)
    }

    /// The rank after this one.
    pub fn right(&self) -> Rank {
        self.order.at(self.position + 1)
    }

    /// Whether positions are ranks.
    pub fn is_rank_order(&self) -> bool {
        self.order.is_rank_order()
    }
}
