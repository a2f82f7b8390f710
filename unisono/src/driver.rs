//! What a call on a group does while it waits, blocking ([`Waiting`]) or not ([`Polling`]).
//!
//! Time: a call has its timeout from when it first has to wait. A driver counts it on the host's clock. A thread that
//! sleeps while another drives counts it on the system's clock, because it has no host. A polled operation leaves its
//! limit with the state, and whoever has the host minds it: another poll, woken by an alarm, or the driver.

use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use unisono_contract::{Event, Host, Piece, Ready, Time, WaitSet};
use unisono_core::Rank;
use unisono_engine::{Drive, Ticket};

use crate::Error;
use crate::handover::{Call, Guard, Handover, Heard, Look, Task};
use crate::pending::Limit;
use crate::plans::{Spec, Tuning};
use crate::state::Core;

/// Everything a group is, behind one `Arc`.
pub(crate) struct Shared {
    pub(crate) rank: Rank,
    pub(crate) size: Rank,
    handover: Handover<Core, Box<dyn Host>>,
}

impl Shared {
    pub(crate) fn new(rank: Rank, size: Rank, core: Core, host: Box<dyn Host>) -> Shared {
        let bell = core.control().event().clone();
        Shared {
            rank,
            size,
            handover: Handover::new(core, host, bell),
        }
    }

    /// The state, for a short time.
    pub(crate) fn lock(&self) -> Guard<'_, Core, Box<dyn Host>> {
        self.handover.lock()
    }

    /// Starts an operation over memory that stays lent until it is done or the group has failed.
    pub(crate) fn submit(
        &self,
        spec: Spec,
        tuning: &Tuning,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, Error> {
        self.lock().submit(spec, tuning, input, output)
    }

    /// Blocks until all of `tickets` are done.
    pub(crate) fn wait(&self, tickets: &[Ticket], timeout: Duration) -> Result<(), Error> {
        self.handover.wait(&mut Waiting {
            tickets,
            timeout,
            asleep_since: None,
            idle_since: None,
            now: Time::default(),
            until: None,
            next: Time::NEVER,
            set: WaitSet::new(),
        })
    }

    /// Moves what can be moved now, for asynchronous callers. Never blocks.
    pub(crate) fn poll(
        &self,
        ticket: Ticket,
        waker: &Waker,
        timeout: Duration,
    ) -> Poll<Result<(), Error>> {
        let mut task = Polling {
            ticket,
            timeout,
            event: self.handover.event(),
            set: WaitSet::new(),
        };
        self.handover.poll(waker, &mut task)
    }

    /// Keeps the memory of an operation whose handle is dropped.
    pub(crate) fn adopt(&self, ticket: Ticket, memory: Box<dyn Send>) {
        // What is not kept is dropped after unlocking.
        let _done = self.lock().adopt(ticket, memory);
    }

    /// Moves what can be moved now.
    pub(crate) fn progress(&self) -> Result<(), Error> {
        let mut core = self.lock();
        while core.step()? == Drive::Progress {}
        Ok(())
    }

    /// Sees to it that what was just submitted leaves, if it can.
    pub(crate) fn nudge(&self) {
        let mut core = self.lock();
        // What goes wrong comes out of the handles.
        if core.step().is_ok_and(|drive| drive == Drive::Progress) {
            core.unsettle();
        }
    }

    /// Drives until nothing is in flight, then refuses further calls.
    pub(crate) fn close(&self, timeout: Duration) -> Result<(), Error> {
        let left = self.lock().close();
        if left.is_empty() {
            return Ok(());
        }
        self.wait(&left, timeout)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.handover.exclusive().leave();
    }
}

/// A blocking call.
struct Waiting<'a> {
    tickets: &'a [Ticket],
    timeout: Duration,
    /// When this thread first slept while another drove.
    asleep_since: Option<Instant>,
    /// When the driver last found nothing to do.
    idle_since: Option<Time>,
    /// As of the last look at the clock.
    now: Time,
    /// When the driver gives up.
    until: Option<Time>,
    /// When anybody's time is up.
    next: Time,
    set: WaitSet,
}

