//! From a range of elements of a span to pieces of memory.

use smallvec::SmallVec;
use unisono_contract::Piece;
use unisono_core::{Homes, Shape};
use unisono_program::{Location, Program, Span};

use crate::layout::Layout;
use crate::moves::elements;

/// A gather list.
pub(crate) type Pieces = SmallVec<[Piece; 8]>;

/// The memory of one operation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Binding {
    pub(crate) input: Piece,
    pub(crate) output: Piece,
    pub(crate) workspace: Piece,
}

/// What is needed to find a block.
pub(crate) struct Finder<'a> {
    pub(crate) program: &'a Program,
    pub(crate) shape: &'a Shape,
    pub(crate) homes: &'a Homes,
    pub(crate) layout: &'a Layout,
    pub(crate) element: u64,
}

impl Finder<'_> {
    /// Appends the pieces of elements `from..to` of the message over `span`.
    ///
    /// `location` says where a reader finds the blocks; `None` means their work homes, where a writer puts them.
    pub(crate) fn find(
        &self,
        binding: &Binding,
        span: Span,
        location: Option<&Location>,
        from: u64,
        to: u64,
        out: &mut Pieces,
    ) {
        if from >= to {
            return;
        }
        if !self.program.is_data(span.first) {
            let slot = (span.first - self.program.data_indices()) as usize;
            let base = self.layout.slots[slot];
            self.push(binding.workspace, base, from, to, out);
            return;
        }
        let mut window = Window { at: 0, from, to };
        match location {
            None | Some(Location::Work) => {
                self.walk(binding, span, true, &mut window, out);
            }
            Some(Location::Input) => self.walk(binding, span, false, &mut window, out),
            Some(Location::Mixed(parts)) => {
                let mut k = 0;
                for &(len, work) in parts {
                    let first = self.program.index_in(span, k);
                    self.walk(binding, Span { first, len }, work, &mut window, out);
                    k += len;
                }
            }
        }
    }

    /// Walks one span whose blocks are all in the input or all in their work homes.
    fn walk(
        &self,
        binding: &Binding,
        span: Span,
        work: bool,
        window: &mut Window,
        out: &mut Pieces,
    ) {
        for range in self.program.ranges(span) {
            let mut first = range.start;
            while first < range.end {
                if window.at >= window.to {
                    return;
                }
                let (memory, base, len) = self.chunk(binding, first, range.end - first, work);
                let elements = elements(self.program, self.shape, Span { first, len });
                if let Some((from, to)) = window.take(elements) {
                    self.push(memory, base, from, to, out);
                }
                first += len;
            }
        }
    }

    /// The memory of block `first`, its byte offset there, and how many blocks (at most `most`) follow it in place.
    #[inline]
    fn chunk(&self, binding: &Binding, first: u64, most: u64, work: bool) -> (Piece, u64, u64) {
        let (sub, block) = if self.shape.subs() == 1 {
            (0, first)
        } else {
            (first / self.shape.blocks(), first % self.shape.blocks())
        };
        let home = |b: u64| {
            if work {
                self.homes.output(b)
            } else {
                self.homes.input(b)
            }
        };
        let Some(row) = home(block) else {
            return self.homeless(binding, first, most);
        };
        let memory = if work { binding.output } else { binding.input };
        let start = self.shape.block_start(row);
        if self.shape.subs() > 1 {
            let within = self.shape.within(sub, block).start;
            return (memory, (start + within) * self.element, 1);
        }
        let last = block + most - 1;
        let together = most > 1 && home(last) == Some(row + most - 1);
        let len = if together { most } else { 1 };
        (memory, start * self.element, len)
    }

    fn homeless(&self, binding: &Binding, first: u64, most: u64) -> (Piece, u64, u64) {
        let area = self.layout.area(first);
        let k = first - area.first;
        match area.stride {
            Some(stride) => (binding.workspace, area.offset + k * stride, 1),
            None => {
                let before = if k == 0 {
                    0
                } else {
                    self.shape.span(area.first, k)
                };
                let len = most.min(area.len - k);
                (binding.workspace, area.offset + before * self.element, len)
            }
        }
    }

    #[inline]
    fn push(&self, memory: Piece, base: u64, from: u64, to: u64, out: &mut Pieces) {
        let start = (base + from * self.element) as usize;
        let end = (base + to * self.element) as usize;
        out.push(memory.slice(start..end));
    }
}

/// The part `from..to` of a message, seen while walking over it.
struct Window {
    at: u64,
    from: u64,
    to: u64,
}

impl Window {
    /// What the window takes of the next `elements`, relative to their start.
    fn take(&mut self, elements: u64) -> Option<(u64, u64)> {
        let (start, end) = (self.at, self.at + elements);
        self.at = end;
        let (from, to) = (self.from.max(start), self.to.min(end));
        (from < to).then(|| (from - start, to - start))
    }
}
