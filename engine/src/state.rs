//! What moves: the units of operations in flight, their FIFOs and counters.
//!
//! Plans are borrowed beside the state rather than owned by it, so that a step costs no reference count.
//!
//! # Who wakes whom
//! A unit that cannot go on leaves the work list for one reason, and whoever ends the reason puts it back:
//!
//! | it cannot go on because | woken by |
//! |---|---|
//! | another operation has messages left to post on the FIFO | [`pass_on`](State::pass_on) after the last of them |
//! | the endpoint has no room, or the staging is taken | a completion, or [`settle`](State::settle) |
//! | a wait does not hold ([`Unmet`](crate::operation::Unmet)) | [`advance`](State::advance) of the lane waited for |

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_contract::{Direction, Frame, Port, Revoked, Token};

use crate::apply;
use crate::compute::Hook;
use crate::engine::{Post, Ticket};
use crate::fifo::{Entry, Fifo, Via};
use crate::operation::{Operation, Unmet};
use crate::pieces::{Binding, Pieces};
use crate::plan::Plan;

/// The plan of each operation slot; a slot that is not running keeps its last one.
pub(crate) type Plans = [Arc<Plan>];

/// A post that has been given out and not answered: what its unit is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) operation: u32,
    pub(crate) unit: u32,
    pub(crate) via: Via,
}

/// What can go wrong inside; small, because every look returns it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Memory(Revoked),
    /// A completion without a post.
    Stray,
}

impl From<Revoked> for Fault {
    fn from(revoked: Revoked) -> Fault {
        Fault::Memory(revoked)
    }
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

/// What all frames of an engine say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) group: u32,
    pub(crate) epoch: u32,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) fifos: Vec<Fifo>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) free: Vec<u32>,
    /// The unit that posted last: it may have more, and is looked at first.
    pub(crate) current: Option<(u32, u32)>,
    /// Units that may be able to move: (operation slot, unit).
    pub(crate) work: VecDeque<(u32, u32)>,
    pub(crate) finished: VecDeque<Ticket>,
    pub(crate) running: usize,
    pub(crate) post: Post,
    pub(crate) offered: Option<Offer>,
    /// Segments of steps executed.
    pub(crate) steps: u64,
    /// Who does the local work.
    pub(crate) compute: Hook,
}

impl State {
    pub(crate) fn new(group: u32, epoch: u32) -> State {
        State {
            life: Life { group, epoch },
            fifos: Vec::new(),
            operations: Vec::new(),
            free: Vec::new(),
            current: None,
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
            compute: Hook::default(),
        }
    }

    /// Looks at units until one has something to post.
    #[inline(always)] // once per step
    pub(crate) fn next(&mut self, plans: &Plans) -> Result<bool, Revoked> {
        debug_assert!(self.offered.is_none(), "answer the last post first");
        while let Some((slot, unit)) = self.current.take().or_else(|| self.work.pop_front()) {
            self.operations[slot as usize].units[unit as usize].queued = false;
            match self.look(plans, slot, unit)? {
                Step::Post => return Ok(true),
                Step::Again if self.operations[slot as usize].ticket.is_some() => {
                    self.wake(slot, unit);
                }
                Step::Again | Step::Idle => {}
            }
        }
        Ok(false)
    }

    /// The endpoint has taken the last post.
    #[inline(always)] // once per step
    pub(crate) fn posted(&mut self, plans: &Plans) {
        let Some(offer) = self.offered.take() else {
            return;
        };
        let operation = &mut self.operations[offer.operation as usize];
        let unit = &mut operation.units[offer.unit as usize];
        let fifo = &mut self.fifos[unit.fifo as usize];
        fifo.outstanding.push_back(Entry {
            operation: offer.operation,
            unit: offer.unit,
            via: offer.via,
            place: unit.at,
        });
        fifo.posted += 1;
        if offer.via != Via::Direct {
            fifo.detours += 1;
            unit.staging_taken = true;
        }
        if !operation.step_over(&plans[offer.operation as usize], offer.unit) {
            self.pass_on(offer.operation, offer.unit);
        } else if !operation.units[offer.unit as usize].needs_staging() {
            self.look_next(offer);
        }
    }

    /// The endpoint had no room for the last post.
    pub(crate) fn refused(&mut self) {
        if let Some(offer) = self.offered.take() {
            let unit = &self.operations[offer.operation as usize].units[offer.unit as usize];
            self.fifos[unit.fifo as usize].stalled = true;
        }
    }

    /// The link of the last post is broken: it is offered, and fails, again.
    pub(crate) fn failed(&mut self) {
        if let Some(offer) = self.offered.take() {
            self.look_next(offer);
        }
    }

