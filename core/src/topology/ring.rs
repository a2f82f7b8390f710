//! A ring through all ranks: rank order where that works, else by search.
//!
//! Up to 16 ranks the search is exact. Beyond, it proves what is cheap to prove (a rank with one link, a rank without which the
//! world falls apart, two camps of unequal size), tries two heuristics within a fixed number of steps, and says so when it
//! gives up: the answer is the same on every rank and every run.

use std::fmt;
use std::sync::Arc;

use super::Topology;
use super::shape::Graph;
use crate::Rank;

/// The largest world that is searched to the end.
const EXACT: Rank = 16;

/// What the heuristics may spend: ranks looked at and ranks moved within a path.
const STEPS: u64 = 4_000_000;

impl Topology {
    /// A ring through all ranks over existing links, if one was found. It starts at rank 0 and goes on to the smaller of the
    /// two neighbours; [`Topology::search_ring`] says why there is none.
    pub fn ring(&self) -> Option<RingOrder> {
        match self.search_ring() {
            RingSearch::Found(ring) => Some(ring),
            _ => None,
        }
    }

    /// A ring through all ranks over existing links, or why there is none. Searched once, then remembered.
    pub fn search_ring(&self) -> RingSearch {
        self.ring.get_or_init(|| search(self)).clone()
    }
}

/// What the search for a ring came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingSearch {
    /// A ring, from rank 0 on, the smaller neighbour first.
    Found(RingOrder),
    /// There is no ring.
    Impossible(NoRing),
    /// There may be one: the search stopped after so many steps.
    GaveUp {
        /// Ranks looked at and ranks moved.
        steps: u64,
    },
}

/// Why there is no ring through all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRing {
    /// Some ranks cannot reach each other at all.
    Disconnected,
    /// A rank of a ring has two neighbours; this one has fewer.
    TooFewLinks {
        /// The first such rank.
        rank: Rank,
    },
    /// Without this rank the others fall apart, so a ring would have to pass it twice.
    Cut {
        /// The first such rank.
        rank: Rank,
    },
    /// Every link leads from one of two camps to the other, and the camps differ in size.
    Lopsided,
    /// Every order was ruled out.
    Exhausted,
}

impl fmt::Display for NoRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRing::Disconnected => write!(f, "some ranks cannot reach each other"),
            NoRing::TooFewLinks { rank } => write!(f, "rank {rank} has fewer than two links"),
            NoRing::Cut { rank } => write!(f, "every way round passes rank {rank} twice"),
            NoRing::Lopsided => write!(f, "all links join two camps of unequal size"),
            NoRing::Exhausted => write!(f, "no order of the ranks has all its links"),
        }
    }
}

fn search(topology: &Topology) -> RingSearch {
    let p = topology.size();
    if p < 2 || (0..p).all(|r| topology.linked(r, (r + 1) % p)) {
        return RingSearch::Found(RingOrder::in_rank_order(p));
    }
    let graph = Graph::new(topology);
    if let Some(why) = excluded(topology, &graph) {
        return RingSearch::Impossible(why);
    }
    if p <= EXACT {
        return match exact(&graph) {
            Some(path) => RingSearch::Found(RingOrder::from_order(path)),
            None => RingSearch::Impossible(NoRing::Exhausted),
        };
    }
    let mut steps = 0;
    let found = match narrowest_first(&graph, &mut steps) {
        Some(path) => Some(path),
        // It came to its end before its steps did: every order was tried.
        None if steps <= STEPS / 2 => return RingSearch::Impossible(NoRing::Exhausted),
        None => rotations(&graph, &mut steps),
    };
    match found {
        Some(path) => RingSearch::Found(RingOrder::from_order(from_zero(path))),
        None => RingSearch::GaveUp { steps },
    }
}

/// What can be seen without a search.
fn excluded(topology: &Topology, graph: &Graph) -> Option<NoRing> {
    if !topology.is_connected() {
        return Some(NoRing::Disconnected);
    }
    if let Some(rank) = (0..topology.size()).find(|&r| graph.neighbours(r).len() < 2) {
        return Some(NoRing::TooFewLinks { rank });
    }
    if let Some(&rank) = graph.weak_spots().ranks.first() {
        return Some(NoRing::Cut { rank });
    }
    graph.is_lopsided().then_some(NoRing::Lopsided)
}

