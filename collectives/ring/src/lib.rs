//! Ring algorithms: every rank talks to its two neighbours only, and large messages move the fewest bytes possible.
//!
//! | name | collectives | rounds | each rank sends, of a vector (or table) of m bytes |
//! |---|---|---|---|
//! | [`ring`](Ring) | all_reduce | 2 (p-1) | 2 m (p-1)/p |
//! | | reduce_scatter, all_gather | p-1 | m (p-1)/p |
//! | | broadcast, reduce | p-1 | m, pipelined in segments |
//! | | gather, scatter | p-1 | up to m (p-1)/p, relayed row by row |
//! | | all_to_all | p-1 | m (p-1)/2, relayed |
//! | | barrier | p-1 | p-1 syncs |
//! | [`ring-bidir`](RingBidir) | the same | the same; barrier p/2 | half of it each way; all_to_all about m p/4 in all |
//!
//! The bounds of all_reduce are those of P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters
//! of workstations", J. Parallel Distrib. Comput. 69 (2009). Loops run over *positions* in the ring that was found;
//! blocks are named through the rank at a position, because rank order is not cable order.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{Context, build};
//!
//! let program = build(&unisono_ring::Ring, &Context::full(Collective::AllReduce, 0, 1000)).unwrap();
//! assert_eq!(program.steps(), 4 * 999);
//! assert_eq!(program.lanes.iter().map(|l| l.runs.len()).sum::<usize>(), 4); // whatever the world
//! ```
#![forbid(unsafe_code)]

mod bidir;
mod passes;
mod ring;
mod way;

pub use bidir::RingBidir;
pub use ring::Ring;
use unisono_core::Collective;
use unisono_program::{Context, Registry, Symmetry, Unsupported};

/// Adds `ring` and `ring-bidir`.
pub fn register(registry: &mut Registry) {
    registry.add_proved(Ring).add_proved(RingBidir);
}

/// What both rings ask of the world.
fn supports(cx: &Context) -> Result<(), Unsupported> {
    cx.require_collective(&Collective::ALL)?;
    if cx.collective() == Collective::AllToAll && cx.size() > RELAY_LIMIT {
        return Err(Unsupported::WorldSize {
            size: cx.size(),
            needs: "at most 256 ranks (the relay holds p*p/2 blocks)",
        });
    }
    if cx.collective().reduces() {
        cx.require_commutative()?;
    }
    cx.require_ring()
}

/// All_to_all names p*p blocks, and a ring relays half of them through every rank.
const RELAY_LIMIT: u32 = 256;

/// Everyone does the same, so that one program gives all: not where there is a root, nor in a table of p*p blocks.
fn symmetry(cx: &Context) -> Symmetry {
    let alike = !cx.collective().is_rooted() && cx.collective() != Collective::AllToAll;
    if alike && cx.ring().is_rank_order() {
        Symmetry::Rotation
    } else {
        Symmetry::None
    }
}

/// A chain passes the whole vector on, cut into segments by whoever runs it; the others need a block per rank.
fn blocks(cx: &Context) -> u64 {
    match cx.collective() {
        Collective::Broadcast | Collective::Reduce => 1,
        _ => u64::from(cx.size()),
    }
}
