//! When everything happens if a message takes one slot and nothing else takes time.

use std::sync::Arc;

use unisono_core::Rank;

use super::DrawError;
use crate::run::{At, Model, Options, run};
use crate::{Kind, LaneKind, Program, Span};

/// The events of a run, in slots.
#[derive(Default)]
pub(super) struct Schedule {
    pub(super) messages: Vec<Message>,
    pub(super) marks: Vec<Mark>,
    /// When the last event happens.
    pub(super) end: u64,
}

/// One message.
pub(super) struct Message {
    pub(super) from: Rank,
    pub(super) to: Rank,
    /// The slot in which it is sent.
    pub(super) sent: u64,
    /// When it is there: at the end of its slot.
    pub(super) arrived: u64,
    /// When the receiver takes it: later than `arrived` if it was not ready.
    pub(super) taken: u64,
    pub(super) end: End,
    pub(super) what: What,
}

/// What a message does at its receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Receive,
    Reduce,
    Sync,
}

/// The blocks of a message or of a local step.
#[derive(Clone, Copy)]
pub(super) struct What {
    /// The first block, and the copy it belongs to.
    pub(super) block: u64,
    pub(super) copy: u64,
    pub(super) len: u64,
}

/// A local step.
pub(super) struct Mark {
    pub(super) rank: Rank,
    pub(super) at: u64,
    pub(super) reduces: bool,
    pub(super) what: What,
}

pub(super) fn schedule(programs: &[Arc<Program>]) -> Result<Schedule, DrawError> {
    let mut schedule = Schedule::default();
    let options = Options {
        segments: 1,
        window: None,
    };
    run(programs, options, &mut schedule)?;
    let (messages, marks) = (&schedule.messages, &schedule.marks);
    let taken = messages.iter().map(|m| m.taken.max(m.arrived));
    schedule.end = taken.chain(marks.iter().map(|m| m.at)).max().unwrap_or(0);
    Ok(schedule)
}

impl Model for Schedule {
    type Time = u64;
    /// Index of the message.
    type Message = usize;

    fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, usize) {
        let to = match at.program.lanes[at.lane as usize].kind {
            LaneKind::Send { peer, .. } | LaneKind::Recv { peer, .. } => peer,
            LaneKind::Local { .. } => at.rank,
        };
        self.messages.push(Message {
            from: at.rank,
            to,
            sent: ready,
            arrived: ready + 1,
            taken: ready + 1,
            end: End::Receive,
            what: what(at),
        });
        (ready + 1, self.messages.len() - 1)
    }

    fn recv(&mut self, at: &At<'_>, message: usize, ready: u64) -> u64 {
        let message = &mut self.messages[message];
        message.taken = message.arrived.max(ready);
        message.end = match at.run.kind {
            Kind::RecvReduce => End::Reduce,
            Kind::SyncFrom => End::Sync,
            _ => End::Receive,
        };
        message.taken
    }

    fn local(&mut self, at: &At<'_>, ready: u64) -> u64 {
        self.marks.push(Mark {
            rank: at.rank,
            at: ready,
            reduces: matches!(at.run.kind, Kind::Reduce { .. }),
            what: what(at),
        });
        ready
    }
}

fn what(at: &At<'_>) -> What {
    let p = at.program;
    if p.blocks == 0 {
        return What {
            block: 0,
            copy: 0,
            len: 0,
        };
    }
    let Span { mut first, len } = p.span_at(&at.run.target, at.k);
    if !p.is_data(first) {
        let slot = (first - p.data_indices()) as usize;
        first = p.slots.get(slot).map_or(0, |s| s.like);
    }
    What {
        block: p.block_of(first),
        copy: first / p.blocks,
        len,
    }
}
