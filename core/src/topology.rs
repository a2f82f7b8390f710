//! Ranks and the links between them.
//!
//! A [`Topology`] knows which pairs of ranks can talk directly and over how many rails (parallel cables), and answers what a
//! choice of algorithm asks of it: is every pair linked, is there a ring through all, who is in the middle, which link must
//! not break.
//!
//! ```
//! use unisono_core::Topology;
//!
//! // 0 - 1 - 2
//! //     |
//! //     3
//! let t = Topology::from_links(4, [(0, 1), (1, 2), (1, 3)]);
//! assert_eq!(t.neighbours(1).collect::<Vec<_>>(), [0, 2, 3]);
//! assert_eq!((t.diameter(), t.centre()), (Some(2), Some(1)));
//! assert_eq!(t.bridges().len(), 3);
//! assert!(t.ring().is_none());
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use crate::Rank;

mod ring;
mod shape;

pub use ring::{NoRing, RingOrder, RingSearch};

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
    /// Every pair, with so many rails.
    Full(u32),
    /// The rails of each pair, under both of its orders: so the neighbours of a rank stand side by side.
    Some(BTreeMap<(Rank, Rank), u32>),
}

/// Which ranks exist and which pairs of them can talk directly.
///
/// A full mesh is one word, so that ten thousand ranks cost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    size: Rank,
    links: Links,
    ring: Memo<RingSearch>,
    centre: Memo<Option<Rank>>,
}

/// What was found out about the links, or not yet: no part of what a topology is.
#[derive(Debug, Clone)]
struct Memo<T>(OnceLock<T>);

impl<T> Memo<T> {
    fn get_or_init(&self, find: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(find)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo(OnceLock::new())
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Memo<T>) -> bool {
        true
    }
}

impl<T> Eq for Memo<T> {}

impl Topology {
    /// Every pair of `size` ranks has a link of one rail.
    pub fn full(size: Rank) -> Topology {
        Topology::new(size, Links::Full(1))
    }

    /// Exactly these pairs have a link, of one rail; pairs out of range or of a rank with itself are dropped.
    pub fn from_links(size: Rank, links: impl IntoIterator<Item = (Rank, Rank)>) -> Topology {
        Topology::from_rails(size, links.into_iter().map(|(a, b)| (a, b, 1)))
    }

    /// Exactly these pairs `(a, b, rails)` have a link. Pairs out of range, of a rank with itself, or of no rails are dropped;
    /// of a pair named twice the last counts.
    pub fn from_rails(size: Rank, links: impl IntoIterator<Item = (Rank, Rank, u32)>) -> Topology {
        let links = links
            .into_iter()
            .filter(|&(a, b, rails)| a != b && a < size && b < size && rails > 0)
            .flat_map(|(a, b, rails)| [((a, b), rails), ((b, a), rails)])
            .collect();
        Topology::new(size, Links::Some(links))
    }

    fn new(size: Rank, links: Links) -> Topology {
        Topology {
            size,
            links,
            ring: Memo::default(),
            centre: Memo::default(),
        }
    }

    /// The same links with `rails` rails each (0 counts as 1).
    #[must_use]
    pub fn with_rails(mut self, rails: u32) -> Topology {
        let rails = rails.max(1);
        match &mut self.links {
            Links::Full(all) => *all = rails,
            Links::Some(links) => links.values_mut().for_each(|each| *each = rails),
        }
        self
    }

    /// Number of ranks.
    pub fn size(&self) -> Rank {
        self.size
    }

    /// Whether every pair is linked, known without looking at any pair.
    pub fn is_declared_full(&self) -> bool {
        matches!(self.links, Links::Full(_))
    }

    /// Whether every pair is linked. A world of one rank or none is.
    pub fn is_full(&self) -> bool {
        self.link_count() == self.pair_count()
    }

