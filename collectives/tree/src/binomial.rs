//! `tree`: the binomial tree.

use unisono_core::{Collective, Link, Rank};
use unisono_program::{Algorithm, Blocks, Context, Emit, Unsupported, block, blocks};

/// The binomial tree over ranks counted from the root: place v hangs below v minus its lowest set bit.
///
/// Each child's operands are those that follow the parent's, so a reduction towards rank 0 keeps rank order: where the
/// operator does not commute, reduce goes to rank 0 and from there to its root.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tree;

impl Algorithm for Tree {
    fn name(&self) -> &str {
        "tree"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[
            Collective::Broadcast,
            Collective::Reduce,
            Collective::Gather,
            Collective::Scatter,
            Collective::AllReduce,
            Collective::Barrier,
        ])?;
        let top = top(cx);
        let edges = (1..cx.size()).map(|place| {
            let at = Place::new(i64::from(place), top, cx.size());
            Link::new(at.rank(at.place), at.rank(at.place - at.lowest()))
        });
        cx.require_links(edges.chain([Link::new(top, cx.root())]))
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let place = Place::of(cx.rank(), top(cx), cx.size());
        match cx.collective() {
            Collective::Broadcast => place.broadcast(b),
            Collective::Reduce => {
                place.reduce(b);
                hand_over(cx, b);
            }
            Collective::Gather => place.gather(b),
            Collective::Scatter => place.scatter(b),
            Collective::AllReduce => {
                place.reduce(b);
                place.broadcast(b);
            }
            _ => place.barrier(b),
        }
    }
}

/// The rank at the top of the tree: the root, unless a reduction must begin with rank 0.
fn top(cx: &Context) -> Rank {
    let ordered = cx.collective().reduces() && !cx.commutative();
    if ordered { 0 } else { cx.root() }
}

/// The result of a reduction from the top of the tree to the root.
fn hand_over(cx: &Context, b: &mut dyn Emit) {
    let (top, root) = (top(cx), cx.root());
    if top == root {
        return;
    }
    if cx.rank() == top {
        b.send(root, block(0));
    }
    if cx.rank() == root {
        b.recv(top, block(0));
    }
}

/// A place in the tree, counted from the top.
struct Place {
    place: i64,
    top: i64,
    p: i64,
}

/// A child, and the blocks of its subtree.
struct Child {
    rank: Rank,
    rows: Blocks,
}

impl Place {
    fn new(place: i64, top: Rank, size: Rank) -> Place {
        Place {
            place,
            top: top.into(),
            p: size.into(),
        }
    }

    fn of(rank: Rank, top: Rank, size: Rank) -> Place {
        let place = (i64::from(rank) - i64::from(top)).rem_euclid(size.into());
        Place::new(place, top, size)
    }

    fn rank(&self, place: i64) -> Rank {
        ((self.top + place) % self.p) as Rank
    }

    /// The lowest set bit of the place: its subtree holds the places before the next multiple of it.
    fn lowest(&self) -> i64 {
        match self.place {
            0 => (self.p as u64).next_power_of_two() as i64,
            place => place & -place,
        }
    }

    fn parent(&self) -> Option<Rank> {
        (self.place > 0).then(|| self.rank(self.place - self.lowest()))
    }

    /// The blocks of the `most` places from `place` on, as far as there are any.
    fn rows(&self, place: i64, most: i64) -> Blocks {
        blocks(self.top + place, most.min(self.p - place) as u64)
    }

    /// Smallest subtree first: the child at distance d has d places.
    fn children(&self) -> impl DoubleEndedIterator<Item = Child> + '_ {
        (0..self.lowest().ilog2())
            .map(|k| 1 << k)
            .filter(|d| self.place + d < self.p)
            .map(|d| Child {
                rank: self.rank(self.place + d),
                rows: self.rows(self.place + d, d),
            })
    }

    fn broadcast(&self, b: &mut dyn Emit) {
        if let Some(parent) = self.parent() {
            b.recv(parent, block(0));
        }
        for child in self.children().rev() {
            b.send(child.rank, block(0));
        }
    }

    fn reduce(&self, b: &mut dyn Emit) {
        for child in self.children() {
            b.recv_reduce(child.rank, block(0));
        }
        if let Some(parent) = self.parent() {
            b.send(parent, block(0));
        }
    }

    fn gather(&self, b: &mut dyn Emit) {
        for child in self.children() {
            b.recv(child.rank, child.rows);
        }
        if let Some(parent) = self.parent() {
            b.send(parent, self.rows(self.place, self.lowest()));
        }
    }

    fn scatter(&self, b: &mut dyn Emit) {
        if let Some(parent) = self.parent() {
            b.recv(parent, self.rows(self.place, self.lowest()));
        }
        for child in self.children().rev() {
            b.send(child.rank, child.rows);
        }
    }

    fn barrier(&self, b: &mut dyn Emit) {
        for child in self.children() {
            b.sync_from(child.rank);
        }
        if let Some(parent) = self.parent() {
            b.sync_to(parent);
            b.sync_from(parent);
        }
        for child in self.children().rev() {
            b.sync_to(child.rank);
        }
    }
}
