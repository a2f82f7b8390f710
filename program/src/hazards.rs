//! Who last wrote a block, and who still reads it: an interval map over block indices.
//!
//! Steps name ranges, so per-block bookkeeping would be quadratic; intervals are split where steps disagree and joined
//! again when one step writes across them.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use crate::Span;

/// One step's use of one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) lane: u32,
    pub(crate) step: u64,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    end: u64,
    /// The last step that wrote it; `None`: untouched since the start.
    pub(crate) writer: Option<Access>,
    /// Per lane, the last step that read it since it was written.
    pub(crate) readers: SmallVec<[Access; 2]>,
}

#[derive(Debug, Default)]
pub(crate) struct Hazards {
    cells: BTreeMap<u64, Cell>,
}

impl Hazards {
    /// Visits the cells of `range` with their ranges, untouched gaps included.
    pub(crate) fn visit(&self, range: Range<u64>, mut f: impl FnMut(Range<u64>, Option<&Cell>)) {
        let mut at = range.start;
        let first = self
            .cells
            .range(..=range.start)
            .next_back()
            .filter(|(_, c)| c.end > range.start);
        let rest = self
            .cells
            .range(range.start + 1..range.end.max(range.start + 1));
        for (&start, cell) in first.into_iter().chain(rest) {
            if start >= range.end {
                break;
            }
            if start > at {
                f(at..start, None);
                at = start;
            }
            let end = cell.end.min(range.end);
            f(at..end, Some(cell));
            at = end;
        }
        if at < range.end {
            f(at..range.end, None);
        }
    }

    /// Notes that `access` reads `range`.
    pub(crate) fn read(&mut self, range: Range<u64>, access: Access) {
        self.isolate(&range);
        let mut at = range.start;
        let mut gaps: SmallVec<[Range<u64>; 2]> = SmallVec::new();
        for (&start, cell) in self.cells.range_mut(range.clone()) {
            if start > at {
                gaps.push(at..start);
            }
            match cell.readers.iter_mut().find(|r| r.lane == access.lane) {
                Some(reader) => *reader = access,
                None => cell.readers.push(access),
            }
            at = cell.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            let cell = Cell {
                end: gap.end,
                writer: None,
                readers: SmallVec::from_slice(&[access]),
            };
            self.cells.insert(gap.start, cell);
        }
    }

    /// Notes that `access` writes `range`: it becomes one cell again.
    pub(crate) fn write(&mut self, range: Range<u64>, access: Access) {
        self.isolate(&range);
        let first = self.cells.entry(range.start).or_default();
        first.end = range.end;
        first.writer = Some(access);
        first.readers.clear();
        while let Some((&next, _)) = self.cells.range(range.start + 1..range.end).next() {
            self.cells.remove(&next);
        }
    }

    /// Splits cells that cross the ends of `range`.
    fn isolate(&mut self, range: &Range<u64>) {
        for edge in [range.start, range.end] {
            if let Some((&start, cell)) = self.cells.range_mut(..edge).next_back()
                && cell.end > edge
            {
                let mut upper = cell.clone();
                cell.end = edge;
                upper.end = upper.end.max(edge);
                debug_assert!(start < edge);
                self.cells.insert(edge, upper);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(step: u64) -> Access {
        Access {
            lane: 0,
            step,
            span: Span { first: 0, len: 1 },
        }
    }

    fn writers(h: &Hazards, range: Range<u64>) -> Vec<(Range<u64>, Option<u64>)> {
        let mut seen = Vec::new();
        h.visit(range, |r, c| {
            seen.push((r, c.and_then(|c| c.writer).map(|w| w.step)));
        });
        seen
    }

    #[test]
    fn a_write_inside_a_write_leaves_both_ends() {
        let mut h = Hazards::default();
        h.write(0..10, access(1));
        h.write(3..5, access(2));
        assert_eq!(
            writers(&h, 0..12),
            [
                (0..3, Some(1)),
                (3..5, Some(2)),
                (5..10, Some(1)),
                (10..12, None)
            ]
        );
        h.write(2..11, access(3));
        assert_eq!(
            writers(&h, 1..12),
            [(1..2, Some(1)), (2..11, Some(3)), (11..12, None)]
        );
    }

    #[test]
    fn reads_fill_gaps_without_becoming_writers() {
        let mut h = Hazards::default();
        h.write(4..6, access(1));
        h.read(0..10, access(2));
        assert_eq!(
            writers(&h, 0..10),
            [(0..4, None), (4..6, Some(1)), (6..10, None)]
        );
        let mut readers = 0;
        h.visit(0..10, |_, c| readers += c.unwrap().readers.len());
        assert_eq!(readers, 3);
    }
}
