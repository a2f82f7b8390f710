//! How many bytes a step moves.

use unisono_core::Shape;
use unisono_core::blocks::segment_range;
use unisono_program::run::At;
use unisono_program::{Operand, Program};

use crate::Call;

/// Sizes of the messages of one call.
#[derive(Debug)]
pub(crate) struct Sizes {
    shape: Shape,
    element_bytes: u64,
    segments: u64,
    /// Elements of any block, where all blocks are alike: the common case, and no span need be computed.
    alike: Option<u64>,
}

impl Sizes {
    /// Sizes for programs like `program`: all ranks cut the vector alike.
    pub(crate) fn new(program: Option<&Program>, call: &Call) -> Sizes {
        let (collective, blocks, subs) = program
            .map_or((unisono_core::Collective::Barrier, 0, 1), |p| {
                (p.collective, p.blocks, p.subs)
            });
        let shape = Shape::new(collective, call.count, blocks, subs);
        let divides = |count: u64, parts: u64| parts > 0 && count.is_multiple_of(parts);
        let alike = if collective.cuts_a_vector() {
            divides(call.count, blocks.saturating_mul(subs.into()))
        } else {
            divides(call.count, subs.into())
        };
        Sizes {
            shape,
            element_bytes: call.dtype.size() as u64,
            segments: call.segments.max(1),
            alike: (alike && blocks > 0).then(|| shape.len(0)),
        }
    }

    /// Bytes that the segment of the step at `at` has in `operand`.
    #[inline]
    pub(crate) fn bytes(&self, at: &At<'_>, operand: &Operand) -> u64 {
        if operand.span.len == 0 {
            return 0;
        }
        let elements = match self.alike {
            Some(elements) => operand.span.len * elements,
            None => self.elements(at, operand),
        };
        if self.segments == 1 {
            return elements * self.element_bytes;
        }
        let range = segment_range(elements, self.element_bytes, self.segments, at.segment);
        (range.end - range.start) * self.element_bytes
    }

    fn elements(&self, at: &At<'_>, operand: &Operand) -> u64 {
        let program = at.program;
        let span = program.span_at(operand, at.k);
        if program.is_data(span.first) {
            return self.shape.span(span.first, span.len);
        }
        let first = (span.first - program.data_indices()) as usize;
        let slots = program.slots.get(first..first + span.len as usize);
        let like = slots.unwrap_or(&[]).iter().map(|s| self.shape.len(s.like));
        like.sum()
    }
}
