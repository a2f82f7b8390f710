//! What the lock of a group protects: engine, endpoints, plans, and which operations are under way.

mod patience;
mod stalls;

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_contract::{Drain, Endpoint, Field, LinkCause, Piece, Ready, Time, WaitSet};
use unisono_control::{Cause, Control, Kind, Operation};
use unisono_core::{Collective, DType, Op, Rank, UserOp};
use unisono_engine::{Compute, Drive, Engine, EngineError, Ticket};

use crate::Error;
use crate::handover::{News, State};
use crate::pending::{Limit, Pending};
use crate::plans::{Plans, Spec, Tuning};

use self::patience::Patience;
use self::stalls::Stalls;

pub(crate) struct Core {
    rank: Rank,
    control: Arc<dyn Control>,
    engine: Engine,
    endpoints: Vec<Box<dyn Endpoint>>,
    pub(crate) plans: Plans,
    pending: Pending,
    /// Memory of operations whose handles were dropped.
    orphans: Vec<(Ticket, Box<dyn Send>)>,
    failed: Option<Error>,
    closed: bool,
    /// When the alarm that is set for asynchronous callers goes off.
    alarm: Option<Time>,
    patience: Patience,
    stalls: Stalls,
    news: News,
}

impl Core {
    pub(crate) fn new(
        rank: Rank,
        endpoints: Vec<Box<dyn Endpoint>>,
        control: Box<dyn Control>,
        plans: Plans,
        compute: Option<Box<dyn Compute>>,
    ) -> Core {
        let mut endpoints = endpoints;
        let mut engine = Engine::new(0, 0);
        // Nothing has been called yet, so nothing is unexpected.
        let can_tell = engine.unclaimed(&mut endpoints, &mut WaitSet::new());
        Core {
            rank,
            control: control.into(),
            engine: match compute {
                Some(compute) => engine.with_compute(compute),
                None => engine,
            },
            endpoints,
            plans,
            pending: Pending::default(),
            orphans: Vec::new(),
            failed: None,
            closed: false,
            alarm: None,
            patience: Patience::new(can_tell.unwrap_or(true)),
            stalls: Stalls::default(),
            news: News::default(),
        }
    }

    /// Whether local work is done by somebody who may know of pieces without memory.
    pub(crate) fn has_compute(&self) -> bool {
        self.engine.has_compute()
    }

    pub(crate) fn control(&self) -> &Arc<dyn Control> {
        &self.control
    }

    pub(crate) fn submit(
        &mut self,
        spec: Spec,
        tuning: &Tuning,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, Error> {
        self.check_failed()?;
        if self.closed {
            return Err(Error::Closed { rank: self.rank });
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
            Err(error) => return Err(self.fail(&error)),
        };
        self.pending.start(ticket, operation);
        let pending = &self.pending;
        (self.stalls).start(ticket, operation.sequence, spec, |t| pending.is_done(t));
        self.collect();
        Ok(ticket)
    }

    /// One round: what can move moves, what is done is noted.
    pub(crate) fn step(&mut self) -> Result<Drive, Error> {
        self.check_failed()?;
        let drive = self.engine.drive(&mut self.endpoints);
        self.collect();
        let drive = drive.map_err(|error| self.fail(&error))?;
        if drive == Drive::Progress {
            self.news.moved = true;
            self.patience.moved();
        }
        Ok(drive)
    }

    /// Whether all of `tickets` are done.
    pub(crate) fn are_done(&self, tickets: &[Ticket]) -> bool {
        tickets.iter().all(|t| self.pending.is_done(*t))
    }

    fn collect(&mut self) {
        let mut any = false;
        while let Some(ticket) = self.engine.finished() {
            any = true;
            self.pending.finish(ticket);
            if let Some(at) = self.orphans.iter().position(|(t, _)| *t == ticket) {
                self.news.garbage.push(self.orphans.swap_remove(at).1);
            }
        }
        self.news.done |= any;
    }

    /// What would announce progress; `Ready::Now`: do not sleep.
    pub(crate) fn listen(&mut self, set: &mut WaitSet) -> Ready {
        set.add(self.control.event());
        let mut ready = Ready::Wait;
        for endpoint in &mut self.endpoints {
            // A link that broke is reported by the poll that follows.
            if !matches!(endpoint.wait_on(set), Ok(Ready::Wait)) {
                ready = Ready::Now;
            }
        }
        if self.patience.is_over()
            && self.failed.is_none()
            && let Err(error) = self.engine.unclaimed(&mut self.endpoints, set)
        {
            self.fail(&error); // Told by the look that follows.
            ready = Ready::Now;
        }
        ready
    }

    /// Keeps `memory` until an operation is done; gives it back when it is.
    pub(crate) fn adopt(&mut self, ticket: Ticket, memory: Box<dyn Send>) -> Option<Box<dyn Send>> {
        if self.failed.is_some() || self.pending.is_done(ticket) {
            return Some(memory);
        }
        self.pending.forget_limit(ticket);
        self.orphans.push((ticket, memory));
        None
    }

    /// Sets the limit of a polled operation, once.
    pub(crate) fn limit(&mut self, ticket: Ticket, limit: Limit) {
        // A driver has to hear of it.
        self.news.moved |= self.pending.limit(ticket, limit);
    }

    /// Fails the group when the time of a polled operation is up, and tells of a collective that is waited for in vain; gives
    /// when to look again.
    pub(crate) fn due(&mut self, now: Time) -> Result<Option<Time>, Error> {
        let due = match self.pending.due(now) {
            Ok(due) => due,
            Err((ticket, timeout)) => return Err(self.fail_deadline(Some(ticket), timeout)),
        };
        let look = self.patience.until(now);
        let tell = match self.stalls.until(now, |t| self.pending.is_done(t)) {
            Ok(tell) => tell,
            Err(report) => {
                self.control.stalled(report);
                // Others may have been waiting for something else, so this may be the end.
                self.check_failed()?;
                None
            }
        };
        Ok([due, look, tell].into_iter().flatten().min())
    }

    /// How long until `deadline`, unless an alarm that goes off before it is set already.
    pub(crate) fn arm(&mut self, now: Time, deadline: Time) -> Option<Duration> {
        let known = (self.patience.alarm(deadline))
            .or_else(|| self.stalls.alarm(deadline))
            .unwrap_or(&mut self.alarm);
        if known.is_some_and(|alarm| alarm > now && alarm <= deadline) {
            return None;
        }
        *known = Some(deadline);
        Some(deadline.since(now))
    }

    /// Takes no further operations; gives those under way.
    pub(crate) fn close(&mut self) -> Vec<Ticket> {
        self.closed = true;
        self.pending.tickets()
    }

    fn check_failed(&mut self) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.control.aborted() {
            None => Ok(()),
            Some(cause) => Err(self.end(cause)),
        }
    }

