//! `ring-bidir`: both directions at once.

use unisono_core::Collective;
use unisono_program::{Algorithm, Context, Emit, Symmetry, Unsupported};

use crate::passes;
use crate::way::Way;

/// One half of each block flows forward and the other half backward, so that both directions of each link are used.
///
/// All_to_all cuts nothing: each block goes the shorter way round.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingBidir;

impl Algorithm for RingBidir {
    fn name(&self) -> &str {
        "ring-bidir"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        crate::supports(cx)
    }

    fn blocks(&self, cx: &Context) -> u64 {
        crate::blocks(cx)
    }

    fn parts(&self, cx: &Context) -> u32 {
        match cx.collective() {
            Collective::AllToAll | Collective::Barrier => 1,
            _ => 2,
        }
    }

    fn symmetry(&self, cx: &Context) -> Symmetry {
        crate::symmetry(cx)
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let last = self.parts(cx) - 1;
        let near = Way::forward(cx).reaching(i64::from(cx.size()) / 2);
        let far = Way::backward(cx).reaching((i64::from(cx.size()) - 1) / 2);
        passes::emit(cx.collective(), &[near, far.on_part(last)], b);
    }
}
