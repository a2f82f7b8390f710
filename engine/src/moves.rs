//! The runs of a program, worked out for one call, and a place in them.
//!
//! What a segment covers is found once, when its lane gets there, and from step to step without a division.

use unisono_core::Shape;
use unisono_program::{Cursor, Kind, Location, Operand, Program, Run, Span, Wait};

use crate::plan::Plan;

/// A run of a lane.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) kind: Kind,
    /// Blocks per step.
    pub(crate) len: u64,
    /// Where a reader finds the target.
    pub(crate) location: Location,
    /// Where a reader and a writer find it, in short.
    pub(crate) reads: Home,
    pub(crate) writes: Home,
    pub(crate) waits: Box<[Wait]>,
    pub(crate) sources: Box<[Operand]>,
    /// Steps.
    count: u64,
    /// First block of the first step. At each further one it moves on by `hop`, and back by all blocks at `limit`.
    first: u64,
    hop: u64,
    limit: u64,
    /// It is the last one of its lane.
    last: bool,
}

/// Where the target of a step is, when that is simple: one block, in the vector at its own place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// In the input.
    Input,
    /// In the output.
    Output,
    /// To be looked up.
    Elsewhere,
}

/// A segment of a lane: the next one to post, or one in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Index in [`Plan::moves`].
    pub(crate) run: u32,
    pub(crate) lane: u32,
    /// Step of the run.
    pub(crate) k: u64,
    /// Segment of the step.
    pub(crate) segment: u64,
    /// First block of the step.
    pub(crate) first: u64,
    /// First element of the step, in a vector of all blocks.
    pub(crate) start: u64,
    /// Elements `from..to` of the step are the segment.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Move {
    /// The runs of all lanes, one lane after the other.
    pub(crate) fn all(program: &Program, shape: &Shape) -> Vec<Move> {
        let whole = Whole::new(program, shape);
        let lanes = program.lanes.iter().map(|l| &l.runs);
        lanes
            .flat_map(|runs| {
                let last = runs.len().saturating_sub(1);
                let number = runs.iter().enumerate();
                number.map(move |(i, run)| Move::new(program, whole, run, i == last))
            })
            .collect()
    }

    fn new(program: &Program, whole: Whole, run: &Run, last: bool) -> Move {
        let (span, stride) = (run.target.span, run.target.stride);
        let (hop, limit) = if stride == 0 {
            (0, u64::MAX)
        } else if program.is_data(span.first) {
            let base = span.first - program.block_of(span.first);
            let hop = stride.rem_euclid(program.blocks as i64) as u64;
            (hop, base + program.blocks)
        } else {
            (stride as u64, u64::MAX) // Plainly; a negative one by wrapping.
        };
        let simple = span.len == 1 && program.subs == 1 && program.is_data(span.first);
        let home = |holds: bool, home: Home| match simple && holds {
            true => home,
            false => Home::Elsewhere,
        };
        let reads = match run.target.location {
            Location::Input => home(whole.input, Home::Input),
            Location::Work => home(whole.output, Home::Output),
            Location::Mixed(_) => Home::Elsewhere,
        };
        Move {
            reads,
            writes: home(whole.output, Home::Output),
            kind: run.kind,
            len: span.len,
            location: run.target.location.clone(),
            waits: run.waits.as_slice().into(),
            sources: run.sources.clone(),
            count: run.count,
            first: span.first,
            hop,
            limit,
            last,
        }
    }

    /// The target at `place`.
    #[inline]
    pub(crate) fn span(&self, place: &Place) -> Span {
        Span {
            first: place.first,
            len: self.len,
        }
    }
}

/// Whether input and output hold all blocks, each at its own place.
#[derive(Debug, Clone, Copy)]
struct Whole {
    input: bool,
    output: bool,
}

impl Whole {
    fn new(program: &Program, shape: &Shape) -> Whole {
        let homes = program.homes();
        let last = shape.blocks().saturating_sub(1);
        // No collective has homes for the first and the last block at their own places and not for those between.
        let both =
            |home: &dyn Fn(u64) -> Option<u64>| home(0) == Some(0) && home(last) == Some(last);
        Whole {
            input: both(&|b| homes.input(b)),
            output: both(&|b| homes.output(b)),
        }
    }
}

impl Place {
    /// Before the first segment of `lane`, whose runs start at index `run`.
    pub(crate) fn start(plan: &Plan, lane: u32, run: u32) -> Place {
        let mut place = Place {
            run,
            lane,
            k: 0,
            segment: 0,
            first: 0,
            start: 0,
            from: 0,
            to: 0,
        };
        if !plan.program.lanes[lane as usize].runs.is_empty() {
            place.enter(plan);
        }
        place
    }

    /// Moves on by one segment; false at the end of the lane.
    #[inline]
    pub(crate) fn advance(&mut self, plan: &Plan) -> bool {
        self.segment += 1;
        if self.segment < plan.segments {
            self.cut(plan);
            return true;
        }
        self.segment = 0;
        self.k += 1;
        let run = &plan.moves[self.run as usize];
        if self.k < run.count {
            self.first = self.first.wrapping_add(run.hop);
            if self.first >= run.limit {
                self.first -= plan.shape.blocks();
            }
            self.cut(plan);
            return true;
        }
        self.k = 0;
        self.run += 1;
        if run.last {
            return false;
        }
        self.enter(plan);
        true
    }

    /// The cursor of the same place in its lane of the program, whose runs start at index `start`.
    pub(crate) fn cursor(&self, start: u32) -> Cursor {
        Cursor {
            run: self.run - start,
            k: self.k,
            segment: self.segment,
        }
    }

    fn enter(&mut self, plan: &Plan) {
        self.first = plan.moves[self.run as usize].first;
        self.cut(plan);
    }

    #[inline(always)] // once per step
    fn cut(&mut self, plan: &Plan) {
        let (run, shape) = (&plan.moves[self.run as usize], &plan.shape);
        let elements = if run.len == 1 && shape.subs() == 1 && self.first < shape.blocks() {
            self.start = shape.block_start(self.first);
            shape.block_len(self.first)
        } else {
            elements(&plan.program, shape, run.span(self))
        };
        let range = plan.segment(elements, self.segment);
        (self.from, self.to) = (range.start, range.end);
    }
}

/// Elements of the message over `span`.
pub(crate) fn elements(program: &Program, shape: &Shape, span: Span) -> u64 {
    if span.len == 0 {
        return 0;
    }
    if program.is_data(span.first) {
        return shape.span(span.first, span.len);
    }
    let slot = (span.first - program.data_indices()) as usize;
    shape.len(program.slots[slot].like)
}
