//! Textbook algorithms whose cost has a closed form.

// Each test file uses some of them.
#![allow(dead_code)]

use std::sync::Arc;

use unisono_core::Collective;
use unisono_program::{
    Algorithm, Context, Emit, Params, Program, Unsupported, block, build_all, scratch,
};

/// A function as an algorithm.
pub(crate) struct Of(pub(crate) fn(&Context, &mut dyn Emit));

impl Algorithm for Of {
    fn name(&self) -> &str {
        "textbook"
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        (self.0)(cx, b);
    }
}

pub(crate) fn all_reduce(p: u32, emit: fn(&Context, &mut dyn Emit)) -> Vec<Arc<Program>> {
    build_all(&Of(emit), &Context::full(Collective::AllReduce, 0, p)).unwrap()
}

pub(crate) fn all_reduce_over(
    p: u32,
    channels: u16,
    emit: fn(&Context, &mut dyn Emit),
) -> Vec<Arc<Program>> {
    let params = Params::default().with_channels(channels);
    let cx = Context::full(Collective::AllReduce, 0, p).with_params(params);
    build_all(&Of(emit), &cx).unwrap()
}

pub(crate) fn ring(cx: &Context, b: &mut dyn Emit) {
    let (ring, p) = (cx.ring(), i64::from(cx.size()));
    let (me, left, right) = (ring.position(), ring.left(), ring.right());
    for k in 0..p - 1 {
        b.send(right, block(me - k));
        b.recv_reduce(left, block(me - k - 1));
    }
    for k in 0..p - 1 {
        b.send(right, block(me + 1 - k));
        b.recv(left, block(me - k));
    }
}

/// Each rank reduces its block and hands it to all.
pub(crate) fn mesh(cx: &Context, b: &mut dyn Emit) {
    let (me, p) = (cx.me(), i64::from(cx.size()));
    let rank = |i: i64| i.rem_euclid(p) as u32;
    for d in 1..p {
        b.send(rank(me + d), block(me + d));
        b.recv(rank(me - d), scratch(d as u64).like(me));
    }
    let row = |source: i64| match (source - me).rem_euclid(p) {
        0 => block(me),
        d => scratch((p - d) as u64).like(me),
    };
    let rows: Vec<_> = (0..p).map(row).collect();
    b.reduce(block(me), &rows);
    for d in 1..p {
        b.send(rank(me + d), block(me));
        b.recv(rank(me - d), block(me - d));
    }
}

/// Every block down a chain of ranks, 0 to p - 1.
pub(crate) fn chain(cx: &Context, b: &mut dyn Emit) {
    for i in 0..i64::from(cx.size()) {
        if cx.rank() > 0 {
            b.recv(cx.rank() - 1, block(i));
        }
        if cx.rank() + 1 < cx.size() {
            b.send(cx.rank() + 1, block(i));
        }
    }
}
