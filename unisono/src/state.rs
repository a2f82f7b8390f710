//! What the lock of a group protects: engine, endpoints, plans, and which operations are under way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use unisono_contract::{Drain, Endpoint, Field, LinkCause, Piece, Ready, Time, WaitSet};
use unisono_control::{Cause, Kind, Operation};
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::{Drive, Engine, EngineError, Ticket};

use crate::Error;
use crate::driver::Shared;
use crate::plans::{Plans, Spec, Tuning};

pub(crate) struct Core {
    engine: Engine,
    endpoints: Vec<Box<dyn Endpoint>>,
    pub(crate) plans: Plans,
    pending: Pending,
    /// Memory of operations whose handles were dropped.
    orphans: Vec<(Ticket, Box<dyn Keep>)>,
    failed: Option<Error>,
    closed: bool,
    /// When the alarm that is set for asynchronous callers goes off.
    alarm: Option<Time>,
}

/// Something that is kept until an operation is done.
pub(crate) trait Keep: Send {}
impl<T: Send> Keep for T {}

/// Operations that are not done, in the order of their tickets: a window over them.
#[derive(Default)]
struct Pending {
    base: u64,
    window: VecDeque<(Operation, bool)>,
}

impl Pending {
    fn start(&mut self, ticket: Ticket, operation: Operation) {
        if self.window.is_empty() {
            self.base = ticket.0;
        }
        self.window.push_back((operation, false));
    }

    fn finish(&mut self, ticket: Ticket) {
        let index = ticket.0.wrapping_sub(self.base) as usize;
        if let Some(entry) = self.window.get_mut(index) {
            entry.1 = true;
        }
        while self.window.front().is_some_and(|(_, done)| *done) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    fn is_done(&self, ticket: Ticket) -> bool {
        match ticket.0.checked_sub(self.base) {
            None => true,
            Some(index) => self
                .window
                .get(index as usize)
                .is_none_or(|(_, done)| *done),
        }
    }

    fn tickets(&self) -> Vec<Ticket> {
        (self.base..self.base + self.window.len() as u64)
            .map(Ticket)
            .collect()
    }

    /// The oldest operation under way: the one to name when something fails.
    fn oldest(&self) -> Option<Operation> {
        self.window.front().map(|(operation, _)| *operation)
    }
}

impl Core {
    pub(crate) fn new(endpoints: Vec<Box<dyn Endpoint>>, plans: Plans) -> Core {
        Core {
            engine: Engine::new(0, 0),
            endpoints,
            plans,
            pending: Pending::default(),
            orphans: Vec::new(),
            failed: None,
            closed: false,
            alarm: None,
        }
    }

    pub(crate) fn submit(
        &mut self,
        shared: &Shared,
        spec: Spec,
        tuning: &Tuning,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, Error> {
        self.check_failed(shared)?;
        if self.closed {
            return Err(Error::Closed { rank: shared.rank });
        }
        let plan = self
            .plans
            .find(spec, tuning, &mut self.engine, &mut self.endpoints)?;
        let operation = Operation {
            name: spec.collective.name(),
            sequence: self.engine.next_sequence(),
        };
        let ticket = match self.engine.submit(&plan, input, output) {
            Ok(ticket) => ticket,
            Err(EngineError::OutOfMemory(error)) => return Err(error.into()),
            Err(error) => return Err(self.fail(shared, &error)),
        };
        self.pending.start(ticket, operation);
        self.collect(shared);
        Ok(ticket)
    }

    /// One round: what can move moves, what is done is noted.
    pub(crate) fn step(&mut self, shared: &Shared) -> Result<Drive, Error> {
        self.check_failed(shared)?;
        let drive = self.engine.drive(&mut self.endpoints);
        self.collect(shared);
        drive.map_err(|error| self.fail(shared, &error))
    }

    /// Whether all of `tickets` are done.
    pub(crate) fn state(&self, tickets: &[Ticket]) -> Result<bool, Error> {
        if tickets.iter().all(|t| self.pending.is_done(*t)) {
            return Ok(true);
        }
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(false),
        }
    }

    fn collect(&mut self, shared: &Shared) {
        let mut any = false;
        while let Some(ticket) = self.engine.finished() {
            any = true;
            self.pending.finish(ticket);
            if !self.orphans.is_empty() {
                self.orphans.retain(|(t, _)| *t != ticket);
            }
        }
        if any {
            shared.event.notify();
        }
    }

    /// What would announce progress; `Ready::Now`: do not sleep.
    pub(crate) fn listen(&mut self, shared: &Shared, set: &mut WaitSet) -> Ready {
        set.add(&shared.event);
        set.add(shared.control.event());
        let mut ready = Ready::Wait;
        for endpoint in &mut self.endpoints {
            // A link that broke is reported by the poll that follows.
            if !matches!(endpoint.wait_on(set), Ok(Ready::Wait)) {
                ready = Ready::Now;
            }
        }
        ready
    }