/// The ring whose ranks, in order, are the smallest: by sets of ranks (Held and Karp, 1962), 2^15 of them at most.
fn exact(graph: &Graph) -> Option<Vec<Rank>> {
    let p = graph.size();
    let all = (1usize << p) - 1;
    let near: Vec<u16> = (0..p as Rank)
        .map(|r| graph.neighbours(r).iter().fold(0, |set, &n| set | 1 << n))
        .collect();
    // ends[set]: the ranks at which a path from 0 through exactly this set may end. Read backwards, from rank 0 through the
    // ranks not yet visited, it says which next step can still be completed.
    let mut ends = vec![0u16; all + 1];
    ends[1] = 1;
    for set in (3..=all).step_by(2) {
        for (last, near) in near.iter().enumerate().skip(1) {
            let bit = 1 << last;
            if set & bit != 0 && ends[set ^ bit] & near != 0 {
                ends[set] |= bit as u16;
            }
        }
    }
    let mut path = vec![0];
    let mut left = all;
    while left != 1 {
        let last = path[path.len() - 1];
        let next = (ends[left] & near[last as usize]).trailing_zeros();
        if next >= u16::BITS {
            return None;
        }
        path.push(next);
        left &= !(1 << next);
    }
    Some(path)
}

/// Depth first, at each rank the neighbour with the fewest ways on first (H. C. von Warnsdorf, 1823), within half of the steps.
fn narrowest_first(graph: &Graph, steps: &mut u64) -> Option<Vec<Rank>> {
    let p = graph.size();
    let mut free: Vec<usize> = (0..p as Rank).map(|r| graph.neighbours(r).len()).collect();
    let mut used = vec![false; p];
    let mut path = Vec::with_capacity(p);
    // Per rank of the path: what may come next, best last.
    let mut options: Vec<Vec<Rank>> = vec![vec![0]];
    while let Some(ways) = options.last_mut() {
        if *steps > STEPS / 2 {
            return None;
        }
        let Some(rank) = ways.pop() else {
            options.pop();
            if let Some(rank) = path.pop() {
                leave(graph, rank, &mut used, &mut free);
            }
            continue;
        };
        path.push(rank);
        used[rank as usize] = true;
        for &n in graph.neighbours(rank) {
            free[n as usize] -= 1;
        }
        *steps += graph.neighbours(rank).len() as u64;
        if path.len() == p && graph.linked(rank, path[0]) {
            return Some(path);
        }
        let mut ways: Vec<Rank> = graph.neighbours(rank).to_vec();
        ways.retain(|&n| !used[n as usize]);
        ways.sort_by_key(|&n| std::cmp::Reverse((free[n as usize], n)));
        options.push(ways);
    }
    None
}

fn leave(graph: &Graph, rank: Rank, used: &mut [bool], free: &mut [usize]) {
    used[rank as usize] = false;
    for &n in graph.neighbours(rank) {
        free[n as usize] += 1;
    }
}

/// A path that turns round a part of itself where its end is stuck (L. Pósa, 1976), until the steps are used up.
fn rotations(graph: &Graph, steps: &mut u64) -> Option<Vec<Rank>> {
    let p = graph.size();
    let mut path: Vec<Rank> = vec![0];
    let mut place = vec![usize::MAX; p];
    place[0] = 0;
    let mut state = 1u64;
    while *steps < STEPS {
        let end = path[path.len() - 1];
        let near = graph.neighbours(end);
        if path.len() == p && graph.linked(end, path[0]) {
            return Some(path);
        }
        *steps += near.len() as u64;
        // The same on every machine: a linear congruential generator (Knuth's MMIX).
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let first = (state >> 33) as usize % near.len();
        let turned = || (0..near.len()).map(|i| near[(first + i) % near.len()]);
        if let Some(next) = turned().find(|&n| place[n as usize] == usize::MAX) {
            place[next as usize] = path.len();
            path.push(next);
            continue;
        }
        let pivot = place[near[first] as usize];
        path[pivot + 1..].reverse();
        for (at, &rank) in path.iter().enumerate().skip(pivot + 1) {
            place[rank as usize] = at;
        }
        *steps += (path.len() - pivot) as u64;
    }
    None
}

