//! The phases that mesh algorithms are made of.

use unisono_core::Rank;
use unisono_program::{Blocks, Context, Emit, block, scratch};

/// The peers as (to, from), k = 1, 2, ...: the rank k after this one, and the one that sends here at the same time.
pub(crate) fn peers(cx: &Context) -> impl Iterator<Item = (Rank, Rank)> {
    let (me, p) = (cx.me(), i64::from(cx.size()));
    (1..p).map(move |k| {
        let rank = |r: i64| r.rem_euclid(p) as Rank;
        (rank(me + k), rank(me - k))
    })
}

/// The block that belongs to `rank`.
pub(crate) fn row(rank: Rank) -> Blocks {
    block(rank.into())
}

/// Whether two ranks simply add what they receive to what they have.
///
/// Cheapest at every size; but rank 1 adds in the other order, and a division in the last reduction rounds once less.
pub(crate) fn adds_in_place(cx: &Context) -> bool {
    cx.size() == 2 && cx.commutative() && !cx.average()
}

/// Receives what `from` contributes to block `mine` (an index): into the block itself, or to be reduced later.
pub(crate) fn recv_contribution(cx: &Context, b: &mut dyn Emit, from: Rank, mine: i64) {
    if adds_in_place(cx) {
        b.recv_reduce(from, block(mine));
    } else {
        b.recv(from, scratch(from.into()).like(mine));
    }
}

/// Reduces all contributions to block `mine`, in rank order; the own one is the block itself.
pub(crate) fn reduce_contributions(cx: &Context, b: &mut dyn Emit, mine: i64) {
    if cx.size() < 2 || adds_in_place(cx) {
        return;
    }
    let contribution = |s: Rank| {
        if s == cx.rank() {
            block(mine)
        } else {
            scratch(s.into()).like(mine)
        }
    };
    let sources: Vec<Blocks> = (0..cx.size()).map(contribution).collect();
    b.reduce(block(mine), &sources);
}

/// Sends row t to rank t, and reduces what everyone sent for the own row.
pub(crate) fn reduce_scatter(cx: &Context, b: &mut dyn Emit) {
    for (to, from) in peers(cx) {
        b.send(to, row(to));
        recv_contribution(cx, b, from, cx.me());
    }
    reduce_contributions(cx, b, cx.me());
}

/// Sends the own row to everyone.
pub(crate) fn all_gather(cx: &Context, b: &mut dyn Emit) {
    for (to, from) in peers(cx) {
        b.send(to, row(cx.rank()));
        b.recv(from, row(from));
    }
}

/// Everyone sends its own row to the root.
pub(crate) fn gather(cx: &Context, b: &mut dyn Emit) {
    if cx.rank() != cx.root() {
        b.send(cx.root(), row(cx.rank()));
        return;
    }
    for (_, from) in peers(cx) {
        b.recv(from, row(from));
    }
}
