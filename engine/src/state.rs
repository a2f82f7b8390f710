//! What moves: the units of operations in flight, their FIFOs and counters.
//!
//! Plans are borrowed beside the state rather than owned by it, so that a step costs no reference count.

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_contract::{Direction, Frame, Port, Token};
use unisono_program::{Cursor, Kind, ir::next_strand};

use crate::apply;
use crate::engine::{EngineError, Post, Ticket};
use crate::fifo::{Entry, Fifo, Via};
use crate::operation::{Operation, staging};
use crate::pieces::{Binding, Pieces};
use crate::plan::{Plan, Role};

/// The plan of each operation slot; a slot that is not running keeps its last one.
pub(crate) type Plans = [Arc<Plan>];

/// A post that has been given out and not answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) fifo: u32,
    pub(crate) entry: Entry,
}

/// What a unit did when it was looked at.
pub(crate) enum Step {
    /// `self.post` is filled.
    Post,
    /// It did something and may do more.
    Again,
    /// It cannot move now.
    Idle,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) group: u32,
    pub(crate) epoch: u32,
    pub(crate) fifos: Vec<Fifo>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) free: Vec<u32>,
    /// Units that may be able to move: (operation slot, unit).
    pub(crate) work: VecDeque<(u32, u32)>,
    pub(crate) finished: VecDeque<Ticket>,
    pub(crate) running: usize,
    pub(crate) post: Post,
    pub(crate) offered: Option<Offer>,
    /// Segments of steps executed.
    pub(crate) steps: u64,
}

impl State {
    pub(crate) fn new(group: u32, epoch: u32) -> State {
        State {
            group,
            epoch,
            fifos: Vec::new(),
            operations: Vec::new(),
            free: Vec::new(),
            work: VecDeque::new(),
            finished: VecDeque::new(),
            running: 0,
            post: Post {
                direction: Direction::Send,
                endpoint: 0,
                port: Port(0),
                frame: Frame::default(),
                pieces: Pieces::new(),
                token: Token(0),
            },
            offered: None,
            steps: 0,
        }
    }

    /// Looks at units until one has something to post.
    pub(crate) fn next(&mut self, plans: &Plans) -> Result<bool, EngineError> {
        debug_assert!(self.offered.is_none(), "answer the last post first");
        while let Some((slot, unit)) = self.work.pop_front() {
            self.operations[slot as usize].units[unit as usize].queued = false;
            match self.look(plans, slot, unit)? {
                Step::Post => {
                    self.operations[slot as usize].units[unit as usize].queued = true;
                    self.work.push_front((slot, unit));
                    return Ok(true);
                }
                Step::Again if self.operations[slot as usize].ticket.is_some() => {
                    self.wake(slot, unit);
                }
                Step::Again | Step::Idle => {}
            }
        }
        Ok(false)
    }

    /// The endpoint has taken the last post.
    pub(crate) fn posted(&mut self, plans: &Plans) {
        let Some(Offer { fifo, entry }) = self.offered.take() else {
            return;
        };
        let fifo = &mut self.fifos[fifo as usize];
        fifo.outstanding.push_back(entry);
        fifo.posted += 1;
        if entry.via != Via::Direct {
            fifo.detours += 1;
            let operation = &mut self.operations[entry.operation as usize];
            operation.units[entry.unit as usize].staging_taken = true;
        }
        self.step_over(plans, entry);
    }

    /// The endpoint had no room for the last post.
    pub(crate) fn refused(&mut self) {
        if let Some(Offer { fifo, .. }) = self.offered.take() {
            self.fifos[fifo as usize].stalled = true;
        }
    }

