//! Programs of one message between two ranks, on the channel of their own.

use unisono_core::{Collective, Rank};

use crate::{Algorithm, BuildError, Context, Emit, Program, Unsupported, block, build};

/// One message to or from `peer`.
struct Message {
    peer: Rank,
}

impl Algorithm for Message {
    fn name(&self) -> &str {
        "message"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::Send, Collective::Recv])
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        match cx.collective() {
            Collective::Send => b.send(self.peer, block(0)),
            _ => b.recv(self.peer, block(0)),
        }
    }
}

/// The program that sends to (`Collective::Send`) or receives from (`Collective::Recv`) `peer`.
pub fn message(cx: &Context, peer: Rank) -> Result<Program, BuildError> {
    build(&Message { peer }, cx)
}
