//! `mesh-direct`: every block straight from where it is to where it belongs.

use unisono_core::{Collective, Rank};
use unisono_program::{Algorithm, Blocks, Context, Emit, Symmetry, Unsupported, block};

use crate::phases::{all_gather, gather, peers, row};

/// The exchanges without reduction, one message per pair.
#[derive(Debug, Clone, Copy, Default)]
pub struct MeshDirect;

impl Algorithm for MeshDirect {
    fn name(&self) -> &str {
        "mesh-direct"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        let offered = [
            Collective::AllGather,
            Collective::Broadcast,
            Collective::Gather,
            Collective::Scatter,
            Collective::AllToAll,
            Collective::Barrier,
        ];
        crate::supports(cx, &offered, cx.collective().is_rooted())
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn symmetry(&self, cx: &Context) -> Symmetry {
        match cx.collective() {
            Collective::AllGather | Collective::Barrier => Symmetry::Rotation,
            _ => Symmetry::None,
        }
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        match cx.collective() {
            Collective::AllGather => all_gather(cx, b),
            Collective::Broadcast => to_all(cx, b, |_| block(0)),
            Collective::Scatter => to_all(cx, b, row),
            Collective::Gather => gather(cx, b),
            Collective::AllToAll => {
                let cell = |from: Rank, to: Rank| {
                    block(i64::from(from) * i64::from(cx.size()) + i64::from(to))
                };
                for (to, from) in peers(cx) {
                    b.send(to, cell(cx.rank(), to));
                    b.recv(from, cell(from, cx.rank()));
                }
            }
            _ => {
                // All told before any is heard: a sync says that everything heard so far has been heard.
                for (to, _) in peers(cx) {
                    b.sync_to(to);
                }
                for (_, from) in peers(cx) {
                    b.sync_from(from);
                }
            }
        }
    }
}

/// From the root to every other rank, what it shall have.
fn to_all(cx: &Context, b: &mut dyn Emit, what: fn(Rank) -> Blocks) {
    if cx.rank() != cx.root() {
        b.recv(cx.root(), what(cx.rank()));
        return;
    }
    for (to, _) in peers(cx) {
        b.send(to, what(to));
    }
}
