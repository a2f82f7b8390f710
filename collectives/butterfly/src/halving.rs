//! `butterfly-halving`: halves of what is left, exchanged at distances p/2, p/4, ..., 1; then the way back.

use unisono_core::{Collective, Link, Rank};
use unisono_program::{Algorithm, Context, Emit, Unsupported, blocks};

use crate::{operands_commute, powers_below};

/// Recursive halving for reduce_scatter, recursive doubling for all_gather, both for all_reduce (Rabenseifner).
///
/// In a round of distance d a rank and its peer share the 2 d blocks that they are still responsible for: each keeps
/// the d of them that hold its own. Needs a power of two.
#[derive(Debug, Clone, Copy, Default)]
pub struct Halving;

impl Algorithm for Halving {
    fn name(&self) -> &str {
        "butterfly-halving"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        let offered = [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ];
        cx.require_collective(&offered)?;
        let size = cx.size();
        if !size.is_power_of_two() {
            return Err(Unsupported::WorldSize {
                size,
                needs: "a power of two",
            });
        }
        operands_commute(cx)?;
        let p = i64::from(size);
        cx.require_links(
            powers_below(p)
                .flat_map(|d| (0..p).map(move |r| Link::new(r as Rank, (r ^ d) as Rank))),
        )
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, p) = (cx.me(), i64::from(cx.size()));
        // The d blocks, a multiple of d, that hold the rank's own.
        let group = |rank: i64, d: i64| blocks(rank & !(d - 1), d as u64);

        if cx.collective() != Collective::AllGather {
            for d in powers_below(p).rev() {
                let peer = me ^ d;
                b.send(peer as Rank, group(peer, d));
                b.recv_reduce(peer as Rank, group(me, d));
            }
        }
        if cx.collective() != Collective::ReduceScatter {
            for d in powers_below(p) {
                let peer = me ^ d;
                b.send(peer as Rank, group(me, d));
                b.recv(peer as Rank, group(peer, d));
            }
        }
    }
}
