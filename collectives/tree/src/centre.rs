//! `tree-centre`: a tree for any connected graph, over links that exist.

use unisono_core::{Collective, Rank};
use unisono_program::{Algorithm, Blocks, Context, Emit, Unsupported, block, scratch};

use crate::spanning::{Graph, Spanning, View};

/// A breadth-first spanning tree: from the root where there is one, else from the centre of the graph.
///
/// The centre is the rank from which the farthest is nearest, the smallest such rank. Rows of a table flow over the tree
/// one by one, in one order that all ranks share, so that relays work all at once and no order of arrival can block.
/// Where all ranks are linked the tree is a star, one hop deep: right for small messages, but `tree` and the meshes
/// spread large ones better.
///
/// Sums are formed on the way, as they meet. Where the operator does not commute, all contributions travel to the top of
/// the tree and are reduced there in rank order: p times the bytes near the top, but any graph can do it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeCentre;

/// Where the top of the tree relays p*p blocks, this is the largest world.
const RELAY_LIMIT: Rank = 256;

impl Algorithm for TreeCentre {
    fn name(&self) -> &str {
        "tree-centre"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&Collective::ALL)?;
        if cx.size() > RELAY_LIMIT && relays_all(cx) {
            return Err(Unsupported::WorldSize {
                size: cx.size(),
                needs: "at most 256 ranks (the top of the tree relays p*p blocks)",
            });
        }
        if cx.topology().is_declared_full() {
            return Ok(());
        }
        match Graph::new(cx.topology()).missing() {
            missing if missing.is_empty() => Ok(()),
            missing => Err(Unsupported::MissingLinks { missing }),
        }
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        if cx.size() < 2 {
            return;
        }
        let graph = Graph::new(cx.topology());
        let rooted = cx.collective().is_rooted();
        let centre = || cx.topology().centre().unwrap_or(0);
        let tree = graph.tree(if rooted { cx.root() } else { centre() });
        let view = tree.seen_by(cx.rank());
        let me = cx.rank();
        match cx.collective() {
            Collective::Broadcast => broadcast(&view, b),
            Collective::Reduce if !cx.commutative() => reduce_in_order(&tree, &view, me, 1, b),
            Collective::AllReduce if !cx.commutative() => {
                reduce_in_order(&tree, &view, me, 1, b);
                broadcast(&view, b);
            }
            Collective::ReduceScatter if !cx.commutative() => {
                reduce_in_order(&tree, &view, me, cx.size().into(), b);
                scatter(&tree, &view, me, b);
            }
            Collective::Reduce => reduce(&view, b),
            Collective::AllReduce => {
                reduce(&view, b);
                broadcast(&view, b);
            }
            Collective::Gather => gather(&tree, &view, me, b),
            Collective::Scatter => scatter(&tree, &view, me, b),
            Collective::AllGather => all_gather(&tree, &view, me, b),
            Collective::ReduceScatter => reduce_scatter(&tree, &view, me, b),
            Collective::AllToAll => all_to_all(&view, me, cx.size(), b),
            _ => barrier(&view, b),
        }
    }
}

/// Whether p*p blocks pass the top: of a table of that size, of rows to everyone in a star, of unreduced contributions.
fn relays_all(cx: &Context) -> bool {
    match cx.collective() {
        Collective::AllToAll => true,
        Collective::AllGather => cx.topology().is_declared_full(),
        Collective::ReduceScatter => cx.topology().is_declared_full() || !cx.commutative(),
        _ => false,
    }
}

fn row(rank: Rank) -> Blocks {
    block(rank.into())
}

fn broadcast(view: &View, b: &mut dyn Emit) {
    if let Some(parent) = view.parent {
        b.recv(parent, block(0));
    }
    for &child in &view.children {
        b.send(child, block(0));
    }
}

fn reduce(view: &View, b: &mut dyn Emit) {
    for &child in &view.children {
        b.recv_reduce(child, block(0));
    }
    if let Some(parent) = view.parent {
        b.send(parent, block(0));
    }
}