impl Waiting<'_> {
    /// The time that is left, as far as this thread has slept; exact across wake-ups and a change of role.
    fn rest(&self) -> Duration {
        let slept = self.asleep_since.map_or(Duration::ZERO, |s| s.elapsed());
        self.timeout.saturating_sub(slept)
    }
}

fn look(core: &mut Core, tickets: &[Ticket]) -> Look<Result<(), Error>> {
    // An operation that is done is done, whatever has failed since.
    if core.are_done(tickets) {
        return Look::Done(Ok(()));
    }
    let step = core.step();
    if core.are_done(tickets) {
        return Look::Done(Ok(()));
    }
    match step {
        Ok(Drive::Progress) => Look::Moved,
        Ok(Drive::Idle) => Look::Idle,
        Err(error) => Look::Done(Err(error)),
    }
}

impl Call<Core, Box<dyn Host>> for Waiting<'_> {
    type Out = Result<(), Error>;

    fn look(&mut self, core: &mut Core) -> Look<Self::Out> {
        look(core, self.tickets)
    }

    fn late(&mut self, core: &mut Core, host: &Box<dyn Host>) -> Option<Self::Out> {
        self.now = host.now();
        let rest = self.rest();
        let until = *self.until.get_or_insert(self.now + rest);
        if self.now >= until {
            return Some(self.give_up(core));
        }
        match core.due(self.now) {
            Ok(next) => self.next = next.map_or(until, |next| next.min(until)),
            Err(error) => return Some(Err(error)),
        }
        None
    }

    fn spins(&mut self, host: &Box<dyn Host>) -> bool {
        let since = *self.idle_since.get_or_insert(self.now);
        self.now.since(since) < host.spin_budget()
    }

    fn listen(&mut self, core: &mut Core) -> Heard {
        self.set.clear();
        if core.listen(&mut self.set) == Ready::Now {
            return Heard::Something;
        }
        // A descriptor tells its state, an event only its changes. The first event is that of control, which is looked
        // at here; with no other, a second look would just ask the kernel again for what `poll(2)` tells anyway.
        if self.set.events().len() > 1 || self.set.descriptors().is_empty() {
            Heard::Maybe
        } else if core.control().aborted().is_some() {
            Heard::Something
        } else {
            Heard::Nothing
        }
    }

    fn park(&mut self, host: &mut Box<dyn Host>) {
        host.park(&mut self.set, self.next);
    }

    fn resumed(&mut self, host: &mut Box<dyn Host>) {
        if let Some(since) = self.idle_since.take() {
            host.waited(host.now().since(since));
        }
    }

    fn left(&mut self) -> Option<Duration> {
        self.asleep_since.get_or_insert_with(Instant::now);
        Some(self.rest())
    }

    fn give_up(&mut self, core: &mut Core) -> Self::Out {
        let late = self.tickets.iter().copied().find(|t| !core.are_done(&[*t]));
        Err(core.fail_deadline(late, self.timeout))
    }
}

/// A poll of an operation that owns its memory.
struct Polling<'a> {
    ticket: Ticket,
    timeout: Duration,
    /// What alarms notify: every poll is registered with it.
    event: &'a Event,
    set: WaitSet,
}

impl Task<Core, Box<dyn Host>> for Polling<'_> {
    type Out = Result<(), Error>;

    fn look(&mut self, core: &mut Core) -> Look<Self::Out> {
        look(core, &[self.ticket])
    }

    fn register(&mut self, core: &mut Core, waker: &Waker) -> bool {
        let is_quiet = core.listen(&mut self.set) == Ready::Wait;
        for (event, _) in self.set.events() {
            event.register(waker);
        }
        is_quiet
    }

    fn mind(&mut self, core: &mut Core, host: Option<&Box<dyn Host>>) -> Option<Self::Out> {
        if let Some(longest) = self.set.longest_sleep() {
            core.control().wake_after(longest, self.event);
        }
        if !self.set.descriptors().is_empty() {
            core.control().watch(self.set.descriptors(), self.event);
        }
        core.limit(self.ticket, Limit::new(self.timeout));
        // While somebody drives, he hears of the limit, and minds it.
        let now = host?.now();
        match core.due(now) {
            Ok(next) => {
                if let Some(delay) = next.and_then(|next| core.arm(now, next)) {
                    core.control().wake_after(delay, self.event);
                }
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}
