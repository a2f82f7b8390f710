//! The shape of the graph: what hangs together, who is in the middle, what must not break.

use std::collections::VecDeque;

use super::{Link, Topology};
use crate::Rank;

impl Topology {
    /// The ranks that can reach each other, smallest first; one component where all can.
    pub fn components(&self) -> Vec<Vec<Rank>> {
        if self.is_declared_full() {
            return if self.size() == 0 {
                Vec::new()
            } else {
                vec![(0..self.size()).collect()]
            };
        }
        let graph = Graph::new(self);
        let mut seen = vec![false; graph.size()];
        let mut components = Vec::new();
        for rank in 0..self.size() {
            if !seen[rank as usize] {
                let mut component = graph.reached_from(rank);
                component.sort_unstable();
                for &each in &component {
                    seen[each as usize] = true;
                }
                components.push(component);
            }
        }
        components
    }

    /// Whether every rank can reach every other, over others if need be. A world of one is connected, one of none is not.
    pub fn is_connected(&self) -> bool {
        match self.size() {
            0 => false,
            _ if self.is_declared_full() => true,
            size => Graph::new(self).reached_from(0).len() == size as usize,
        }
    }

    /// The number of hops between the two ranks farthest apart; `None` where some cannot reach each other.
    pub fn diameter(&self) -> Option<u32> {
        match self.size() {
            0 => None,
            size if self.is_declared_full() => Some(u32::from(size > 1)),
            _ => Graph::new(self).eccentricities()?.into_iter().max(),
        }
    }

    /// The rank from which the farthest rank is nearest, the smallest of them; `None` where some cannot reach each other.
    /// Looked for once, then remembered.
    pub fn centre(&self) -> Option<Rank> {
        *self.centre.get_or_init(|| match self.size() {
            0 => None,
            _ if self.is_declared_full() => Some(0),
            _ => {
                let far = Graph::new(self).eccentricities()?;
                (0..self.size()).min_by_key(|&r| far[r as usize])
            }
        })
    }

    /// The links without which fewer ranks could reach each other, smallest first.
    pub fn bridges(&self) -> Vec<Link> {
        if self.is_declared_full() && self.size() > 2 {
            return Vec::new();
        }
        Graph::new(self).weak_spots().bridges
    }

    /// The ranks without which the others could not all reach each other, smallest first.
    pub fn cut_ranks(&self) -> Vec<Rank> {
        if self.is_declared_full() {
            return Vec::new();
        }
        Graph::new(self).weak_spots().ranks
    }
}

/// The neighbours of each rank, side by side in memory.
pub(super) struct Graph {
    starts: Vec<usize>,
    ends: Vec<Rank>,
}

/// What the graph cannot do without.
pub(super) struct WeakSpots {
    pub(super) bridges: Vec<Link>,
    pub(super) ranks: Vec<Rank>,
}

impl Graph {
    pub(super) fn new(topology: &Topology) -> Graph {
        let mut graph = Graph {
            starts: vec![0],
            ends: Vec::new(),
        };
        for rank in 0..topology.size() {
            graph.ends.extend(topology.neighbours(rank));
            graph.starts.push(graph.ends.len());
        }
        graph
    }

    pub(super) fn size(&self) -> usize {
        self.starts.len() - 1
    }