    /// The endpoint is done with the oldest post of FIFO `index`.
    pub(crate) fn complete(
        &mut self,
        plans: &Plans,
        index: usize,
        port: Port,
    ) -> Result<(), EngineError> {
        let stray = EngineError::StrayCompletion { port };
        let Some(fifo) = self.fifos.get_mut(index) else {
            return Err(stray);
        };
        let Some(place) = fifo
            .outstanding
            .iter()
            .position(|e| matches!(e.via, Via::Direct | Via::Staged))
        else {
            return Err(stray);
        };
        let was_blocked = fifo.stalled || fifo.posted >= fifo.depth;
        fifo.stalled = false;
        fifo.posted -= 1;
        let entry = fifo.outstanding[place];
        let sending = fifo.direction == Direction::Send;
        let mut freed = was_blocked;
        match entry.via {
            // Only what landed earlier and waits, or is skipped, can stand before it; then it has to wait too.
            Via::Staged if !sending => fifo.outstanding[place].via = Via::Landed,
            _ => {
                debug_assert_eq!(place, 0, "completions come in order");
                fifo.outstanding.pop_front();
                if entry.via == Via::Staged {
                    fifo.detours -= 1;
                    freed = true;
                    let operation = &mut self.operations[entry.operation as usize];
                    operation.units[entry.unit as usize].staging_taken = false;
                }
                self.advance(plans, entry.operation, entry.lane);
            }
        }
        self.settle(plans, index)?;
        if freed {
            self.wake_head(index);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn wake(&mut self, slot: u32, unit: u32) {
        let state = &mut self.operations[slot as usize].units[unit as usize];
        if !state.queued {
            state.queued = true;
            self.work.push_back((slot, unit));
        }
    }

    /// Wakes the unit that may post next on a FIFO.
    #[inline]
    fn wake_head(&mut self, fifo: usize) {
        if let Some(&(slot, unit)) = self.fifos[fifo].queue.front() {
            self.wake(slot, unit);
        }
    }

    fn look(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, EngineError> {
        if self.operations[slot as usize].ticket.is_none() {
            return Ok(Step::Idle);
        }
        let units = &plans[slot as usize].units;
        match units[unit as usize].role {
            Role::Local => self.look_local(plans, slot, unit),
            Role::Send => self.look_send(plans, slot, unit),
            Role::Recv => {
                self.settle(plans, units[unit as usize].fifo as usize)?;
                if self.operations[slot as usize].ticket.is_none() {
                    return Ok(Step::Idle);
                }
                self.look_recv(plans, slot, unit)
            }
        }
    }

    fn look_local(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, EngineError> {
        let plan = &*plans[slot as usize];
        let lane = plan.units[unit as usize].lanes[0];
        let program_lane = &plan.program.lanes[lane as usize];
        let operation = &self.operations[slot as usize];
        let cursor = operation.lanes[lane as usize].cursor;
        let Some(run) = cursor.at(program_lane) else {
            return Ok(Step::Idle);
        };
        if !operation.ready(run, cursor.k, cursor.segment, plan.segments) {
            return Ok(Step::Idle);
        }
        apply::local(plan, operation, run, cursor)?;
        let state = &mut self.operations[slot as usize].lanes[lane as usize];
        state.cursor.advance(program_lane, plan.segments);
        self.advance(plans, slot, lane);
        Ok(Step::Again)
    }

    /// The next message of a unit's FIFO: its lane and cursor.
    #[inline]
    fn head(&self, plan: &Plan, slot: u32, unit: u32) -> Option<(u32, Cursor)> {
        let operation = &self.operations[slot as usize];
        let lanes = &plan.units[unit as usize].lanes;
        let at = |&lane: &u32| operation.lanes[lane as usize].cursor;
        let lane = match lanes[..] {
            [lane] => lane,
            _ => {
                let strands = lanes.iter().enumerate();
                let strands = strands.map(|(i, l)| (i, &plan.program.lanes[*l as usize], at(l)));
                lanes[next_strand(strands, plan.segments)?]
            }
        };
        let cursor = at(&lane);
        cursor.at(&plan.program.lanes[lane as usize])?;
        Some((lane, cursor))
    }

    fn look_send(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, EngineError> {
        let plan = &*plans[slot as usize];
        let index = plan.units[unit as usize].fifo;
        let fifo = &self.fifos[index as usize];
        if fifo.queue.front() != Some(&(slot, unit)) || fifo.stalled || fifo.posted >= fifo.depth {
            return Ok(Step::Idle);
        }
        let Some((lane, cursor)) = self.head(plan, slot, unit) else {
            return Ok(Step::Idle);
        };
        let operation = &self.operations[slot as usize];
        let run = &plan.program.lanes[lane as usize].runs[cursor.run as usize];
        if !operation.ready(run, cursor.k, cursor.segment, plan.segments) {
            return Ok(Step::Idle);
        }
        let span = plan.program.span_at(&run.target, cursor.k);
        let range = plan.segment(span, cursor.segment);
        let (from, to) = (range.start, range.end);
        let mut entry = Entry {
            operation: slot,
            unit,
            lane,
            cursor,
            from,
            to,
            via: Via::Direct,
        };
        let state = operation.units[unit as usize];
        if range.is_empty() && state.message > 0 && run.kind == Kind::Send {
            entry.via = Via::Skipped;
            return self.skip(plans, index, entry);
        }
        self.post.pieces.clear();
        let location = Some(&run.target.location);
        let finder = plan.finder();
        finder.find(
            &operation.binding,
            span,
            location,
            from,
            to,
            &mut self.post.pieces,
        );
        if self.post.pieces.len() > fifo.pieces {
            if state.staging_taken {
                return Ok(Step::Idle); // the packing space is in use
            }
            let bytes = ((to - from) * plan.element) as usize;
            let packed = staging(plan, operation, unit, bytes);
            unisono_contract::memory::copy_bytes_across(&[packed], &self.post.pieces)?;
            self.post.pieces.clear();
            self.post.pieces.push(packed);
            entry.via = Via::Staged;
        }
        self.offer(plan, index, entry, (to - from) * plan.element);
        Ok(Step::Post)
    }

    fn look_recv(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, EngineError> {
        let plan = &*plans[slot as usize];
        let index = plan.units[unit as usize].fifo;
        let fifo = &self.fifos[index as usize];
        if fifo.queue.front() != Some(&(slot, unit)) || fifo.stalled || fifo.posted >= fifo.depth {
            return Ok(Step::Idle);
        }
        let Some((lane, cursor)) = self.head(plan, slot, unit) else {
            return Ok(Step::Idle);
        };
        let operation = &self.operations[slot as usize];
        let run = &plan.program.lanes[lane as usize].runs[cursor.run as usize];
        let reduces = run.kind == Kind::RecvReduce;
        let state = operation.units[unit as usize];
        if reduces && state.staging_taken {
            return Ok(Step::Idle);
        }
        let span = plan.program.span_at(&run.target, cursor.k);
        let range = plan.segment(span, cursor.segment);
        let (from, to) = (range.start, range.end);
        let bytes = (to - from) * plan.element;
        let mut entry = Entry {
            operation: slot,
            unit,
            lane,
            cursor,
            from,
            to,
            via: Via::Skipped,
        };
        if range.is_empty() && state.message > 0 && run.kind != Kind::SyncFrom {
            return self.skip(plans, index, entry);
        }
        let ready = operation.ready(run, cursor.k, cursor.segment, plan.segments);
        self.post.pieces.clear();
        if ready && !reduces && fifo.detours == 0 {
            entry.via = Via::Direct;
            let finder = plan.finder();
            finder.find(
                &operation.binding,
                span,
                None,
                from,
                to,
                &mut self.post.pieces,
            );
        }
        if entry.via != Via::Direct || self.post.pieces.len() > fifo.pieces {
            if state.staging_taken {
                return Ok(Step::Idle);
            }
            entry.via = Via::Staged;
            self.post.pieces.clear();
            if bytes > 0 {
                let staged = staging(plan, operation, unit, bytes as usize);
                self.post.pieces.push(staged);
            }
        }
        self.offer(plan, index, entry, bytes);
        Ok(Step::Post)
    }

    /// Fills the frame and the address of `self.post`; its pieces are there.
    fn offer(&mut self, plan: &Plan, fifo: u32, entry: Entry, bytes: u64) {
        let state = self.operations[entry.operation as usize].units[entry.unit as usize];
        let at = &self.fifos[fifo as usize];
        self.post.direction = at.direction;
        self.post.endpoint = at.endpoint;
        self.post.port = at.port;
        self.post.token = Token(fifo.into());
        self.post.frame = Frame {
            length: bytes,
            sequence: state.sequence,
            message: state.message,
            group: self.group,
            epoch: self.epoch,
            check: plan.check,
            opening: (state.message == 0).then_some(plan.opening),
        };
        self.offered = Some(Offer { fifo, entry });
    }

    /// Counts an empty message that does not travel.
    fn skip(&mut self, plans: &Plans, fifo: u32, entry: Entry) -> Result<Step, EngineError> {
        let at = &mut self.fifos[fifo as usize];
        at.outstanding.push_back(entry);
        at.detours += 1;
        self.step_over(plans, entry);
        self.settle(plans, fifo as usize)?;
        Ok(Step::Again)
    }

    /// Moves the posting cursor past `entry`; hands the FIFO to the next operation after the last message.
    fn step_over(&mut self, plans: &Plans, entry: Entry) {
        let plan = &*plans[entry.operation as usize];
        let operation = &mut self.operations[entry.operation as usize];
        let lane = &plan.program.lanes[entry.lane as usize];
        operation.units[entry.unit as usize].message += 1;
        let state = &mut operation.lanes[entry.lane as usize];
        state.cursor.advance(lane, plan.segments);
        let over = state.cursor.at(lane).is_none()
            && self.head(plan, entry.operation, entry.unit).is_none();
        if over {
            let fifo = plan.units[entry.unit as usize].fifo as usize;
            self.fifos[fifo].queue.pop_front();
            self.wake_head(fifo);
        }
    }

    /// Applies what stands at the front of a FIFO and may be applied: landed messages and skipped ones.
    fn settle(&mut self, plans: &Plans, fifo: usize) -> Result<(), EngineError> {
        while let Some(&entry) = self.fifos[fifo].outstanding.front() {
            if !matches!(entry.via, Via::Landed | Via::Skipped) {
                return Ok(());
            }
            let operation = &self.operations[entry.operation as usize];
            let plan = &*plans[entry.operation as usize];
            let run = &plan.program.lanes[entry.lane as usize].runs[entry.cursor.run as usize];
            let (k, segment) = (entry.cursor.k, entry.cursor.segment);
            if !operation.ready(run, k, segment, plan.segments) {
                return Ok(());
            }
            if entry.via == Via::Landed && entry.from < entry.to {
                apply::landed(plan, operation, run, &entry)?;
            }
            self.fifos[fifo].outstanding.pop_front();
            self.fifos[fifo].detours -= 1;
            if entry.via == Via::Landed {
                self.operations[entry.operation as usize].units[entry.unit as usize]
                    .staging_taken = false;
            }
            self.advance(plans, entry.operation, entry.lane);
            self.wake_head(fifo);
        }
        Ok(())
    }

    /// One more segment of a lane is done: counts it and wakes who waits for it.
    fn advance(&mut self, plans: &Plans, slot: u32, lane: u32) {
        self.steps += 1;
        let operation = &mut self.operations[slot as usize];
        operation.lanes[lane as usize].done += 1;
        operation.left -= 1;
        if operation.left == 0 {
            return self.finish(plans, slot);
        }
        for &unit in &plans[slot as usize].dependents[lane as usize] {
            let state = &mut operation.units[unit as usize];
            if !state.queued {
                state.queued = true;
                self.work.push_back((slot, unit));
            }
        }
    }

    pub(crate) fn finish(&mut self, plans: &Plans, slot: u32) {
        let operation = &mut self.operations[slot as usize];
        if let Some(workspace) = operation.workspace.take() {
            plans[slot as usize].give_back(workspace);
        }
        operation.binding = Binding::default();
        if let Some(ticket) = operation.ticket.take() {
            self.finished.push_back(ticket);
            self.running -= 1;
            self.work.retain(|&(s, _)| s != slot);
            self.free.push(slot);
        }
    }

    /// Forgets every operation.
    pub(crate) fn abandon(&mut self) {
        for (slot, operation) in self.operations.iter_mut().enumerate() {
            if operation.ticket.take().is_some() {
                operation.workspace = None;
                operation.binding = Binding::default();
                self.free.push(slot as u32);
            }
        }
        for fifo in &mut self.fifos {
            fifo.queue.clear();
            fifo.outstanding.clear();
            (fifo.posted, fifo.detours) = (0, 0);
        }
        self.work.clear();
        self.offered = None;
        self.running = 0;
    }
}
