//! Ranks and the links between them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::Rank;

/// A full-duplex link between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The smaller rank.
    pub a: Rank,
    /// The larger rank.
    pub b: Rank,
}

impl Link {
    /// The link between `a` and `b`, whichever is named first.
    pub fn new(a: Rank, b: Rank) -> Link {
        Link {
            a: a.min(b),
            b: a.max(b),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.a, self.b)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Links {
    Full,
    Some(BTreeSet<Link>),
}

/// Which ranks exist and which pairs of them can talk directly.
///
/// A full mesh is one word, so that ten thousand ranks cost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    size: Rank,
    links: Links,
}

impl Topology {
    /// Every pair of `size` ranks has a link.
    pub fn full(size: Rank) -> Topology {
        Topology {
            size,
            links: Links::Full,
        }
    }

    /// Exactly these pairs have a link; pairs out of range or of a rank with itself are dropped.
    pub fn from_links(size: Rank, links: impl IntoIterator<Item = (Rank, Rank)>) -> Topology {
        let links = links
            .into_iter()
            .filter(|&(a, b)| a != b && a < size && b < size)
            .map(|(a, b)| Link::new(a, b))
            .collect();
        Topology {
            size,
            links: Links::Some(links),
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> Rank {
        self.size
    }

    /// Whether every pair is linked, known without looking at any pair.
    pub fn is_declared_full(&self) -> bool {
        matches!(self.links, Links::Full)
    }

    /// Whether `a` and `b` can talk directly.
    pub fn linked(&self, a: Rank, b: Rank) -> bool {
        a != b
            && a < self.size
            && b < self.size
            && match &self.links {
                Links::Full => true,
                Links::Some(set) => set.contains(&Link::new(a, b)),
            }
    }

    /// The pairs without a link, smallest first.
    pub fn missing(&self) -> impl Iterator<Item = Link> + '_ {
        let last = if self.is_declared_full() {
            0
        } else {
            self.size
        };
        (0..last)
            .flat_map(move |a| (a + 1..last).map(move |b| Link { a, b }))
            .filter(|l| !self.linked(l.a, l.b))
    }

    /// A ring through all ranks over existing links: rank order where that works, else by search up to 16 ranks.
    pub fn ring(&self) -> Option<RingOrder> {
        let p = self.size;
        if p < 2 || (0..p).all(|r| p == 1 || self.linked(r, (r + 1) % p)) {
            return Some(RingOrder::in_rank_order(p));
        }
        if p > 16 {
            return None;
        }
        let mut path = vec![0];
        self.extend_ring(&mut path)
            .then(|| RingOrder::from_order(path))
    }

    fn extend_ring(&self, path: &mut Vec<Rank>) -> bool {
        let last = path[path.len() - 1];
        if path.len() == self.size as usize {
            return self.linked(last, path[0]);
        }
        for next in 0..self.size {
            if self.linked(last, next) && !path.contains(&next) {
                path.push(next);
                if self.extend_ring(path) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_found_where_rank_order_is_not_cable_order() {
        let t = Topology::from_links(4, [(0, 2), (2, 1), (1, 3), (3, 0)]);
        let ring = t.ring().unwrap();
        let order: Vec<_> = (0..4).map(|i| ring.at(i)).collect();
        assert_eq!(order, [0, 2, 1, 3]);
        assert_eq!(ring.position_of(1), 2);
    }

    #[test]
    fn a_line_has_no_ring_and_names_its_missing_link() {
        let t = Topology::from_links(3, [(0, 1), (1, 2)]);
        assert!(t.ring().is_none());
        assert_eq!(
            t.missing().map(|l| l.to_string()).collect::<Vec<_>>(),
            ["0-2"]
        );
    }
}
