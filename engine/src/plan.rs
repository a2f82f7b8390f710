//! A program bound to a call: sizes, segments, kernels, private memory, FIFOs. Ready to run many times.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use unisono_contract::{Opening, OutOfMemory, Piece, Region};
use unisono_core::{DType, Homes, Op, Rank, Shape, blocks::segment_range};
use unisono_program::{Kind, LaneKind, Program, Run};
use unisono_reduce::{Kernels, Unavailable};

use crate::layout::{self, Layout};
use crate::moves::{Home, Move, Place};
use crate::operation::Start;
use crate::pieces::{Binding, Finder, Pieces};

/// What a call adds to its program.
#[derive(Debug, Clone)]
pub struct Request {
    /// Elements of the vector, or of one row of the table.
    pub count: u64,
    /// Their type.
    pub dtype: DType,
    /// The operator, where the collective reduces.
    pub op: Option<Op>,
    /// The kernels of a user operator; others are found by `dtype` and `op`.
    pub kernels: Option<Kernels>,
    /// Segments that every step is cut into, at least 1; must be the same on all ranks.
    pub segments: u64,
}

/// Why a program could not be bound.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The operator does not exist for this element type.
    #[error(transparent)]
    Kernels(#[from] Unavailable),
    /// The program reduces, and no operator was named.
    #[error("{collective} needs an operator")]
    NoOperator {
        /// The exchange.
        collective: unisono_core::Collective,
    },
    /// No memory for scratch and staging.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The call has more bytes than an address.
    #[error("{count} elements of {dtype} are more than memory can hold")]
    TooLarge {
        /// Elements.
        count: u64,
        /// Their type.
        dtype: DType,
    },
    /// No endpoint has a link to a peer of the program.
    #[error(
        "no link to rank {peer} on channel {channel} (over TCP there are as many channels as Builder::channels asks for)"
    )]
    NoLink {
        /// The peer.
        peer: Rank,
        /// The channel.
        channel: u16,
    },
}

/// What executes together: the strands of one FIFO, or one local lane.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) role: Role,
    /// Lanes of the program, in merge order.
    pub(crate) lanes: SmallVec<[u32; 1]>,
    /// The engine's FIFO; meaningless for local units.
    pub(crate) fifo: u32,
    /// Receive: staging for one segment. Send: space to pack a long gather list into, if any may come.
    pub(crate) staging: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Send,
    Recv,
    Local,
}

/// A program bound to a call.
#[derive(Debug)]
pub struct Plan {
    pub(crate) program: Arc<Program>,
    pub(crate) shape: Shape,
    pub(crate) homes: Homes,
    pub(crate) layout: Layout,
    pub(crate) element: u64,
    pub(crate) segments: u64,
    pub(crate) kernels: Option<Kernels>,
    pub(crate) opening: Opening,
    pub(crate) check: u32,
    pub(crate) units: Vec<Unit>,
    /// The runs of all lanes, and the first one of each lane.
    pub(crate) moves: Vec<Move>,
    pub(crate) first_moves: Vec<u32>,
    pub(crate) start: Start,
    /// Per lane: the units that wait for it.
    pub(crate) dependents: Vec<SmallVec<[u32; 4]>>,
    /// Segments of all steps of all lanes.
    pub(crate) total: u64,
    workspaces: Mutex<Vec<Region>>,
}