    /// Smallest first.
    pub(super) fn neighbours(&self, rank: Rank) -> &[Rank] {
        &self.ends[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }

    pub(super) fn linked(&self, a: Rank, b: Rank) -> bool {
        self.neighbours(a).binary_search(&b).is_ok()
    }

    /// Nearest first.
    fn reached_from(&self, rank: Rank) -> Vec<Rank> {
        let mut seen = vec![false; self.size()];
        seen[rank as usize] = true;
        let mut reached = vec![rank];
        let mut at = 0;
        while let Some(&rank) = reached.get(at) {
            for &next in self.neighbours(rank) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        reached
    }

    /// Per rank, the hops to the rank farthest from it; `None` where one cannot be reached.
    fn eccentricities(&self) -> Option<Vec<u32>> {
        let mut hops = vec![u32::MAX; self.size()];
        let mut queue = VecDeque::new();
        (0..self.size())
            .map(|rank| {
                hops.fill(u32::MAX);
                hops[rank] = 0;
                queue.push_back(rank as Rank);
                let (mut far, mut seen) = (0, 0);
                while let Some(rank) = queue.pop_front() {
                    far = hops[rank as usize];
                    seen += 1;
                    for &next in self.neighbours(rank) {
                        if hops[next as usize] == u32::MAX {
                            hops[next as usize] = far + 1;
                            queue.push_back(next);
                        }
                    }
                }
                (seen == self.size()).then_some(far)
            })
            .collect()
    }

    /// One depth-first walk: a link is a bridge if nothing below it leads back above it
    /// (R. Tarjan, "A note on finding the bridges of a graph", 1974; ranks likewise, Hopcroft and Tarjan, 1973).
    ///
    /// The walk keeps its own stack: a line of ten thousand ranks is that deep.
    pub(super) fn weak_spots(&self) -> WeakSpots {
        let size = self.size();
        let mut entered = vec![usize::MAX; size];
        // The earliest entered rank that the part below leads back to.
        let mut back = vec![usize::MAX; size];
        let mut cut = vec![false; size];
        let mut bridges = Vec::new();
        let mut time = 0;
        for top in 0..size as Rank {
            if entered[top as usize] != usize::MAX {
                continue;
            }
            let mut children_of_top = 0;
            // Rank, its parent, the next of its neighbours to look at.
            let mut stack = vec![(top, top, 0)];
            (entered[top as usize], back[top as usize]) = (time, time);
            time += 1;
            while let Some((rank, parent, at)) = stack.last_mut() {
                let (rank, parent) = (*rank, *parent);
                if let Some(&next) = self.neighbours(rank).get(*at) {
                    *at += 1;
                    if entered[next as usize] == usize::MAX {
                        (entered[next as usize], back[next as usize]) = (time, time);
                        time += 1;
                        stack.push((next, rank, 0));
                    } else if next != parent {
                        back[rank as usize] = back[rank as usize].min(entered[next as usize]);
                    }
                    continue;
                }
                stack.pop();
                if rank == top {
                    continue;
                }
                back[parent as usize] = back[parent as usize].min(back[rank as usize]);
                if back[rank as usize] > entered[parent as usize] {
                    bridges.push(Link::new(parent, rank));
                }
                if parent == top {
                    children_of_top += 1;
                } else if back[rank as usize] >= entered[parent as usize] {
                    cut[parent as usize] = true;
                }
            }
            cut[top as usize] = children_of_top > 1;
        }
        bridges.sort_unstable();
        WeakSpots {
            bridges,
            ranks: (0..size as Rank).filter(|&r| cut[r as usize]).collect(),
        }
    }

    /// Whether every link joins one of two camps with the other and the camps differ in size: then no ring visits all.
    /// The graph must be connected.
    pub(super) fn is_lopsided(&self) -> bool {
        let mut camp = vec![None; self.size()];
        for rank in self.reached_from(0) {
            let mine = *camp[rank as usize].get_or_insert(false);
            for &next in self.neighbours(rank) {
                if *camp[next as usize].get_or_insert(!mine) == mine {
                    return false;
                }
            }
        }
        let first = camp.iter().filter(|c| **c == Some(false)).count();
        2 * first != self.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some graphs of `size` ranks, the same on every run: every pair is linked with a chance of `of_16` in 16.
    fn graphs(size: Rank) -> impl Iterator<Item = Topology> {
        let mut state = 7u64;
        (0..60u64).map(move |n| {
            let mut links = Vec::new();
            for a in 0..size {
                for b in 0..a {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    if (state >> 60) < n % 12 {
                        links.push((a, b));
                    }
                }
            }
            Topology::from_links(size, links)
        })
    }

    /// Hops between all pairs by relaxing over every rank in between (Floyd and Warshall).
    fn all_hops(t: &Topology) -> Vec<Vec<u32>> {
        let n = t.size();
        let near = |a, b| {
            if a == b {
                0
            } else if t.linked(a, b) {
                1
            } else {
                1000
            }
        };
        let mut hops: Vec<Vec<u32>> = (0..n)
            .map(|a| (0..n).map(|b| near(a, b)).collect())
            .collect();
        for k in 0..n as usize {
            for a in 0..n as usize {
                for b in 0..n as usize {
                    hops[a][b] = hops[a][b].min(hops[a][k] + hops[k][b]);
                }
            }
        }
        hops
    }

    fn without(t: &Topology, gone: impl Fn(Link) -> bool) -> Topology {
        let left = t
            .links()
            .filter(|&(l, _)| !gone(l))
            .map(|(l, _)| (l.a, l.b));
        Topology::from_links(t.size(), left)
    }

    #[test]
    fn diameter_and_centre_agree_with_relaxation_over_all_pairs() {
        for t in (1..9).flat_map(graphs) {
            let hops = all_hops(&t);
            let far: Vec<u32> = hops.iter().map(|h| *h.iter().max().unwrap()).collect();
            let connected = far.iter().all(|&f| f < 1000);
            assert_eq!(t.is_connected(), connected);
            assert_eq!(t.diameter(), connected.then(|| *far.iter().max().unwrap()));
            let least = far.iter().min();
            let centre = far.iter().position(|f| Some(f) == least).map(|r| r as Rank);
            assert_eq!(t.centre(), centre.filter(|_| connected));
        }
    }

    #[test]
    fn a_bridge_is_what_parts_the_world_when_taken_away() {
        for t in (2..9).flat_map(graphs) {
            let parts = t.components().len();
            let expected: Vec<Link> = t
                .links()
                .map(|(l, _)| l)
                .filter(|&l| without(&t, |x| x == l).components().len() > parts)
                .collect();
            assert_eq!(t.bridges(), expected, "{t:?}");
            let cut: Vec<Rank> = (0..t.size())
                .filter(|&r| {
                    // The rank itself is left over as a part of its own, unless it was one before.
                    let alone = usize::from(t.neighbours(r).next().is_some());
                    without(&t, |l| l.a == r || l.b == r).components().len() > parts + alone
                })
                .collect();
            assert_eq!(t.cut_ranks(), cut, "{t:?}");
        }
    }

    #[test]
    fn components_name_all_ranks_once() {
        let t = Topology::from_links(6, [(4, 0), (1, 2), (2, 5)]);
        assert_eq!(t.components(), [vec![0, 4], vec![1, 2, 5], vec![3]]);
        assert_eq!(
            (t.diameter(), t.centre(), t.is_connected()),
            (None, None, false)
        );
    }

    #[test]
    fn a_mesh_needs_no_look_at_its_pairs() {
        let t = Topology::full(1_000_000);
        assert_eq!((t.diameter(), t.centre()), (Some(1), Some(0)));
        assert!(t.is_connected() && t.bridges().is_empty() && t.cut_ranks().is_empty());
        assert_eq!(Topology::full(2).bridges(), [Link { a: 0, b: 1 }]);
        assert_eq!(
            (Topology::full(1).diameter(), Topology::full(0).diameter()),
            (Some(0), None)
        );
    }

    #[test]
    fn a_long_line_does_not_exhaust_the_stack() {
        let n = 100_000;
        let t = Topology::from_links(n, (1..n).map(|b| (b - 1, b)));
        assert_eq!(t.bridges().len(), n as usize - 1);
        assert_eq!(t.cut_ranks().len(), n as usize - 2);
    }
}
