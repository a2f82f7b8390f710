//! Mesh algorithms: every rank talks to every other directly, so that a handful of hops is all there ever is.
//!
//! | name | collectives | rounds | each rank sends, of a vector (or table) of m bytes |
//! |---|---|---|---|
//! | [`mesh-oneshot`](MeshOneshot) | all_reduce | 1 | m (p-1) |
//! | | reduce | 1 | m |
//! | | reduce_scatter | 1 | m (p-1)/p |
//! | [`mesh-twoshot`](MeshTwoshot) | all_reduce | 2 | 2 m (p-1)/p, the minimum |
//! | | reduce_scatter, all_gather | 1 | m (p-1)/p |
//! | | broadcast | 2 | m at the root, m (p-2)/(p-1) elsewhere |
//! | | reduce | 2 | m |
//! | [`mesh-direct`](MeshDirect) | all_gather, all_to_all | 1 | m (p-1)/p |
//! | | broadcast | 1 | m (p-1) at the root |
//! | | gather, scatter | 1 | its row; m (p-1)/p at the root |
//! | | barrier | 1 | p-1 syncs |
//!
//! One-shot is the fewest messages one after the other, two-shot the fewest bytes; both reduce *locally, in rank order*
//! once all contributions are there, so that results have the same bits on every rank and for every algorithm of this
//! crate, and operators need not commute. Reduce-scatter and all-gather by direct exchange: R. Thakur, R. Rabenseifner
//! and W. Gropp, "Optimization of collective communication operations in MPICH", Int. J. High Perf. Comput. Appl. 19
//! (2005). Loops visit peers in the order me+1, me+2, ..., lest everyone calls rank 0 first.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_program::{Context, build};
//!
//! let program = build(&unisono_mesh::MeshOneshot, &Context::full(Collective::AllReduce, 2, 4)).unwrap();
//! assert_eq!(program.steps(), 3 + 3 + 1); // send to all, receive from all, one reduction of four operands
//! ```
#![forbid(unsafe_code)]

mod direct;
mod oneshot;
mod phases;
mod twoshot;

pub use direct::MeshDirect;
pub use oneshot::MeshOneshot;
pub use twoshot::MeshTwoshot;
use unisono_core::{Collective, Link};
use unisono_program::{Context, Registry, Unsupported};

/// Adds `mesh-oneshot`, `mesh-twoshot` and `mesh-direct`.
pub fn register(registry: &mut Registry) {
    registry
        .add_proved(MeshOneshot)
        .add_proved(MeshTwoshot)
        .add_proved(MeshDirect);
}

/// The collective is offered, and the links are there.
fn supports(cx: &Context, offered: &[Collective], star: bool) -> Result<(), Unsupported> {
    cx.require_collective(offered)?;
    if star {
        cx.require_links((0..cx.size()).map(|r| Link::new(cx.root(), r)))
    } else {
        cx.require_mesh()
    }
}
