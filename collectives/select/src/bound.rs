//! The least time that a call can take on given links, and what binds it.
//!
//! | bound | says |
//! |---|---|
//! | hops | news from the farthest rank passes so many links, and the cores at their ends |
//! | links together | all links carry what must be moved in total (all_reduce: 2(p-1) vectors, Patarasu and Yuan, 2009) |
//! | cut | what must leave or enter a part of the world: a single rank, or one side of a bridge |
//!
//! The largest of them holds. No program is faster; none need be as fast.

use std::fmt;

use unisono_core::{Collective, Link, Rank, Topology};
use unisono_evaluator::{LinkCost, Links};

use crate::facts::Network;

/// The least time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Picoseconds.
    pub ps: u64,
    /// What binds.
    pub by: BoundBy,
}

/// What a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoundBy {
    /// Nothing moves.
    Nothing,
    /// So many hops to the farthest rank.
    Hops(u32),
    /// All links together.
    AllLinks,
    /// What leaves or enters this rank.
    Rank(Rank),
    /// What crosses this bridge.
    Bridge(Link),
}

impl fmt::Display for BoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoundBy::Nothing => write!(f, "nothing moves"),
            BoundBy::Hops(1) => write!(f, "one hop"),
            BoundBy::Hops(hops) => write!(f, "{hops} hops to the farthest rank"),
            BoundBy::AllLinks => write!(f, "all links together"),
            BoundBy::Rank(rank) => write!(f, "the links of rank {rank}"),
            BoundBy::Bridge(link) => write!(f, "the bridge {link}"),
        }
    }
}

/// What some directed links carry together.
struct Capacity {
    /// Bytes per second; `None`: unlimited.
    rate: Option<u128>,
}

impl Capacity {
    fn of(costs: impl Iterator<Item = LinkCost>) -> Capacity {
        let mut rate = Some(0u128);
        for cost in costs {
            rate = rate
                .filter(|_| cost.beta > 0)
                .map(|r| r + u128::from(cost.beta));
        }
        Capacity { rate }
    }