impl Plan {
    pub(crate) fn new(
        program: Arc<Program>,
        request: &Request,
        pieces: usize,
        mut fifo: impl FnMut(LaneKind) -> Result<u32, PlanError>,
    ) -> Result<Plan, PlanError> {
        let segments = request.segments.max(1);
        let element = request.dtype.size() as u64;
        let blocks = program.blocks;
        let shape = Shape::new(program.collective, request.count, blocks, program.subs);
        let rows = if program.collective.cuts_a_vector() {
            1
        } else {
            blocks.max(1)
        };
        let bytes = request
            .count
            .checked_mul(element)
            .and_then(|b| b.checked_mul(rows));
        if bytes.is_none_or(|b| b > 1 << 62) {
            return Err(PlanError::TooLarge {
                count: request.count,
                dtype: request.dtype,
            });
        }
        let reduces = program
            .lanes
            .iter()
            .flat_map(|l| &l.runs)
            .any(|r| matches!(r.kind, Kind::RecvReduce | Kind::Reduce { .. }));
        let kernels = match (&request.kernels, request.op) {
            (Some(kernels), _) => Some(kernels.clone()),
            (None, Some(op)) => Some(Kernels::new(request.dtype, op)?),
            (None, None) if reduces => {
                return Err(PlanError::NoOperator {
                    collective: program.collective,
                });
            }
            (None, None) => None,
        };

        let mut layout = Layout::new(&program, &shape, element);
        let (units, lane_unit) = units(&program, &mut fifo)?;
        let mut plan_units = units;
        for unit in &mut plan_units {
            let bytes = staging_bytes(&program, &shape, unit, segments, element, pieces);
            unit.staging = (layout.take(bytes), bytes);
        }
        let dependents = dependents(&program, &lane_unit);
        let opening = Opening {
            collective: program.collective.code(),
            dtype: request.dtype.code(),
            op: request.op.map_or(0, |op| op.code()),
            root: program.root,
            count: request.count,
            plan: fingerprint(&program, segments),
        };
        let first_moves = program.lanes.iter().scan(0, |next, lane| {
            let first = *next;
            *next += lane.runs.len() as u32;
            Some(first)
        });
        let mut plan = Plan {
            moves: Move::all(&program, &shape),
            first_moves: first_moves.collect(),
            start: Start::default(),
            homes: program.homes(),
            total: program.steps() * segments,
            check: opening.check(),
            opening,
            shape,
            layout,
            element,
            segments,
            kernels,
            units: plan_units,
            dependents,
            program,
            workspaces: Mutex::default(),
        };
        plan.start = Start::new(&plan);
        Ok(plan)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Segments of every step.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Bytes of private memory that each operation in flight uses.
    pub fn workspace_bytes(&self) -> u64 {
        self.layout.bytes
    }

    /// What the first message of the operation says on each FIFO.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    #[inline]
    pub(crate) fn finder(&self) -> Finder<'_> {
        Finder {
            program: &self.program,
            shape: &self.shape,
            homes: &self.homes,
            layout: &self.layout,
            element: self.element,
        }
    }

    /// What a place of a lane is part of.
    #[inline]
    pub(crate) fn run(&self, place: &Place) -> &Move {
        &self.moves[place.run as usize]
    }

    /// Appends the pieces that a reader of the segment at `at` finds.
    #[inline(always)] // once per step
    pub(crate) fn find_old(&self, binding: &Binding, run: &Move, at: &Place, out: &mut Pieces) {
        let memory = match run.reads {
            Home::Input => &binding.input,
            Home::Output => &binding.output,
            Home::Elsewhere => {
                let (span, location) = (run.span(at), Some(&run.location));
                return self
                    .finder()
                    .find(binding, span, location, at.from, at.to, out);
            }
        };
        out.push(self.piece(memory, at));
    }

    /// Appends the pieces that a writer of the segment at `at` fills.
    #[inline(always)] // once per step
    pub(crate) fn find_new(&self, binding: &Binding, run: &Move, at: &Place, out: &mut Pieces) {
        match run.writes {
            Home::Output => out.push(self.piece(&binding.output, at)),
            _ => {
                let span = run.span(at);
                self.finder().find(binding, span, None, at.from, at.to, out);
            }
        }
    }

    /// The segment at `at` of a vector of all blocks.
    #[inline]
    fn piece(&self, memory: &Piece, at: &Place) -> Piece {
        let element = self.element as usize;
        let (from, to) = ((at.start + at.from) as usize, (at.start + at.to) as usize);
        memory.slice(from * element..to * element)
    }