/// The same ring from rank 0 on, towards the smaller neighbour.
fn from_zero(mut path: Vec<Rank>) -> Vec<Rank> {
    let zero = path.iter().position(|&r| r == 0).unwrap_or(0);
    path.rotate_left(zero);
    if path.len() > 2 && path[1] > path[path.len() - 1] {
        path[1..].reverse();
    }
    path
}

/// A cyclic order of all ranks. Rank order is not cable order, so ring algorithms count *positions*.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RingOrder {
    size: Rank,
    // None: position and rank are the same number.
    order: Option<Arc<[Rank]>>,
}

impl RingOrder {
    /// The ring 0, 1, ..., size-1.
    pub fn in_rank_order(size: Rank) -> RingOrder {
        RingOrder { size, order: None }
    }

    /// The ring in this order; must name each of `0..order.len()` once.
    pub fn from_order(order: Vec<Rank>) -> RingOrder {
        let size = order.len() as Rank;
        let identity = order.iter().copied().eq(0..size);
        RingOrder {
            size,
            order: (!identity).then(|| order.into()),
        }
    }

    /// Whether positions and ranks coincide.
    pub fn is_rank_order(&self) -> bool {
        self.order.is_none()
    }

    /// The rank at `position`, taken modulo the size.
    pub fn at(&self, position: i64) -> Rank {
        let position = position.rem_euclid(i64::from(self.size.max(1))) as Rank;
        match &self.order {
            None => position,
            Some(order) => order[position as usize],
        }
    }

    /// The position of `rank`.
    pub fn position_of(&self, rank: Rank) -> i64 {
        match &self.order {
            None => i64::from(rank),
            Some(order) => order.iter().position(|&r| r == rank).unwrap_or(0) as i64,
        }
    }