    /// The operation of `late` was not done in time.
    pub(crate) fn fail_deadline(&mut self, late: Option<Ticket>, timeout: Duration) -> Error {
        let mut waiting_for: Vec<Rank> = self.engine.waiting_for().map(|(peer, _)| peer).collect();
        waiting_for.sort_unstable();
        waiting_for.dedup();
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let operation = late.and_then(|ticket| self.pending.operation(ticket));
        self.fail_as(
            operation,
            Kind::Deadline {
                millis,
                waiting_for,
            },
        )
    }

    /// Fails the group on account of `operation`, or else the oldest one.
    fn fail_as(&mut self, operation: Option<Operation>, kind: Kind) -> Error {
        if let Some(error) = &self.failed {
            return error.clone();
        }
        let operation = operation.or_else(|| self.pending.oldest());
        self.fail_with(Cause::new(self.rank, operation, kind))
    }

    /// Fails the group for a cause that every rank has found by itself.
    pub(crate) fn fail_with(&mut self, cause: Cause) -> Error {
        if let Some(error) = &self.failed {
            return error.clone();
        }
        self.control.abort(cause.clone());
        // Somebody else may have been earlier: the first cause is everybody's.
        let cause = self.control.aborted().unwrap_or(cause);
        self.end(cause)
    }

    /// The number that the next collective will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.engine.next_sequence()
    }

    fn fail(&mut self, error: &EngineError) -> Error {
        let kind = match error {
            EngineError::Link(link) => match &link.cause {
                LinkCause::Closed => {
                    if let Some(cause) = abort_in_time(&*self.control) {
                        return self.end(cause);
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
        self.fail_as(None, kind)
    }

    /// The group is over: nothing touches the memory of its operations any more.
    fn end(&mut self, mut cause: Cause) -> Error {
        // A rank that was missed by its heartbeat was lost during whatever this rank was doing.
        cause.operation = cause.operation.or_else(|| self.pending.oldest());
        let error = Error::Failed {
            cause: Arc::new(cause),
        };
        self.failed = Some(error.clone());
        self.quiet();
        self.news.done = true;
        error
    }

    /// This rank goes: tells the others, if its operations are under way.
    pub(crate) fn leave(&mut self) {
        if self.engine.running() > 0 && self.failed.is_none() {
            let kind = if std::thread::panicking() {
                Kind::Panicked
            } else {
                Kind::Left
            };
            self.fail_as(None, kind);
        }
        self.quiet();
    }

    /// Withdraws everything from the endpoints, and forgets it.
    fn quiet(&mut self) {
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
        let orphans = self.orphans.drain(..).map(|(_, memory)| memory);
        self.news.garbage.extend(orphans);
    }
}

impl State for Core {
    fn news(&mut self) -> News {
        mem::take(&mut self.news)
    }

    /// Before the memory of the call is taken back, so that peers hear this and not of a withdrawn message.
    fn panicked(&mut self) {
        self.fail_as(None, Kind::Panicked);
    }
}

/// A closed link often is the echo of an abort that is still on its way.
fn abort_in_time(control: &dyn Control) -> Option<Cause> {
    let until = Instant::now() + control.grace();
    loop {
        let key = control.event().listen();
        let left = until.saturating_duration_since(Instant::now());
        let cause = control.aborted();
        if cause.is_some() || left.is_zero() {
            return cause;
        }
        // The event may be rung for other reasons too: look again until the time is up.
        control.event().wait(key, Some(left));
    }
}

/// A field of a frame as people write it.
pub(crate) fn value(field: Field, value: u64) -> String {
    let named = match field {
        Field::Collective => Collective::name_of_code(value as u8).map(str::to_owned),
        Field::Dtype => DType::from_code(value as u8).map(|d| d.to_string()),
        Field::Op if value == 0 => Some("none".to_owned()),
        Field::Op => Op::BUILT_IN
            .into_iter()
            .find(|op| u64::from(op.code()) == value)
            .map(|op| op.to_string())
            .or_else(|| Some(format!("user{}", value.checked_sub(UserOp::FIRST.into())?))),
        _ => None,
    };
    named.unwrap_or_else(|| value.to_string())
}
