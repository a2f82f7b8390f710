//! The program of one rank: lanes of rolled steps, and the waits between them.
//!
//! ```text
//! program of rank 0                      (ring all_reduce, 4 ranks)
//!   lane 0  send to 1     send [0] input; send [3] [2] [1] [0] [3], each waiting for the next step of lane 1
//!   lane 1  recv from 3   recv_reduce [3] [2] [1]; recv [0] [3] [2], each waiting for the next step of lane 0
//! ```
//!
//! Nothing here knows how large a block is: see `unisono_core::Shape` for that.

use unisono_core::{Collective, Homes, Rank};

use crate::{Params, Stage};

/// Consecutive blocks: `len` of them from index `first`, wrapping inside the copy (channel and part) of `first`.
///
/// Indices below [`Program::data_indices`] are data: `sub * blocks + block`. The others are private scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// First index.
    pub first: u64,
    /// Number of blocks.
    pub len: u64,
}

/// Where the blocks of a span are when a step reads them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// All still in the input: never written so far.
    Input,
    /// All in their work home: the output where they have a home there, scratch otherwise.
    Work,
    /// In turn: so many blocks, in their work home or not.
    Mixed(Box<[(u64, bool)]>),
}

/// A span that advances from step to step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The span of the run's first step.
    pub span: Span,
    /// Added to `span.first` at each step: modulo the blocks of one copy for data, plainly for scratch.
    pub stride: i64,
    /// Where a reader finds it. Meaningless for a target that is only written.
    pub location: Location,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Send the target span.
    Send,
    /// Receive over the target span.
    Recv,
    /// Receive and reduce into the target span: `target = target (+) incoming`.
    RecvReduce,
    /// Tell a peer; no data.
    SyncTo,
    /// Hear from a peer; no data.
    SyncFrom,
    /// `target = sources[0] (+) sources[1] (+) ...`.
    Reduce {
        /// Divide by the number of ranks before rounding.
        finish: bool,
    },
    /// `target = sources[0]`.
    Copy,
}

/// A counter of another lane that must have been reached, advancing from step to step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The lane that is waited for.
    pub lane: u32,
    /// Index of the step in that lane; a negative one has always been reached.
    pub step: i64,
    /// Added to `step` at each step of the run.
    pub stride: i64,
    /// All segments of that step, not only the same one.
    pub whole: bool,
}

/// Equal steps that advance by constant strides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run {
    /// Index in the lane of the first step.
    pub start: u64,
    /// Number of steps.
    pub count: u64,
    /// What each does.
    pub kind: Kind,
    /// What it sends, receives or writes. Empty for sync.
    pub target: Operand,
    /// What reduce and copy read.
    pub sources: Box<[Operand]>,
    /// What each step waits for, by lane; at most one per lane.
    pub waits: Vec<Wait>,
    /// In a schedule of waves: the stage of the first step, and what is added at each further one.
    pub stage: Option<(Stage, Stage)>,
}

/// Which way a lane faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKind {
    /// Messages to a peer.
    Send {
        /// The peer.
        peer: Rank,
        /// The channel.
        channel: u16,
    },
    /// Messages from a peer.
    Recv {
        /// The peer.
        peer: Rank,
        /// The channel.
        channel: u16,
    },
    /// Local reductions and copies.
    Local {
        /// The channel.
        channel: u16,
    },
}

/// An ordered list of steps with one counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Which way it faces.
    pub kind: LaneKind,
    /// Number of steps.
    pub steps: u64,
    /// The steps, rolled.
    pub runs: Vec<Run>,
}

/// A private scratch block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot {
    /// It is as large as this data index.
    pub like: u64,
}

/// What one rank does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its parameters.
    pub params: Params,
    /// The exchange.
    pub collective: Collective,
    /// This rank.
    pub rank: Rank,
    /// Number of ranks.
    pub size: Rank,
    /// The root, 0 where there is none.
    pub root: Rank,
    /// Blocks of one copy of the work vector.
    pub blocks: u64,
    /// Copies (channels times parts): each block is cut into so many.
    pub subs: u32,
    /// Send, receive and local lanes. Lanes that share a FIFO are its strands, in order.
    pub lanes: Vec<Lane>,
    /// Private scratch blocks: slot i has index `data_indices() + i`.
    pub slots: Vec<Slot>,
    /// Data indices without an output home that are written: they live in scratch. Sorted, disjoint, not wrapping.
    pub homeless: Vec<Span>,
    /// Whether operand order is rank order by the algorithm's own word.
    pub commutative: bool,
    /// Whether results are divided by the number of ranks.
    pub average: bool,
}

impl Program {
    /// The first index that is private scratch.
    pub fn data_indices(&self) -> u64 {
        self.blocks * u64::from(self.subs)
    }

    /// Which blocks live in the input and in the output.
    pub fn homes(&self) -> Homes {
        Homes::new(self.collective, self.rank, self.size, self.root)
    }

    /// The block of the collective that a data index belongs to.
    pub fn block_of(&self, index: u64) -> u64 {
        index % self.blocks
    }