    pub(crate) fn adopt(&mut self, ticket: Ticket, memory: Box<dyn Keep>) {
        if self.failed.is_none() && !self.pending.is_done(ticket) {
            self.orphans.push((ticket, memory));
        }
    }

    /// How long until `deadline`, unless an alarm that goes off before it is set already.
    pub(crate) fn arm(&mut self, now: Time, deadline: Time) -> Option<Duration> {
        if self.alarm.is_some_and(|alarm| alarm > now && alarm <= deadline) {
            return None;
        }
        self.alarm = Some(deadline);
        Some(deadline.since(now))
    }

    /// Takes no further operations; gives those under way.
    pub(crate) fn close(&mut self) -> Vec<Ticket> {
        self.closed = true;
        self.pending.tickets()
    }

    fn check_failed(&mut self, shared: &Shared) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match shared.control.aborted() {
            None => Ok(()),
            Some(cause) => Err(self.end(shared, cause)),
        }
    }

    pub(crate) fn fail_deadline(&mut self, shared: &Shared, timeout: Duration) {
        let mut waiting_for: Vec<Rank> = self.engine.waiting_for().map(|(peer, _)| peer).collect();
        waiting_for.sort_unstable();
        waiting_for.dedup();
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.fail_as(
            shared,
            Kind::Deadline {
                millis,
                waiting_for,
            },
        );
    }

    pub(crate) fn fail_as(&mut self, shared: &Shared, kind: Kind) -> Error {
        if let Some(error) = &self.failed {
            return error.clone();
        }
        let cause = Cause::new(shared.rank, self.pending.oldest(), kind);
        shared.control.abort(cause.clone());
        // Somebody else may have been earlier: the first cause is everybody's.
        let cause = shared.control.aborted().unwrap_or(cause);
        self.end(shared, cause)
    }

    fn fail(&mut self, shared: &Shared, error: &EngineError) -> Error {
        let kind = match error {
            EngineError::Link(link) => match &link.cause {
                LinkCause::Closed => {
                    if let Some(cause) = abort_in_time(shared) {
                        return self.end(shared, cause);
                    }
                    Kind::Lost { rank: link.peer }
                }
                LinkCause::Mismatch(mismatch) => Kind::Mismatch {
                    rank: link.peer,
                    field: mismatch.field.to_string(),
                    mine: value(mismatch.field, mismatch.mine),
                    theirs: value(mismatch.field, mismatch.theirs),
                },
                other => Kind::Other {
                    text: format!("link to rank {}: {other}", link.peer),
                },
            },
            other => Kind::Other {
                text: other.to_string(),
            },
        };
        self.fail_as(shared, kind)
    }

    /// The group is over: nothing touches the memory of its operations any more.
    fn end(&mut self, shared: &Shared, cause: Cause) -> Error {
        let error = Error::Failed {
            cause: Arc::new(cause),
        };
        self.failed = Some(error.clone());
        self.quiet();
        shared.event.notify();
        error
    }

    /// What the others are told when this rank goes while its operations are under way.
    pub(crate) fn left_behind(&self, rank: Rank) -> Option<Cause> {
        if self.engine.running() == 0 || self.failed.is_some() {
            return None;
        }
        let kind = if std::thread::panicking() {
            Kind::Panicked
        } else {
            Kind::Left
        };
        Some(Cause::new(rank, self.pending.oldest(), kind))
    }

    /// Withdraws everything from the endpoints, and forgets it.
    pub(crate) fn quiet(&mut self) {
        for endpoint in &mut self.endpoints {
            // Transports that copy are quiet at once; the leases guard the memory in any case.
            for _ in 0..1000 {
                if endpoint.quiesce() == Drain::Quiet {
                    break;
                }
                std::thread::yield_now();
            }
        }
        self.engine.abandon();
        self.orphans.clear();
    }
}

/// A closed link often is the echo of an abort that is still on its way.
fn abort_in_time(shared: &Shared) -> Option<Cause> {
    let control = &shared.control;
    let key = control.event().listen();
    if let Some(cause) = control.aborted() {
        return Some(cause);
    }
    if !control.grace().is_zero() {
        control.event().wait(key, Some(control.grace()));
    }
    control.aborted()
}

/// A field of a frame as people write it.
fn value(field: Field, value: u64) -> String {
    let named = match field {
        Field::Collective => Collective::name_of_code(value as u8).map(str::to_owned),
        Field::Dtype => DType::from_code(value as u8).map(|d| d.to_string()),
        Field::Op if value == 0 => Some("none".to_owned()),
        Field::Op => Op::BUILT_IN
            .into_iter()
            .find(|op| u64::from(op.code()) == value)
            .map(|op| op.to_string()),
        _ => None,
    };
    named.unwrap_or_else(|| value.to_string())
}
