//! `mesh-oneshot`: everyone sends everything at once; one reduction at the end.

use unisono_core::Collective;
use unisono_program::{Algorithm, Context, Emit, Unsupported, block};

use crate::phases::{peers, recv_contribution, reduce_contributions, reduce_scatter};

/// One message per peer, each received into scratch of its own, then one local reduction in rank order.
///
/// For small messages: the time is one message, whatever the world. Scratch of p-1 vectors (of p-1 rows for
/// reduce_scatter).
#[derive(Debug, Clone, Copy, Default)]
pub struct MeshOneshot;

impl Algorithm for MeshOneshot {
    fn name(&self) -> &str {
        "mesh-oneshot"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        let offered = [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::Reduce,
        ];
        crate::supports(cx, &offered, cx.collective() == Collective::Reduce)
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        match cx.collective() {
            Collective::AllReduce => {
                for (to, from) in peers(cx) {
                    b.send(to, block(0));
                    recv_contribution(cx, b, from, 0);
                }
                reduce_contributions(cx, b, 0);
            }
            Collective::Reduce if cx.rank() == cx.root() => {
                for (_, from) in peers(cx) {
                    recv_contribution(cx, b, from, 0);
                }
                reduce_contributions(cx, b, 0);
            }
            Collective::Reduce => b.send(cx.root(), block(0)),
            _ => reduce_scatter(cx, b),
        }
    }
}
