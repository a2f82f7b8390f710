//! `mesh-twoshot`: first everyone becomes the owner of one block, then everyone shows it around.

use unisono_core::{Collective, Rank};
use unisono_program::{Algorithm, Context, Emit, Symmetry, Unsupported, block};

use crate::phases::{all_gather, gather, peers, reduce_scatter};

/// Direct reduce-scatter, then direct all-gather: two rounds, the minimum of bytes, no relay.
///
/// Broadcast is a scatter and an all-gather over p-1 blocks, one for each rank but the root, so that the root sends the
/// vector only once; reduce is a reduce-scatter and a gather.
#[derive(Debug, Clone, Copy, Default)]
pub struct MeshTwoshot;

impl Algorithm for MeshTwoshot {
    fn name(&self) -> &str {
        "mesh-twoshot"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        let offered = [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::Broadcast,
            Collective::Reduce,
        ];
        crate::supports(cx, &offered, false)
    }

    fn blocks(&self, cx: &Context) -> u64 {
        let p = u64::from(cx.size());
        match cx.collective() {
            Collective::Broadcast => (p - 1).max(1),
            _ => p,
        }
    }

    fn symmetry(&self, cx: &Context) -> Symmetry {
        match cx.collective() {
            Collective::AllGather => Symmetry::Rotation,
            _ => Symmetry::None,
        }
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        match cx.collective() {
            Collective::AllReduce => {
                reduce_scatter(cx, b);
                all_gather(cx, b);
            }
            Collective::ReduceScatter => reduce_scatter(cx, b),
            Collective::AllGather => all_gather(cx, b),
            Collective::Broadcast => broadcast(cx, b),
            _ => {
                reduce_scatter(cx, b);
                gather(cx, b);
            }
        }
    }
}

/// The root deals one block to each other rank; these deal theirs to each other.
fn broadcast(cx: &Context, b: &mut dyn Emit) {
    let (me, root) = (cx.rank(), cx.root());
    // Block k is for the rank k+1 after the root.
    let dealt = |r: Rank| {
        let after = (i64::from(r) - i64::from(root)).rem_euclid(cx.size().into());
        block(after - 1)
    };
    if me == root {
        for (to, _) in peers(cx) {
            b.send(to, dealt(to));
        }
        return;
    }
    b.recv(root, dealt(me));
    for (to, from) in peers(cx) {
        if to != root {
            b.send(to, dealt(me));
        }
        if from != root {
            b.recv(from, dealt(from));
        }
    }
}
