//! The loops: each is one pass around the ring, written for as many ways (directions) as are used at once.

use unisono_core::Collective;
use unisono_program::{Emit, block};

use crate::way::Way;

/// The steps of `collective` over these ways; nothing for a single rank.
pub(crate) fn emit(collective: Collective, ways: &[Way], b: &mut dyn Emit) {
    if ways.iter().any(|w| w.p < 2) {
        return;
    }
    match collective {
        Collective::AllReduce => {
            reduce_scatter(ways, b);
            all_gather(ways, b);
        }
        Collective::ReduceScatter => reduce_scatter(ways, b),
        Collective::AllGather => all_gather(ways, b),
        Collective::Broadcast => each(ways, b, broadcast),
        Collective::Reduce => each(ways, b, reduce),
        Collective::Gather => each(ways, b, gather),
        Collective::Scatter => each(ways, b, scatter),
        Collective::AllToAll => each(ways, b, all_to_all),
        Collective::Barrier => barrier(ways, b),
        _ => {}
    }
}

fn each(ways: &[Way], b: &mut dyn Emit, pass: fn(&Way, &mut dyn Emit)) {
    for way in ways {
        b.part(way.part);
        pass(way, b);
    }
}

/// Row r starts at the rank after r, grows by one contribution a hop, and is complete when it reaches r.
fn reduce_scatter(ways: &[Way], b: &mut dyn Emit) {
    for k in 0..ways[0].p - 1 {
        for way in ways {
            b.part(way.part);
            b.send(way.next, way.row(-1 - k));
            b.recv_reduce(way.previous, way.row(-2 - k));
        }
    }
}

/// Row r starts at r and is passed on until the rank before r has it.
fn all_gather(ways: &[Way], b: &mut dyn Emit) {
    for k in 0..ways[0].p - 1 {
        for way in ways {
            b.part(way.part);
            b.send(way.next, way.row(-k));
            b.recv(way.previous, way.row(-1 - k));
        }
    }
}

/// A chain from the root to the rank before it.
fn broadcast(way: &Way, b: &mut dyn Emit) {
    if way.from_root > 0 {
        b.recv(way.previous, block(0));
    }
    if way.from_root < way.p - 1 {
        b.send(way.next, block(0));
    }
}

/// A chain from the rank after the root to the root.
fn reduce(way: &Way, b: &mut dyn Emit) {
    if way.from_root != 1 {
        b.recv_reduce(way.previous, block(0));
    }
    if way.from_root != 0 {
        b.send(way.next, block(0));
    }
}

/// Own row first, then those of the ranks behind, nearest first, as they arrive.
fn gather(way: &Way, b: &mut dyn Emit) {
    let root = way.from_root == 0;
    let behind = if root { way.p - 1 } else { way.from_root - 1 };
    for k in 0..=behind {
        if k > 0 {
            b.recv(way.previous, way.row(-k));
        }
        if !root {
            b.send(way.next, way.row(-k));
        }
    }
}

/// The row for the farthest rank first; own row last.
fn scatter(way: &Way, b: &mut dyn Emit) {
    let ahead = way.p - 1 - way.from_root;
    for k in (0..=ahead).rev() {
        if way.from_root > 0 {
            b.recv(way.previous, way.row(k));
        }
        if k > 0 {
            b.send(way.next, way.row(k));
        }
    }
}

/// Round k: what the rank k places behind has for the ranks ahead moves on by one place; each keeps what is for it.
fn all_to_all(way: &Way, b: &mut dyn Emit) {
    for k in 0..way.reach {
        for cells in way.cells(-k, 1, way.reach - k) {
            b.send(way.next, cells);
        }
        for cells in way.cells(-k - 1, 0, way.reach - k) {
            b.recv(way.previous, cells);
        }
    }
}

/// After k rounds a rank has heard of the k ranks behind it, on each way.
fn barrier(ways: &[Way], b: &mut dyn Emit) {
    for _ in 0..ways[0].reach {
        for way in ways {
            b.sync_to(way.next);
        }
        for way in ways {
            b.sync_from(way.previous);
        }
    }
}
