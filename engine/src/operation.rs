//! An operation in flight: a plan, its memory, and a counter per lane.

use unisono_contract::{Piece, Region};
use unisono_program::{Cursor, Run};

use crate::engine::Ticket;
use crate::pieces::Binding;
use crate::plan::Plan;

#[derive(Debug, Default)]
pub(crate) struct Operation {
    pub(crate) ticket: Option<Ticket>,
    pub(crate) binding: Binding,
    pub(crate) workspace: Option<Region>,
    pub(crate) lanes: Vec<LaneState>,
    pub(crate) units: Vec<UnitState>,
    /// Lane segments that are not done.
    pub(crate) left: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LaneState {
    /// The next segment to post (or to run, in a local lane).
    pub(crate) cursor: Cursor,
    /// Segments done: what waits look at.
    pub(crate) done: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnitState {
    /// Queued in the engine's work list.
    pub(crate) queued: bool,
    /// The staging (or packing) segment is taken.
    pub(crate) staging_taken: bool,
    /// Number of the next message on the FIFO, skipped ones included.
    pub(crate) message: u32,
    /// The operation's place in the FIFO's own sequence (point-to-point counts per FIFO).
    pub(crate) sequence: u64,
}

impl Operation {
    pub(crate) fn start(
        &mut self,
        ticket: Ticket,
        plan: &Plan,
        binding: Binding,
        workspace: Option<Region>,
    ) {
        self.lanes.clear();
        self.lanes
            .resize(plan.lane_unit.len(), LaneState::default());
        self.units.clear();
        self.units.resize(plan.units.len(), UnitState::default());
        self.left = plan.total;
        self.binding = binding;
        self.workspace = workspace;
        self.ticket = Some(ticket);
    }

    /// Whether the waits of segment `segment` of step `k` of `run` hold.
    #[inline]
    pub(crate) fn ready(&self, run: &Run, k: u64, segment: u64, segments: u64) -> bool {
        run.waits
            .iter()
            .all(|w| self.lanes[w.lane as usize].done >= w.needs(k, segment, segments))
    }
}

/// The staging segment of a unit, `bytes` of it.
#[inline]
pub(crate) fn staging(plan: &Plan, operation: &Operation, unit: u32, bytes: usize) -> Piece {
    let start = plan.units[unit as usize].staging.0 as usize;
    operation.binding.workspace.slice(start..start + bytes)
}
