//! From checked calls to operations: which part of the memory is input and which output.

use unisono_contract::Piece;
use unisono_control::Check;
use unisono_core::Collective;
use unisono_engine::Ticket;

use crate::plans::Spec;
use crate::{Error, Group};

/// The memory of a call at this rank. In place, `input` is empty and `output` is the buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    pub(crate) input: Piece,
    pub(crate) output: Piece,
}

impl Group {
    /// Submits a call; `None` when there is nothing to move, which touches no transport.
    pub(crate) fn launch(
        &self,
        spec: Spec,
        in_place: bool,
        memory: Memory,
    ) -> Result<Option<Ticket>, Error> {
        if self.check == Check::Full && self.size() > 1 && !spec.collective.is_point_to_point() {
            self.agree(&spec)?;
        }
        if spec.collective == Collective::Barrier {
            if self.size() == 1 {
                return Ok(None);
            }
        } else if spec.count == 0 && !spec.collective.is_point_to_point() {
            // What is wrong with the choice is still said.
            self.shared.lock().plans.choose(spec, &self.tuning)?;
            return Ok(None);
        }
        let (input, output) = if in_place {
            self.in_place(spec, memory.output)
        } else {
            (memory.input, memory.output)
        };
        let ticket = self.shared.submit(spec, &self.tuning, input, output)?;
        Ok(Some(ticket))
    }

    /// Input and output of an in-place call: the same memory, or one a row of the other.
    fn in_place(&self, spec: Spec, buffer: Piece) -> (Piece, Piece) {
        use Collective as C;
        let row = spec.count as usize * spec.dtype.size();
        let start = self.rank() as usize * row;
        let at_root = self.rank() == spec.root;
        match spec.collective {
            C::ReduceScatter => (buffer, buffer.slice(start..start + row)),
            C::AllGather => (buffer.slice(start..start + row), buffer),
            C::Broadcast if !at_root => (Piece::EMPTY, buffer),
            C::Reduce if !at_root => (buffer, Piece::EMPTY),
            _ => (buffer, buffer),
        }
    }

    /// Waits for a launched call.
    pub(crate) fn finish(&self, ticket: Option<Ticket>) -> Result<(), Error> {
        match ticket {
            Some(ticket) => self.shared.wait(&[ticket], self.timeout),
            None => Ok(()),
        }
    }

    /// Waits for two launched calls, in the time of one.
    pub(crate) fn finish_both(&self, tickets: [Option<Ticket>; 2]) -> Result<(), Error> {
        match tickets {
            [Some(first), Some(second)] => self.shared.wait(&[first, second], self.timeout),
            [first, second] => self.finish(first.or(second)),
        }
    }
}