/// All contributions to the top of the tree, nearest first; there, each of `rows` blocks is reduced in rank order.
fn reduce_in_order(tree: &Spanning, view: &View, me: Rank, rows: u64, b: &mut dyn Emit) {
    let of = |source: Rank, row: u64| {
        if source == me {
            block(row as i64)
        } else {
            scratch(u64::from(source) * rows + row).like(row as i64)
        }
    };
    for source in std::iter::once(me).chain(below(tree, view, me)) {
        for row in 0..rows {
            if source != me {
                b.recv(view.towards[source as usize], of(source, row));
            }
            if let Some(parent) = view.parent {
                b.send(parent, of(source, row));
            }
        }
    }
    if view.parent.is_none() {
        for row in 0..rows {
            let sources: Vec<Blocks> = (0..tree.order.len() as Rank).map(|s| of(s, row)).collect();
            b.reduce(block(row as i64), &sources);
        }
    }
}

fn barrier(view: &View, b: &mut dyn Emit) {
    for &child in &view.children {
        b.sync_from(child);
    }
    if let Some(parent) = view.parent {
        b.sync_to(parent);
        b.sync_from(parent);
    }
    for &child in &view.children {
        b.sync_to(child);
    }
}

/// The ranks of the subtree below `me`, nearest to the root first.
fn below<'a>(
    tree: &'a Spanning,
    view: &'a View,
    me: Rank,
) -> impl DoubleEndedIterator<Item = Rank> + 'a {
    let beneath = move |&r: &Rank| r != me && Some(view.towards[r as usize]) != view.parent;
    tree.order.iter().copied().filter(beneath)
}

/// Nearest row first: it is the first to arrive.
fn gather(tree: &Spanning, view: &View, me: Rank, b: &mut dyn Emit) {
    for r in std::iter::once(me).chain(below(tree, view, me)) {
        if r != me {
            b.recv(view.towards[r as usize], row(r));
        }
        if let Some(parent) = view.parent {
            b.send(parent, row(r));
        }
    }
}

/// Farthest row first: it has the longest way to go.
fn scatter(tree: &Spanning, view: &View, me: Rank, b: &mut dyn Emit) {
    for r in below(tree, view, me).rev().chain([me]) {
        if let Some(parent) = view.parent {
            b.recv(parent, row(r));
        }
        if r != me {
            b.send(view.towards[r as usize], row(r));
        }
    }
}

/// Row by row, each broadcast from the rank that has it.
fn all_gather(tree: &Spanning, view: &View, me: Rank, b: &mut dyn Emit) {
    for &r in &tree.order {
        let from = view.towards[r as usize];
        if r != me {
            b.recv(from, row(r));
        }
        for to in view.neighbours().filter(|&n| n != from) {
            b.send(to, row(r));
        }
    }
}

/// Row by row, each reduced towards the rank that gets it.
fn reduce_scatter(tree: &Spanning, view: &View, me: Rank, b: &mut dyn Emit) {
    for &r in &tree.order {
        let to = view.towards[r as usize];
        for from in view.neighbours().filter(|&n| n != to) {
            b.recv_reduce(from, row(r));
        }
        if r != me {
            b.send(to, row(r));
        }
    }
}

/// Each block along the path between its two ranks; everyone lists all pairs in the same order.
fn all_to_all(view: &View, me: Rank, p: Rank, b: &mut dyn Emit) {
    for distance in 1..p {
        for source in 0..p {
            let target = (source + distance) % p;
            let (from, to) = (view.towards[source as usize], view.towards[target as usize]);
            if from == to {
                continue; // the path does not pass here
            }
            let cell = block(i64::from(source) * i64::from(p) + i64::from(target));
            if source != me {
                b.recv(from, cell);
            }
            if target != me {
                b.send(to, cell);
            }
        }
    }
}