    fn ps(&self, bytes: u128) -> u64 {
        match self.rate {
            None => 0,
            Some(_) if bytes == 0 => 0,
            Some(0) => u64::MAX,
            Some(rate) => {
                u64::try_from(bytes.saturating_mul(1_000_000_000_000) / rate).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The call that a bound is of: `n` is the vector, or one row.
struct Moved {
    collective: Collective,
    p: u128,
    n: u128,
}

impl Moved {
    /// Bytes that must leave `s` ranks, among which is the root or not.
    fn leaving(&self, s: u128, root: bool) -> u128 {
        use Collective as C;
        let (p, n) = (self.p, self.n);
        match self.collective {
            C::AllReduce => n,
            C::ReduceScatter => (p - s) * n,
            C::AllGather => s * n,
            C::Broadcast => u128::from(root) * n,
            C::Reduce => u128::from(!root) * n,
            C::Gather => u128::from(!root) * s * n,
            C::Scatter => u128::from(root) * (p - s) * n,
            C::AllToAll => s * (p - s) * n,
            _ => 0,
        }
    }

    /// Bytes that all links carry together, each hop counted.
    fn together(&self, topology: &Topology, root: Rank) -> u128 {
        use Collective as C;
        let (p, n) = (self.p, self.n);
        let from_root = || hops_from(topology, root).into_iter().map(u128::from).sum();
        match self.collective {
            C::AllReduce => 2 * (p - 1) * n,
            C::ReduceScatter | C::AllGather => p * (p - 1) * n,
            C::Broadcast | C::Reduce => (p - 1) * n,
            C::Gather | C::Scatter => n.saturating_mul(from_root()),
            C::AllToAll if topology.is_full() => p * (p - 1) * n,
            C::AllToAll => {
                let each = (0..topology.size()).flat_map(|r| hops_from(topology, r));
                n.saturating_mul(each.map(u128::from).sum())
            }
            _ => 0,
        }
    }
}

/// The least time of `collective` with `n` bytes in the vector, or in a row, over `network`.
pub(crate) fn bound(network: &Network, collective: Collective, root: Rank, n: u64) -> Bound {
    let topology = network.topology();
    let (p, n) = (u128::from(topology.size()), u128::from(n));
    let mut least = Bound {
        ps: 0,
        by: BoundBy::Nothing,
    };
    if p < 2 || (n == 0 && collective != Collective::Barrier) {
        return least;
    }
    let mut consider = |ps: u64, by| {
        if ps > least.ps {
            least = Bound { ps, by };
        }
    };
    let links = network.links(u16::MAX);
    let far = match collective.is_rooted() {
        true => hops_from(topology, root).into_iter().max().unwrap_or(0),
        false => topology.diameter().unwrap_or(0),
    };
    let own = network.own_figures().map(|(_, _, f)| f.alpha.value);
    let alpha = own.fold(network.figures().alpha.value, std::cmp::min);
    let hop = (alpha + 2 * network.overhead()).as_nanos() as u64 * 1000;
    consider(hop.saturating_mul(far.into()), BoundBy::Hops(far));

    let moved = Moved { collective, p, n };
    let all = topology.links();
    let all = all.flat_map(|(l, _)| [links.cost(l.a, l.b), links.cost(l.b, l.a)]);
    let together = moved.together(topology, root);
    consider(Capacity::of(all).ps(together), BoundBy::AllLinks);
    // In a uniform mesh all ranks are placed alike, but for the root.
    let alike = network.is_uniform() && topology.is_full();
    let other = (root + 1) % topology.size();
    let ranks: Vec<Rank> = match alike {
        true => vec![root.min(other), root.max(other)],
        false => (0..topology.size()).collect(),
    };
    for r in ranks {
        let ps = of_part(&moved, &links, (1, r == root), || {
            topology.neighbours(r).map(move |to| (r, to))
        });
        consider(ps, BoundBy::Rank(r));
    }
    for bridge in topology.bridges() {
        let near = near_side(topology, bridge);
        let side = near.iter().filter(|&&b| b).count() as u128;
        let ps = of_part(&moved, &links, (side, near[root as usize]), || {
            std::iter::once((bridge.a, bridge.b))
        });
        consider(ps, BoundBy::Bridge(bridge));
    }
    least
}

/// The least time for what leaves and enters a part of so many ranks, with the root in it or not.
fn of_part<I: Iterator<Item = (Rank, Rank)>>(
    moved: &Moved,
    links: &Links,
    (size, root): (u128, bool),
    crossing: impl Fn() -> I,
) -> u64 {
    let out = Capacity::of(crossing().map(|(a, b)| links.cost(a, b)));
    let back = Capacity::of(crossing().map(|(a, b)| links.cost(b, a)));
    let leaving = moved.leaving(size, root);
    let entering = moved.leaving(moved.p - size, !root);
    out.ps(leaving).max(back.ps(entering))
}

/// Per rank, the links between it and `from`; 0 for those that cannot be reached.
fn hops_from(topology: &Topology, from: Rank) -> Vec<u32> {
    let size = topology.size() as usize;
    if topology.is_declared_full() {
        let mut hops = vec![1; size];
        hops[from as usize] = 0;
        return hops;
    }
    reach(topology, from, |_| false)
        .into_iter()
        .map(|h| h.unwrap_or(0))
        .collect()
}

/// Which ranks are on the side of the bridge's smaller end.
fn near_side(topology: &Topology, bridge: Link) -> Vec<bool> {
    let hops = reach(topology, bridge.a, |link| link == bridge);
    hops.into_iter().map(|h| h.is_some()).collect()
}

fn reach(topology: &Topology, from: Rank, without: impl Fn(Link) -> bool) -> Vec<Option<u32>> {
    let mut hops = vec![None; topology.size() as usize];
    hops[from as usize] = Some(0);
    let mut order = vec![(from, 0)];
    let mut at = 0;
    while let Some(&(rank, far)) = order.get(at) {
        for next in topology.neighbours(rank) {
            if hops[next as usize].is_none() && !without(Link::new(rank, next)) {
                hops[next as usize] = Some(far + 1);
                order.push((next, far + 1));
            }
        }
        at += 1;
    }
    hops
}

#[cfg(test)]
mod tests {
    use unisono_topology::{Cluster, LinkSpec};

    use super::*;
    use crate::{Facts, Way};

    fn network(cluster: Result<Cluster, unisono_topology::TopologyError>) -> Network {
        let facts = Facts::of(&cluster.unwrap());
        facts.network(Way::Rdma).unwrap().clone()
    }

    fn spec() -> LinkSpec {
        "alpha=1us,bandwidth=1GB/s".parse().unwrap()
    }

    #[test]
    fn a_mesh_is_bound_by_all_its_links_and_a_small_call_by_one_hop() {
        let mesh = network(Cluster::mesh(4, &spec()));
        let large = bound(&mesh, Collective::AllReduce, 0, 4_000_000);
        // 2 * 3 vectors over 12 directed links.
        assert_eq!((large.ps, large.by), (2_000_000_000, BoundBy::AllLinks));
        let small = bound(&mesh, Collective::AllReduce, 0, 4);
        assert_eq!((small.ps, small.by), (1_000_000, BoundBy::Hops(1)));
        let broadcast = bound(&mesh, Collective::Broadcast, 2, 12_000_000);
        assert_eq!(broadcast.by, BoundBy::Rank(2));
        assert_eq!(broadcast.ps, 4_000_000_000);
    }

    #[test]
    fn a_bridge_binds_what_must_cross_it() {
        // Two triangles joined by 2-3.
        let links = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)];
        let topology = Topology::from_links(6, links);
        let net = network(Cluster::from_topology(&topology, &spec()));
        let cells = bound(&net, Collective::AllToAll, 0, 1_000_000);
        assert_eq!(cells.by.to_string(), "the bridge 2-3");
        assert_eq!(cells.ps, 9_000_000_000);
    }

    #[test]
    fn the_links_of_one_rank_bind_a_star() {
        let star = network(Cluster::star(4, &spec()));
        let scatter = bound(&star, Collective::Scatter, 1, 1_000_000);
        assert_eq!((scatter.ps, scatter.by), (3_000_000_000, BoundBy::Rank(1)));
        let reduce = bound(&star, Collective::AllReduce, 0, 1_000_000);
        assert_eq!(reduce.ps, 1_000_000_000);
        let barrier = bound(&star, Collective::Barrier, 0, 0);
        assert_eq!((barrier.ps, barrier.by), (2_000_000, BoundBy::Hops(2)));
    }

    #[test]
    fn a_world_of_one_is_bound_by_nothing() {
        let one = Facts::of(&Cluster::mesh(1, &spec()).unwrap());
        assert!(one.networks().is_empty());
    }
}