    /// Whether `index` is data rather than private scratch.
    pub fn is_data(&self, index: u64) -> bool {
        index < self.data_indices()
    }

    /// Number of steps in all lanes.
    pub fn steps(&self) -> u64 {
        self.lanes.iter().map(|l| l.steps).sum()
    }

    /// The `k`-th index of a span.
    pub fn index_in(&self, span: Span, k: u64) -> u64 {
        if !self.is_data(span.first) {
            return span.first + k;
        }
        let (sub, block) = (span.first / self.blocks, span.first % self.blocks);
        sub * self.blocks + (block + k) % self.blocks
    }

    /// The span as one or two ranges that do not wrap.
    pub fn ranges(&self, span: Span) -> impl Iterator<Item = std::ops::Range<u64>> + use<> {
        let (first, second) = if !self.is_data(span.first) || span.len == 0 {
            (span.first..span.first + span.len, 0..0)
        } else {
            let base = span.first / self.blocks * self.blocks;
            let end = span.first + span.len;
            let limit = base + self.blocks;
            if end <= limit {
                (span.first..end, 0..0)
            } else {
                (span.first..limit, base..base + (end - limit))
            }
        };
        [first, second].into_iter().filter(|r| r.start < r.end)
    }

    /// The span of `operand` at step `k` of its run.
    #[inline]
    pub fn span_at(&self, operand: &Operand, k: u64) -> Span {
        let first = operand.span.first;
        if k == 0 || operand.stride == 0 {
            return operand.span;
        }
        let moved = operand.stride * k as i64;
        let first = if self.is_data(first) {
            let (base, block) = if self.subs == 1 {
                (0, first)
            } else {
                (first / self.blocks * self.blocks, first % self.blocks)
            };
            base + (block as i64 + moved).rem_euclid(self.blocks as i64) as u64
        } else {
            first.wrapping_add_signed(moved)
        };
        Span {
            first,
            len: operand.span.len,
        }
    }
}

impl Lane {
    /// The run that holds step `index`, and the step's place in it.
    pub fn find(&self, index: u64) -> Option<(&Run, u64)> {
        let at = self.runs.partition_point(|r| r.start + r.count <= index);
        let run = self.runs.get(at)?;
        Some((run, index - run.start))
    }
}

impl Run {
    /// The stage of step `k` of the run.
    #[inline]
    pub fn stage_at(&self, k: u64) -> Option<Stage> {
        self.stage.map(|(first, stride)| Stage {
            hops: first.hops + stride.hops * k as i64,
            offset: first.offset + stride.offset * k as i64,
        })
    }
}

impl Wait {
    /// The step waited for at step `k` of the run; negative: none.
    #[inline]
    pub fn step_at(&self, k: u64) -> i64 {
        self.step + self.stride * k as i64
    }

    /// What the counter of `lane` must have reached for segment `segment` of `segments`, at step `k` of the run.
    #[inline]
    pub fn needs(&self, k: u64, segment: u64, segments: u64) -> u64 {
        let step = self.step_at(k);
        if step < 0 {
            0
        } else if self.whole {
            (step as u64 + 1) * segments
        } else {
            step as u64 * segments + segment + 1
        }
    }
}

/// A place in a lane, in segments; what every executor of programs keeps per lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cursor {
    /// Index of the run.
    pub run: u32,
    /// Step of the run.
    pub k: u64,
    /// Segment of the step.
    pub segment: u64,
}

impl Cursor {
    /// The run and the step the cursor is at; `None` at the end.
    #[inline]
    pub fn at<'a>(&self, lane: &'a Lane) -> Option<&'a Run> {
        lane.runs.get(self.run as usize)
    }

    /// Moves on by one segment.
    #[inline]
    pub fn advance(&mut self, lane: &Lane, segments: u64) {
        self.segment += 1;
        if self.segment == segments {
            self.segment = 0;
            self.k += 1;
            if self.k == lane.runs[self.run as usize].count {
                self.k = 0;
                self.run += 1;
            }
        }
    }

    /// The slot of the message the cursor is at, in a schedule of waves: what FIFOs are merged by.
    #[inline]
    pub fn slot(&self, lane: &Lane, segments: u64) -> Option<i64> {
        let run = self.at(lane)?;
        let stage = run.stage_at(self.k)?;
        Some(stage.slot(segments) + self.segment as i64)
    }
}

/// Of the strands of one FIFO, which holds its next message.
///
/// `strands` yields each strand with its cursor; ties go to the earlier strand. `None`: all have ended.
#[inline]
pub fn next_strand<'a>(
    strands: impl IntoIterator<Item = (usize, &'a Lane, Cursor)>,
    segments: u64,
) -> Option<usize> {
    let mut best: Option<(i64, usize)> = None;
    for (i, lane, cursor) in strands {
        if cursor.at(lane).is_none() {
            continue;
        }
        let slot = cursor.slot(lane, segments).unwrap_or(i64::MIN);
        if best.is_none_or(|(s, _)| slot < s) {
            best = Some((slot, i));
        }
    }
    best.map(|(_, i)| i)
}
