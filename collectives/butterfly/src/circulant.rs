//! `butterfly-circulant`: the butterfly for any number of ranks.

use unisono_core::{Collective, Link, Rank};
use unisono_program::{Algorithm, Context, Emit, Symmetry, Unsupported, blocks};

use crate::operands_commute;

/// Reduce_scatter and all_gather on the circulant graph of skips p/2, p/4, ..., 1 (each rounded up).
///
/// With blocks counted from the own one, a rank is responsible for its first s = p. A round sends the blocks from
/// s' = ⌈s/2⌉ to s on to the rank s' after, whose first they are, and keeps s'; so each of the p-1 foreign blocks is sent
/// once. All_gather runs the same rounds backward. Träff's algorithms 1 and 2; ⌈log2 p⌉ rounds each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circulant;

impl Algorithm for Circulant {
    fn name(&self) -> &str {
        "butterfly-circulant"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        let offered = [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ];
        cx.require_collective(&offered)?;
        operands_commute(cx)?;
        let p = i64::from(cx.size());
        cx.require_links(halvings(p).into_iter().flat_map(|(_, half)| {
            (0..p).map(move |r| Link::new(r as Rank, ((r + half) % p) as Rank))
        }))
    }

    fn symmetry(&self, cx: &Context) -> Symmetry {
        // The divisions of an average are one step for a range of blocks, but two where the range wraps.
        if cx.collective() == Collective::AllReduce && cx.average() {
            Symmetry::None
        } else {
            Symmetry::Rotation
        }
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        let rank = |r: i64| r.rem_euclid(p) as Rank;
        let halvings = halvings(p);

        if cx.collective() != Collective::AllGather {
            for &(s, half) in &halvings {
                let len = (s - half) as u64;
                b.send(rank(me + half), blocks(me + half, len));
                b.recv_reduce(rank(me - half), blocks(me, len));
            }
        }
        if cx.collective() != Collective::ReduceScatter {
            for &(s, half) in halvings.iter().rev() {
                let len = (s - half) as u64;
                b.send(rank(me - half), blocks(me, len));
                b.recv(rank(me + half), blocks(me + half, len));
            }
        }
    }
}

/// (p, ⌈p/2⌉), (⌈p/2⌉, ⌈p/4⌉), ..., (2, 1).
fn halvings(p: i64) -> Vec<(i64, i64)> {
    let mut s = p;
    let mut all = Vec::new();
    while s > 1 {
        let half = (s + 1) / 2;
        all.push((s, half));
        s = half;
    }
    all
}
