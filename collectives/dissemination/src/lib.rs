//! `dissemination`: a barrier in ⌈log2 p⌉ rounds.
//!
//! In round k every rank tells the rank 2^k after it and hears from the rank 2^k before it; a rank that speaks has heard
//! everything it was told so far. After round k it has therefore heard, directly or not, of the 2^(k+1) - 1 ranks before
//! it. D. Hensgen, R. Finkel and U. Manber, "Two algorithms for barrier synchronization", Int. J. Parallel Programming
//! 17 (1988). Each rank sends ⌈log2 p⌉ syncs and no data.
//!
//! ```
//! use unisono_core::Collective;
//! use unisono_dissemination::Dissemination;
//! use unisono_program::{Context, build};
//!
//! let program = build(&Dissemination, &Context::full(Collective::Barrier, 0, 5)).unwrap();
//! assert_eq!(program.steps(), 2 * 3);
//! ```
#![forbid(unsafe_code)]

use unisono_core::{Collective, Link, Rank};
use unisono_program::{Algorithm, Context, Emit, Registry, Symmetry, Unsupported};

/// Adds `dissemination`.
pub fn register(registry: &mut Registry) {
    registry.add_proved(Dissemination);
}

/// The dissemination barrier, for any number of ranks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dissemination;

impl Algorithm for Dissemination {
    fn name(&self) -> &str {
        "dissemination"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::Barrier])?;
        let p = cx.size();
        cx.require_links(
            distances(p).flat_map(|d| (0..p).map(move |r| Link::new(r, after(r, d, p)))),
        )
    }

    fn symmetry(&self, _: &Context) -> Symmetry {
        Symmetry::Rotation
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, p) = (cx.rank(), cx.size());
        for distance in distances(p) {
            b.sync_to(after(me, distance, p));
            b.sync_from(after(me, p - distance, p));
        }
    }
}

/// 1, 2, 4, ... below `p`.
fn distances(p: Rank) -> impl Iterator<Item = Rank> {
    (0..Rank::BITS).map(|k| 1 << k).take_while(move |&d| d < p)
}

fn after(rank: Rank, distance: Rank, p: Rank) -> Rank {
    ((u64::from(rank) + u64::from(distance)) % u64::from(p)) as Rank
}