    /// The part of a message of so many elements that segment `segment` is.
    #[inline]
    pub(crate) fn segment(&self, elements: u64, segment: u64) -> std::ops::Range<u64> {
        if self.segments == 1 {
            0..elements
        } else {
            segment_range(elements, self.element, self.segments, segment)
        }
    }

    /// Private memory for one operation, from an earlier one where possible.
    pub(crate) fn workspace(&self) -> Result<Option<Region>, OutOfMemory> {
        if self.layout.bytes == 0 {
            return Ok(None);
        }
        let mut kept = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match kept.pop() {
            Some(region) => Ok(Some(region)),
            None => Region::alloc(self.layout.bytes as usize).map(Some),
        }
    }

    pub(crate) fn give_back(&self, workspace: Region) {
        let mut kept = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.push(workspace);
    }
}

/// Groups lanes by FIFO, in order of appearance.
fn units(
    program: &Program,
    fifo: &mut impl FnMut(LaneKind) -> Result<u32, PlanError>,
) -> Result<(Vec<Unit>, Vec<u32>), PlanError> {
    let mut units: Vec<Unit> = Vec::new();
    let mut by_kind = std::collections::HashMap::new();
    let mut lane_unit = Vec::with_capacity(program.lanes.len());
    for (i, lane) in program.lanes.iter().enumerate() {
        let unit = match by_kind.get(&lane.kind) {
            Some(&unit) => unit,
            None => {
                let (role, fifo) = match lane.kind {
                    LaneKind::Send { .. } => (Role::Send, fifo(lane.kind)?),
                    LaneKind::Recv { .. } => (Role::Recv, fifo(lane.kind)?),
                    LaneKind::Local { .. } => (Role::Local, u32::MAX),
                };
                units.push(Unit {
                    role,
                    lanes: SmallVec::new(),
                    fifo,
                    staging: (0, 0),
                });
                by_kind.insert(lane.kind, units.len() as u32 - 1);
                units.len() as u32 - 1
            }
        };
        units[unit as usize].lanes.push(i as u32);
        lane_unit.push(unit);
    }
    Ok((units, lane_unit))
}

fn staging_bytes(
    program: &Program,
    shape: &Shape,
    unit: &Unit,
    segments: u64,
    element: u64,
    pieces: usize,
) -> u64 {
    let runs = unit
        .lanes
        .iter()
        .flat_map(|&l| &program.lanes[l as usize].runs);
    let wanted = |run: &&Run| match unit.role {
        Role::Recv => true,
        Role::Send => layout::may_exceed(program, shape, run, pieces),
        Role::Local => false,
    };
    let most = runs
        .filter(wanted)
        .map(|run| layout::most_elements(program, shape, run))
        .max()
        .unwrap_or(0);
    if segments == 1 {
        most * element
    } else {
        // Cuts are rounded to 64 bytes, so a segment may be that much longer than its share.
        (most * element).div_ceil(segments) + 2 * layout::ALIGN
    }
}

fn dependents(program: &Program, lane_unit: &[u32]) -> Vec<SmallVec<[u32; 4]>> {
    let mut dependents: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); program.lanes.len()];
    for (lane, unit) in program.lanes.iter().zip(lane_unit) {
        for wait in lane.runs.iter().flat_map(|r| &r.waits) {
            let of = &mut dependents[wait.lane as usize];
            if !of.contains(unit) {
                of.push(*unit);
            }
        }
    }
    dependents
}

/// Hash of algorithm, parameters, segments, channels and world size: equal on all ranks that run the same plan.
fn fingerprint(program: &Program, segments: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(program.algorithm.as_bytes());
    eat(&[0, u8::from(program.average), u8::from(program.commutative)]);
    eat(&program.params.channels.to_le_bytes());
    eat(&segments.to_le_bytes());
    eat(&program.size.to_le_bytes());
    eat(&program.subs.to_le_bytes());
    hash
}
