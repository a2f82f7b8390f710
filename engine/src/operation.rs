//! An operation in flight: a plan, its memory, counters of lanes and places of units.

use unisono_contract::Piece;
use unisono_program::ir::next_strand;

use crate::compute::Workspace;
use crate::engine::Ticket;
use crate::moves::{Move, Place};
use crate::pieces::Binding;
use crate::plan::{Plan, Role};

#[derive(Debug, Default)]
pub(crate) struct Operation {
    pub(crate) ticket: Option<Ticket>,
    pub(crate) binding: Binding,
    pub(crate) workspace: Option<Workspace>,
    /// Segments done, by lane: what waits look at.
    pub(crate) done: Vec<u64>,
    pub(crate) units: Vec<UnitState>,
    /// The place of each lane, where some FIFO has several.
    pub(crate) strands: Vec<Place>,
    /// Lane segments that are not done.
    pub(crate) left: u64,
}

/// A unit of an operation: all that a look at it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitState {
    pub(crate) role: Role,
    /// Queued in the engine's work list.
    pub(crate) queued: bool,
    /// The staging (or packing) segment is taken.
    pub(crate) staging_taken: bool,
    /// Everything has been posted (or run).
    pub(crate) ended: bool,
    /// Several lanes share the FIFO.
    pub(crate) stranded: bool,
    /// The engine's FIFO; meaningless for local units.
    pub(crate) fifo: u32,
    /// Number of the next message on the FIFO, skipped ones included.
    pub(crate) message: u32,
    /// The operation's place in its sequence (point-to-point counts per FIFO).
    pub(crate) sequence: u64,
    /// The wait it was last found to be held by.
    pub(crate) held: Unmet,
    /// The next segment to post (or to run). Meaningless after the end.
    pub(crate) at: Place,
}

/// A wait that does not hold yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unmet {
    /// The lane that is waited for.
    pub(crate) lane: u32,
    /// What its counter must reach.
    pub(crate) until: u64,
}

impl Unmet {
    /// No lane has this number.
    pub(crate) const NOTHING: Unmet = Unmet {
        lane: u32::MAX,
        until: 0,
    };
}

impl UnitState {
    /// Whether it receives and cannot do so now: who frees its staging wakes it.
    #[inline]
    pub(crate) fn needs_staging(&self) -> bool {
        self.staging_taken && self.role == Role::Recv && self.at.from < self.at.to
    }
}

impl Operation {
    pub(crate) fn start(
        &mut self,
        ticket: Ticket,
        plan: &Plan,
        binding: Binding,
        workspace: Option<Workspace>,
    ) {
        self.done.clear();
        self.done.resize(plan.program.lanes.len(), 0);
        self.units.clear();
        self.units.extend_from_slice(&plan.start.units);
        self.strands.clear();
        self.strands.extend_from_slice(&plan.start.strands);
        self.left = plan.total;
        self.binding = binding;
        self.workspace = workspace;
        self.ticket = Some(ticket);
    }

    /// The first wait of the segment at `place` of `run` that does not hold.
    #[inline]
    pub(crate) fn unmet(&self, run: &Move, place: &Place, segments: u64) -> Option<Unmet> {
        for wait in &run.waits {
            let until = wait.needs(place.k, place.segment, segments);
            if self.done[wait.lane as usize] < until {
                let lane = wait.lane;
                return Some(Unmet { lane, until });
            }
        }
        None
    }

    /// Moves a unit on by one segment; false when it has ended.
    #[inline(always)] // once per step
    pub(crate) fn step_over(&mut self, plan: &Plan, unit: u32) -> bool {
        let state = &mut self.units[unit as usize];
        state.message += 1;
        let more = state.at.advance(plan);
        state.ended = !more;
        if state.stranded {
            return self.change_strand(plan, unit);
        }
        more
    }

    /// Goes to the strand with the next message: what the other end of the FIFO does too.
    fn change_strand(&mut self, plan: &Plan, unit: u32) -> bool {
        let state = &mut self.units[unit as usize];
        self.strands[state.at.lane as usize] = state.at;
        let next = first_strand(plan, &plan.units[unit as usize].lanes, &self.strands);
        state.ended = next.is_none();
        if let Some(place) = next {
            state.at = place;
        }
        next.is_some()
    }
}

fn first_strand(plan: &Plan, lanes: &[u32], places: &[Place]) -> Option<Place> {
    let strands = lanes.iter().enumerate().map(|(i, &lane)| {
        let start = plan.first_moves[lane as usize];
        let cursor = places[lane as usize].cursor(start);
        (i, &plan.program.lanes[lane as usize], cursor)
    });
    next_strand(strands, plan.segments).map(|i| places[lanes[i] as usize])
}

/// What an operation starts from.
#[derive(Debug, Default)]
pub(crate) struct Start {
    units: Vec<UnitState>,
    strands: Vec<Place>,
}

impl Start {
    pub(crate) fn new(plan: &Plan) -> Start {
        let lanes = 0..plan.program.lanes.len() as u32;
        let places: Vec<Place> = lanes
            .map(|lane| Place::start(plan, lane, plan.first_moves[lane as usize]))
            .collect();
        let units: Vec<UnitState> = plan
            .units
            .iter()
            .map(|unit| {
                let first = first_strand(plan, &unit.lanes, &places);
                UnitState {
                    role: unit.role,
                    queued: false,
                    staging_taken: false,
                    ended: first.is_none(),
                    stranded: unit.lanes.len() > 1,
                    fifo: unit.fifo,
                    message: 0,
                    sequence: 0,
                    held: Unmet::NOTHING,
                    at: first.unwrap_or(places[unit.lanes[0] as usize]),
                }
            })
            .collect();
        let stranded = units.iter().any(|u| u.stranded);
        Start {
            strands: if stranded { places } else { Vec::new() },
            units,
        }
    }
}

/// The staging segment of a unit, `bytes` of it.
#[inline]
pub(crate) fn staging(plan: &Plan, operation: &Operation, unit: u32, bytes: usize) -> Piece {
    let start = plan.units[unit as usize].staging.0 as usize;
    operation.binding.workspace.slice(start..start + bytes)
}