    /// All ranks in the order of the ring.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        (0..self.size).map(|position| self.at(i64::from(position)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics unless `t` has a ring that visits all ranks over its links, from 0, smaller neighbour first.
    fn assert_ring(t: &Topology) {
        let RingSearch::Found(ring) = t.search_ring() else {
            panic!("{:?}", t.search_ring());
        };
        let order: Vec<Rank> = ring.ranks().collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..t.size()));
        assert!((0..order.len()).all(|i| t.linked(order[i], order[(i + 1) % order.len()])));
        assert!(order[0] == 0 && (order.len() < 3 || order[1] < order[order.len() - 1]));
    }

    fn grid(a: Rank, b: Rank, wrapped: bool) -> Topology {
        let at = move |x: Rank, y: Rank| (x % a) * b + y % b;
        let links = (0..a)
            .flat_map(|x| (0..b).map(move |y| (x, y)))
            .flat_map(|(x, y)| {
                let down = (wrapped || x + 1 < a).then(|| (at(x, y), at(x + 1, y)));
                let right = (wrapped || y + 1 < b).then(|| (at(x, y), at(x, y + 1)));
                down.into_iter().chain(right)
            });
        Topology::from_links(a * b, links)
    }

    fn petersen() -> Topology {
        let links = (0..5).flat_map(|i| [(i, (i + 1) % 5), (i, i + 5), (i + 5, (i + 2) % 5 + 5)]);
        Topology::from_links(10, links)
    }

    #[test]
    fn a_ring_is_found_where_rank_order_is_not_cable_order() {
        let t = Topology::from_links(4, [(0, 2), (2, 1), (1, 3), (3, 0)]);
        let ring = t.ring().unwrap();
        assert_eq!(ring.ranks().collect::<Vec<_>>(), [0, 2, 1, 3]);
        assert_eq!(ring.position_of(1), 2);
    }

    #[test]
    fn the_search_is_exact_up_to_16_ranks() {
        assert_eq!(
            petersen().search_ring(),
            RingSearch::Impossible(NoRing::Exhausted)
        );
        for (a, b) in [(2, 2), (2, 8), (3, 4), (4, 4), (3, 5)] {
            let t = grid(a, b, false);
            match (a * b) % 2 {
                0 => assert_ring(&t),
                _ => assert_eq!(t.search_ring(), RingSearch::Impossible(NoRing::Lopsided)),
            }
            assert_ring(&grid(a, b, true));
        }
    }

    #[test]
    fn the_exact_search_takes_the_smallest_order() {
        // Compared with all orders, tried one after the other.
        fn extend(t: &Topology, path: &mut Vec<Rank>) -> bool {
            let last = path[path.len() - 1];
            if path.len() == t.size() as usize {
                return t.linked(last, path[0]);
            }
            (0..t.size()).any(|next| {
                if !t.linked(last, next) || path.contains(&next) {
                    return false;
                }
                path.push(next);
                extend(t, path) || {
                    path.pop();
                    false
                }
            })
        }
        let mut state = 3u64;
        let mut found = 0;
        for n in 0..200u64 {
            let p = 3 + (n % 6) as Rank;
            let mut links = Vec::new();
            for a in 0..p {
                for b in 0..a {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    if (state >> 60) < 9 {
                        links.push((a, b));
                    }
                }
            }
            let t = Topology::from_links(p, links);
            let mut path = vec![0];
            let expected = extend(&t, &mut path).then_some(path);
            found += usize::from(expected.is_some());
            assert_eq!(t.ring().map(|r| r.ranks().collect()), expected, "{t:?}");
        }
        assert!(
            (20..180).contains(&found),
            "{found} of 200 have a ring: no test"
        );
    }

    #[test]
    fn large_worlds_are_searched_by_heuristics() {
        assert_ring(&grid(6, 6, false));
        assert_ring(&grid(8, 8, true));
        assert_ring(&grid(5, 7, true));
        assert_ring(&grid(16, 32, true));
        // A ring of 1,000 ranks whose cables go elsewhere than to the next number.
        let n = 1000;
        assert_ring(&Topology::from_links(n, (0..n).map(|r| (r, (r + 7) % n))));
        // A mesh of 40 ranks without the links of rank order.
        let next = |a: Rank, b: Rank| (a + 1) % 40 == b || (b + 1) % 40 == a;
        let links = (0..40).flat_map(|a| (0..a).map(move |b| (a, b)));
        assert_ring(&Topology::from_links(
            40,
            links.filter(|&(a, b)| !next(a, b)),
        ));
    }

    #[test]
    fn no_ring_is_proved_where_it_is_cheap() {
        let why =
            |size, links: &[(Rank, Rank)]| match Topology::from_links(size, links.iter().copied())
                .search_ring()
            {
                RingSearch::Impossible(why) => why,
                other => panic!("{other:?}"),
            };
        assert_eq!(why(2, &[]), NoRing::Disconnected);
        assert_eq!(why(3, &[(0, 1), (1, 2)]), NoRing::TooFewLinks { rank: 0 });
        let bow_tie = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)];
        assert_eq!(why(5, &bow_tie), NoRing::Cut { rank: 2 });
        let n = 10_000;
        let line = Topology::from_links(n, (1..n).map(|b| (b - 1, b)));
        assert!(matches!(line.search_ring(), RingSearch::Impossible(_)));
        assert_eq!(
            grid(5, 5, false).search_ring(),
            RingSearch::Impossible(NoRing::Lopsided)
        );
    }

    #[test]
    fn a_search_that_gives_up_says_so() {
        // Graphs of Petersen in a circle, rank 1 of each linked with rank 0 of the next: nothing cheap excludes a ring, and
        // there is none, for it would run through each graph from 0 to 1 and so close to a ring of that graph.
        let circle = |n: Rank| {
            let one: Vec<_> = petersen().links().map(|(l, _)| (l.a, l.b)).collect();
            let links = (0..n).flat_map(|i| {
                let inside = one.clone().into_iter();
                let inside = inside.map(move |(a, b)| (a + 10 * i, b + 10 * i));
                inside.chain([(10 * i + 1, (10 * i + 10) % (10 * n))])
            });
            Topology::from_links(10 * n, links.collect::<Vec<_>>())
        };
        let none = RingSearch::Impossible(NoRing::Exhausted);
        assert_eq!(circle(2).search_ring(), none);
        match circle(12).search_ring() {
            RingSearch::GaveUp { steps } => assert!(steps >= STEPS),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_ranks_and_one_are_rings() {
        for p in 0..3 {
            assert_eq!(Topology::full(p).ring(), Some(RingOrder::in_rank_order(p)));
        }
    }
}
