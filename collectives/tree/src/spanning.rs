//! Breadth-first spanning trees of the graph of links.

use unisono_core::{Link, Rank, Topology};

/// Which ranks each rank is linked with, smallest first.
pub(crate) struct Graph {
    size: Rank,
    /// `None`: with all.
    neighbours: Option<Vec<Vec<Rank>>>,
}

/// A breadth-first tree: everyone at the least number of hops from the top.
pub(crate) struct Spanning {
    /// Nearest to the top first.
    pub(crate) order: Vec<Rank>,
    /// By rank; the top is its own parent, and so is a rank that cannot be reached.
    pub(crate) parents: Vec<Rank>,
}

/// The tree as one rank sees it.
pub(crate) struct View {
    pub(crate) parent: Option<Rank>,
    pub(crate) children: Vec<Rank>,
    /// For each rank, the neighbour in the tree that leads there; this rank itself for this rank.
    pub(crate) towards: Vec<Rank>,
}

impl Graph {
    pub(crate) fn new(topology: &Topology) -> Graph {
        let size = topology.size();
        let neighbours = (!topology.is_declared_full()).then(|| {
            let linked = |rank| topology.neighbours(rank).collect();
            (0..size).map(linked).collect()
        });
        Graph { size, neighbours }
    }

    /// The tree from `top`. Where all are linked it is a star.
    pub(crate) fn tree(&self, top: Rank) -> Spanning {
        let Some(neighbours) = &self.neighbours else {
            return Spanning {
                order: std::iter::once(top)
                    .chain((0..self.size).filter(|&r| r != top))
                    .collect(),
                parents: vec![top; self.size as usize],
            };
        };
        let mut parents: Vec<Rank> = (0..self.size).collect();
        let mut order = vec![top];
        let mut at = 0;
        while let Some(&rank) = order.get(at) {
            for &next in &neighbours[rank as usize] {
                if next != top && parents[next as usize] == next {
                    parents[next as usize] = rank;
                    order.push(next);
                }
            }
            at += 1;
        }
        Spanning { order, parents }
    }

    /// Links that would join the ranks out of reach of rank 0: one to the first rank of each separate part.
    pub(crate) fn missing(&self) -> Vec<Link> {
        let mut reached = vec![false; self.size as usize];
        let mut missing = Vec::new();
        for first in 0..self.size {
            if reached[first as usize] {
                continue;
            }
            if first > 0 {
                missing.push(Link::new(0, first));
            }
            for rank in self.tree(first).order {
                reached[rank as usize] = true;
            }
        }
        missing
    }
}

impl Spanning {
    /// The tree as `rank` sees it.
    pub(crate) fn seen_by(&self, rank: Rank) -> View {
        let parent = self.parents[rank as usize];
        let mut view = View {
            parent: (parent != rank).then_some(parent),
            children: Vec::new(),
            towards: vec![parent; self.parents.len()],
        };
        view.towards[rank as usize] = rank;
        for &other in &self.order {
            let above = self.parents[other as usize];
            if above == other || other == rank {
                continue;
            }
            // Whoever is neither a child nor this rank lies where its parent lies.
            view.towards[other as usize] = if above == rank {
                view.children.push(other);
                other
            } else {
                view.towards[above as usize]
            };
        }
        view
    }
}

impl View {
    /// All ranks next to this one in the tree, the parent first.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = Rank> + '_ {
        self.parent.into_iter().chain(self.children.iter().copied())
    }
}
