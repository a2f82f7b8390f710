//! `ring`: one direction.

use unisono_program::{Algorithm, Context, Emit, Symmetry, Unsupported};

use crate::passes;
use crate::way::Way;

/// Everything flows from each position to the next one.
///
/// Uses one direction of each link: best where links are half duplex or both directions share a limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ring;

impl Algorithm for Ring {
    fn name(&self) -> &str {
        "ring"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        crate::supports(cx)
    }

    fn blocks(&self, cx: &Context) -> u64 {
        crate::blocks(cx)
    }

    fn symmetry(&self, cx: &Context) -> Symmetry {
        crate::symmetry(cx)
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        passes::emit(cx.collective(), &[Way::forward(cx)], b);
    }
}