    /// Number of pairs of ranks, linked or not.
    pub fn pair_count(&self) -> u64 {
        let size = u64::from(self.size);
        size * size.saturating_sub(1) / 2
    }

    /// Number of linked pairs.
    pub fn link_count(&self) -> u64 {
        match &self.links {
            Links::Full(_) => self.pair_count(),
            Links::Some(links) => links.len() as u64 / 2,
        }
    }

    /// Whether `a` and `b` can talk directly.
    pub fn linked(&self, a: Rank, b: Rank) -> bool {
        self.rails(a, b) > 0
    }

    /// Over how many rails `a` and `b` can talk directly; 0 where there is no link.
    pub fn rails(&self, a: Rank, b: Rank) -> u32 {
        if a == b || a >= self.size || b >= self.size {
            return 0;
        }
        match &self.links {
            Links::Full(rails) => *rails,
            Links::Some(links) => links.get(&(a, b)).copied().unwrap_or(0),
        }
    }

    /// The ranks that `rank` has a link with, smallest first.
    pub fn neighbours(&self, rank: Rank) -> impl Iterator<Item = Rank> + '_ {
        let (all, some) = match &self.links {
            Links::Full(_) if rank < self.size => (Some(0..self.size), None),
            Links::Full(_) => (None, None),
            Links::Some(links) => (None, Some(links.range((rank, 0)..=(rank, Rank::MAX)))),
        };
        let all = all.into_iter().flatten().filter(move |&r| r != rank);
        all.chain(some.into_iter().flatten().map(|(&(_, to), _)| to))
    }

    /// The linked pairs and their rails, smallest first.
    pub fn links(&self) -> impl Iterator<Item = (Link, u32)> + '_ {
        let (all, some) = match &self.links {
            Links::Full(rails) => (Some((*rails, self.size)), None),
            Links::Some(links) => (None, Some(links)),
        };
        let all = all.into_iter().flat_map(|(rails, size)| {
            (0..size).flat_map(move |a| (a + 1..size).map(move |b| (Link { a, b }, rails)))
        });
        let some = some.into_iter().flatten();
        all.chain(some.filter_map(|(&(a, b), &rails)| (a < b).then_some((Link { a, b }, rails))))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_ring_and_names_its_missing_link() {
        let t = Topology::from_links(3, [(0, 1), (1, 2)]);
        assert!(t.ring().is_none());
        assert_eq!(
            t.missing().map(|l| l.to_string()).collect::<Vec<_>>(),
            ["0-2"]
        );
    }

    #[test]
    fn a_declared_and_a_counted_mesh_answer_alike() {
        let all = (0..5).flat_map(|a| (0..a).map(move |b| (a, b)));
        let (declared, counted) = (Topology::full(5), Topology::from_links(5, all));
        assert!(declared.is_full() && counted.is_full() && !counted.is_declared_full());
        assert!(declared.links().eq(counted.links()));
        for r in 0..6 {
            assert!(declared.neighbours(r).eq(counted.neighbours(r)), "{r}");
        }
        assert_eq!((declared.link_count(), counted.link_count()), (10, 10));
    }

    #[test]
    fn rails_belong_to_the_pair_and_not_to_a_direction() {
        let t = Topology::from_rails(3, [(1, 0, 2), (1, 2, 1), (2, 0, 0)]);
        assert_eq!((t.rails(0, 1), t.rails(1, 0)), (2, 2));
        assert_eq!((t.rails(1, 2), t.rails(0, 2), t.rails(0, 0)), (1, 0, 0));
        assert_eq!(t.with_rails(3).rails(2, 1), 3);
        assert_eq!(Topology::full(2).with_rails(4).rails(0, 1), 4);
    }

    #[test]
    fn links_out_of_range_are_dropped() {
        let t = Topology::from_links(2, [(0, 0), (0, 2), (5, 1), (1, 0)]);
        assert_eq!(t.links().collect::<Vec<_>>(), [(Link { a: 0, b: 1 }, 1)]);
    }
}
