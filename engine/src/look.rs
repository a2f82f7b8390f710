//! Looking at a unit: what it can do now, be it a post, local work or nothing.

use unisono_contract::{Frame, Revoked, Token};
use unisono_program::Kind;

use crate::apply;
use crate::engine::Post;
use crate::fifo::{Entry, Fifo, Via};
use crate::operation::{UnitState, staging};
use crate::plan::{Plan, Role};
use crate::state::{Life, Offer, Plans, State, Step};

impl State {
    #[inline(always)] // Called in one place, once per step.
    pub(crate) fn look(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, Revoked> {
        let state = &self.operations[slot as usize].units[unit as usize];
        match state.role {
            Role::Local => self.look_local(plans, slot, unit),
            Role::Send => self.look_send(plans, slot, unit),
            Role::Recv => {
                self.settle(plans, state.fifo as usize)?;
                self.look_recv(plans, slot, unit)
            }
        }
    }

    fn look_local(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, Revoked> {
        let plan = &*plans[slot as usize];
        let operation = &mut self.operations[slot as usize];
        let state = &operation.units[unit as usize];
        if state.ended {
            return Ok(Step::Idle);
        }
        let (at, run) = (state.at, plan.run(&state.at));
        if let Some(unmet) = operation.unmet(run, &at, plan.segments) {
            operation.units[unit as usize].held = unmet;
            return Ok(Step::Idle);
        }
        apply::local(&mut self.compute, plan, operation, run, &at)?;
        operation.step_over(plan, unit);
        self.advance(plans, slot, at.lane);
        Ok(Step::Again)
    }

    #[inline]
    fn look_send(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, Revoked> {
        let plan = &*plans[slot as usize];
        let operation = &mut self.operations[slot as usize];
        let state = &operation.units[unit as usize];
        let fifo = &self.fifos[state.fifo as usize];
        if !fifo.admits(slot, unit) {
            return Ok(Step::Idle);
        }
        let (at, run) = (&state.at, plan.run(&state.at));
        if let Some(unmet) = operation.unmet(run, at, plan.segments) {
            operation.units[unit as usize].held = unmet;
            return Ok(Step::Idle);
        }
        let mut via = Via::Direct;
        if at.from == at.to && state.message > 0 && run.kind == Kind::Send {
            return self.skip(plans, slot, unit);
        }
        let pieces = &mut self.post.pieces;
        pieces.clear();
        plan.find_old(&operation.binding, run, at, pieces);
        let bytes = (at.to - at.from) * plan.element;
        if pieces.len() > fifo.pieces {
            if state.staging_taken {
                return Ok(Step::Idle); // the packing space is in use
            }
            let packed = staging(plan, operation, unit, bytes as usize);
            self.compute.pack(packed, pieces)?;
            pieces.clear();
            pieces.push(packed);
            via = Via::Staged;
        }
        self.offered = Some(Offer {
            operation: slot,
            unit,
            via,
        });
        fill(&mut self.post, self.life, plan, state, fifo, bytes);
        Ok(Step::Post)
    }

    #[inline]
    fn look_recv(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, Revoked> {
        let plan = &*plans[slot as usize];
        let operation = &self.operations[slot as usize];
        let state = &operation.units[unit as usize];
        let fifo = &self.fifos[state.fifo as usize];
        if !fifo.admits(slot, unit) {
            return Ok(Step::Idle);
        }
        let (at, run) = (&state.at, plan.run(&state.at));
        if at.from == at.to && state.message > 0 && run.kind != Kind::SyncFrom {
            return self.skip(plans, slot, unit);
        }
        if state.staging_taken {
            return Ok(Step::Idle); // and while it is, nothing may overtake what is in it
        }
        let pieces = &mut self.post.pieces;
        pieces.clear();
        let mut via = Via::Staged;
        if run.kind != Kind::RecvReduce
            && fifo.detours == 0
            && operation.unmet(run, at, plan.segments).is_none()
        {
            plan.find_new(&operation.binding, run, at, pieces);
            if pieces.len() <= fifo.pieces {
                via = Via::Direct;
            }
        }
        let bytes = (at.to - at.from) * plan.element;
        if via == Via::Staged {
            pieces.clear();
            if bytes > 0 {
                pieces.push(staging(plan, operation, unit, bytes as usize));
            }
        }
        self.offered = Some(Offer {
            operation: slot,
            unit,
            via,
        });
        fill(&mut self.post, self.life, plan, state, fifo, bytes);
        Ok(Step::Post)
    }

    /// Counts an empty message that does not travel.
    fn skip(&mut self, plans: &Plans, slot: u32, unit: u32) -> Result<Step, Revoked> {
        let operation = &mut self.operations[slot as usize];
        let state = &operation.units[unit as usize];
        let fifo = &mut self.fifos[state.fifo as usize];
        let index = state.fifo as usize;
        fifo.outstanding.push_back(Entry {
            operation: slot,
            unit,
            via: Via::Skipped,
            place: state.at,
        });
        fifo.detours += 1;
        if !operation.step_over(&plans[slot as usize], unit) {
            self.pass_on(slot, unit);
        }
        self.settle(plans, index)?;
        Ok(Step::Again)
    }
}

/// The frame and the address of a post; its pieces are there.
#[inline]
fn fill(post: &mut Post, life: Life, plan: &Plan, unit: &UnitState, fifo: &Fifo, bytes: u64) {
    post.direction = fifo.direction;
    post.endpoint = fifo.endpoint;
    post.port = fifo.port;
    post.token = Token(unit.fifo.into());
    post.frame = Frame {
        length: bytes,
        sequence: unit.sequence,
        message: unit.message,
        group: life.group,
        epoch: life.epoch,
        check: plan.check,
        opening: (unit.message == 0).then_some(plan.opening),
    };
}
