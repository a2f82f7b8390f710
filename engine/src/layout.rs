//! Where a plan's private memory is: scratch blocks, one segment of staging per receive FIFO, packing space.

use unisono_core::Shape;
use unisono_program::{Location, Program, Run};

use crate::moves::elements;

/// Everything starts at a multiple of this: cuts, staging and headers agree on it.
pub(crate) const ALIGN: u64 = 64;

pub(crate) fn align(bytes: u64) -> u64 {
    bytes.div_ceil(ALIGN) * ALIGN
}

/// Data blocks without an output home, side by side.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    pub(crate) first: u64,
    pub(crate) len: u64,
    pub(crate) offset: u64,
    /// Bytes from one block to the next, where they do not simply touch (several copies).
    pub(crate) stride: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) areas: Vec<Area>,
    /// Byte offset of each private scratch block.
    pub(crate) slots: Vec<u64>,
    /// Bytes used so far.
    pub(crate) bytes: u64,
}

impl Layout {
    /// Gives every homeless and every private block its place. All scratch is handed out here.
    pub(crate) fn new(program: &Program, shape: &Shape, size: u64) -> Layout {
        let mut layout = Layout::default();
        for span in &program.homeless {
            let (bytes, stride) = if shape.subs() == 1 {
                (shape.span(span.first, span.len) * size, None)
            } else {
                let largest = (span.first..span.first + span.len)
                    .map(|i| shape.len(i))
                    .max()
                    .unwrap_or(0);
                let stride = align(largest * size);
                (stride * span.len, Some(stride))
            };
            let offset = layout.take(bytes);
            layout.areas.push(Area {
                first: span.first,
                len: span.len,
                offset,
                stride,
            });
        }
        for slot in &program.slots {
            let offset = layout.take(shape.len(slot.like) * size);
            layout.slots.push(offset);
        }
        layout
    }

    /// `bytes` more, aligned.
    pub(crate) fn take(&mut self, bytes: u64) -> u64 {
        let offset = self.bytes;
        self.bytes += align(bytes);
        offset
    }

    /// The area that holds a homeless block.
    pub(crate) fn area(&self, index: u64) -> &Area {
        let after = self.areas.partition_point(|a| a.first <= index);
        &self.areas[after - 1]
    }
}

/// The most elements that any step of `run` moves.
pub(crate) fn most_elements(program: &Program, shape: &Shape, run: &Run) -> u64 {
    if !program.is_data(run.target.span.first) || run.count == 1 || run.target.stride == 0 {
        // Scratch blocks of one run may differ in size: look at each.
        return (0..run.count)
            .map(|k| elements(program, shape, program.span_at(&run.target, k)))
            .max()
            .unwrap_or(0);
    }
    // Balanced blocks differ by one element, and a copy's share of one by another.
    let len = run.target.span.len;
    let first = elements(program, shape, run.target.span);
    first + 2 * len
}

/// Whether the gather list of some step of `run` may have more than `limit` pieces.
pub(crate) fn may_exceed(program: &Program, shape: &Shape, run: &Run, limit: usize) -> bool {
    let span = run.target.span;
    if span.len <= limit as u64 || !program.is_data(span.first) {
        return false;
    }
    if shape.subs() > 1 {
        return true;
    }
    let pattern = match &run.target.location {
        Location::Mixed(parts) => parts.len(),
        _ => 1,
    };
    // One more for wrapping, and per boundary between homes.
    let homes = match program.collective {
        unisono_core::Collective::AllToAll => span.len as usize,
        _ => 2 * program.homeless.len() + 2,
    };
    pattern + homes + 1 > limit
}