    #[inline]
    fn look_next(&mut self, offer: Offer) {
        let unit = &mut self.operations[offer.operation as usize].units[offer.unit as usize];
        if !unit.queued {
            unit.queued = true;
            self.current = Some((offer.operation, offer.unit));
        }
    }

    /// The endpoint is done with the oldest post of FIFO `index`.
    #[inline(always)] // once per step
    pub(crate) fn complete(&mut self, plans: &Plans, index: usize) -> Result<(), Fault> {
        let Some(fifo) = self.fifos.get_mut(index) else {
            return Err(Fault::Stray);
        };
        let Some(place) = fifo.oldest_posted() else {
            return Err(Fault::Stray);
        };
        let mut freed = !fifo.has_room();
        fifo.stalled = false;
        fifo.posted -= 1;
        let entry = &mut fifo.outstanding[place];
        if entry.via == Via::Staged && fifo.direction == Direction::Recv {
            // What landed earlier and waits, or is skipped, may stand before it; then it has to wait too.
            entry.via = Via::Landed;
        } else {
            debug_assert_eq!(place, 0, "completions come in order");
            let (operation, unit, via) = (entry.operation, entry.unit, entry.via);
            let lane = entry.place.lane;
            fifo.outstanding.pop_front();
            if via == Via::Staged {
                fifo.detours -= 1;
                freed = true;
                self.operations[operation as usize].units[unit as usize].staging_taken = false;
            }
            self.advance(plans, operation, lane);
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

    /// Hands the FIFO of a unit that has posted all its messages to the next operation.
    pub(crate) fn pass_on(&mut self, slot: u32, unit: u32) {
        let fifo = self.operations[slot as usize].units[unit as usize].fifo as usize;
        self.fifos[fifo].queue.pop_front();
        self.wake_head(fifo);
    }

    /// Applies what stands at the front of a FIFO and may be applied: landed messages and skipped ones.
    #[inline]
    pub(crate) fn settle(&mut self, plans: &Plans, fifo: usize) -> Result<(), Revoked> {
        match self.fifos[fifo].outstanding.front() {
            Some(entry) if !entry.via.is_posted() => self.settle_front(plans, fifo),
            _ => Ok(()),
        }
    }

    fn settle_front(&mut self, plans: &Plans, fifo: usize) -> Result<(), Revoked> {
        while let Some(entry) = self.fifos[fifo].outstanding.front() {
            if entry.via.is_posted() {
                return Ok(());
            }
            let (slot, place) = (entry.operation, &entry.place);
            let plan = &*plans[slot as usize];
            let operation = &mut self.operations[slot as usize];
            let run = plan.run(place);
            if let Some(unmet) = operation.unmet(run, place, plan.segments) {
                operation.units[entry.unit as usize].held = unmet;
                return Ok(());
            }
            if entry.via == Via::Landed {
                if place.from < place.to {
                    apply::landed(&mut self.compute, plan, operation, run, entry)?;
                }
                operation.units[entry.unit as usize].staging_taken = false;
            }
            let lane = place.lane;
            self.fifos[fifo].outstanding.pop_front();
            self.fifos[fifo].detours -= 1;
            self.advance(plans, slot, lane);
            self.wake_head(fifo);
        }
        Ok(())
    }

    /// One more segment of a lane is done: counts it and wakes who waits for it.
    #[inline(always)] // once per step
    pub(crate) fn advance(&mut self, plans: &Plans, slot: u32, lane: u32) {
        self.steps += 1;
        let operation = &mut self.operations[slot as usize];
        operation.left -= 1;
        if operation.left == 0 {
            return self.finish(plans, slot);
        }
        let done = &mut operation.done[lane as usize];
        *done += 1;
        let done = *done;
        for &unit in &plans[slot as usize].dependents[lane as usize] {
            let state = &mut operation.units[unit as usize];
            if state.held.lane == lane && state.held.until <= done && !state.queued {
                (state.held, state.queued) = (Unmet::NOTHING, true);
                self.work.push_back((slot, unit));
            }
        }
    }

    pub(crate) fn finish(&mut self, plans: &Plans, slot: u32) {
        let operation = &mut self.operations[slot as usize];
        if let Some(workspace) = operation.workspace.take() {
            self.compute.release(&plans[slot as usize], workspace);
        }
        operation.binding = Binding::default();
        if let Some(ticket) = operation.ticket.take() {
            self.finished.push_back(ticket);
            self.running -= 1;
            self.current = self.current.filter(|&(s, _)| s != slot);
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
            (fifo.posted, fifo.detours, fifo.stalled) = (0, 0, false);
        }
        self.work.clear();
        self.current = None;
        self.offered = None;
        self.running = 0;
    }
}
