//! Who moves the data: one driver at a time, whoever has called.
//!
//! The state of a group is behind one lock that is taken once per call and per poll and never held while sleeping. The
//! *role* of driver, with the host's way to sleep, is a second lock: who finds it taken submits his operation, sleeps
//! on the group's event, and is woken when operations are done or the role is free.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Poll, Waker};
use std::time::Duration;

use unisono_contract::{Endpoint, Event, Host, Piece, Ready, Time, WaitSet};
use unisono_control::{Control, Kind};
use unisono_core::Rank;
use unisono_engine::{Drive, Ticket};

use crate::Error;
use crate::plans::{Plans, Spec, Tuning};
use crate::state::{Core, Keep};

/// Everything a group is, behind one `Arc`.
pub(crate) struct Shared {
    pub(crate) rank: Rank,
    pub(crate) size: Rank,
    pub(crate) control: Box<dyn Control>,
    core: Mutex<Core>,
    /// Held by the driver.
    role: Mutex<Box<dyn Host>>,
    /// Notified when operations are done, when the role becomes free, and when the group fails.
    pub(crate) event: Event,
    /// Somebody who must not block found `core` taken.
    contended: AtomicBool,
}

/// Rounds that an asynchronous poll makes before it parks: a neighbour is often just about to answer.
const INLINE_ROUNDS: usize = 4;

impl Shared {
    pub(crate) fn new(
        rank: Rank,
        size: Rank,
        endpoints: Vec<Box<dyn Endpoint>>,
        control: Box<dyn Control>,
        host: Box<dyn Host>,
        plans: Plans,
    ) -> Shared {
        Shared {
            rank,
            size,
            control,
            core: Mutex::new(Core::new(endpoints, plans)),
            role: Mutex::new(host),
            event: Event::new(),
            contended: AtomicBool::new(false),
        }
    }

    /// The state, for a short time.
    pub(crate) fn lock(&self) -> Guard<'_> {
        let core = match self.core.lock() {
            Ok(core) => core,
            Err(poisoned) => self.recover(poisoned),
        };
        self.guard(core)
    }

    /// Somebody panicked inside a call: the group is over, and says so.
    fn recover<'a>(&self, poisoned: PoisonError<MutexGuard<'a, Core>>) -> MutexGuard<'a, Core> {
        let mut core = poisoned.into_inner();
        self.core.clear_poison();
        core.fail_as(self, Kind::Panicked);
        core
    }

    fn guard<'a>(&'a self, core: MutexGuard<'a, Core>) -> Guard<'a> {
        Guard {
            shared: self,
            core: Some(core),
        }
    }

    /// Starts an operation over memory that stays lent until it is done or the group has failed.
    pub(crate) fn submit(
        &self,
        spec: Spec,
        tuning: &Tuning,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, Error> {
        self.lock().submit(self, spec, tuning, input, output)
    }

    /// Drives until all of `tickets` are done.
    pub(crate) fn wait(&self, tickets: &[Ticket], timeout: Duration) -> Result<(), Error> {
        loop {
            // Taken before looking, so that nothing between is missed.
            let key = self.event.listen();
            if let Some(mut host) = self.take_role() {
                let result = self.wait_as_driver(&mut **host, tickets, timeout);
                drop(host);
                self.event.notify();
                return result;
            }
            let mut core = self.lock();
            let state = core.step(self).and_then(|_| core.state(tickets));
            drop(core);
            if state? {
                return Ok(());
            }
            if !self.event.wait(key, Some(timeout)) {
                self.expire(timeout);
            }
        }
    }

    fn take_role(&self) -> Option<MutexGuard<'_, Box<dyn Host>>> {
        match self.role.try_lock() {
            Ok(host) => Some(host),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wait_as_driver(
        &self,
        host: &mut dyn Host,
        tickets: &[Ticket],
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut deadline = None;
        let mut set = WaitSet::new();
        let mut idle_since: Option<Time> = None;
        loop {
            let mut core = self.lock();
            let moved = core.step(self)?;
            let done = core.state(tickets)?;
            drop(core);
            if moved == Drive::Progress
                && let Some(since) = idle_since.take()
            {
                host.waited(host.now().since(since));
            }
            if done {
                return Ok(());
            }
            if moved == Drive::Progress {
                continue;
            }
            let now = host.now();
            let since = *idle_since.get_or_insert(now);
            let until = *deadline.get_or_insert(now + timeout);
            if now >= until {
                self.expire(timeout);
                continue;
            }
            if now.since(since) < host.spin_budget() {
                std::hint::spin_loop();
                continue;
            }
            set.clear();
            let mut core = self.lock();
            let ready = core.listen(self, &mut set);
            let again = core.step(self)?;
            let done = core.state(tickets)?;
            drop(core);
            if done {
                return Ok(());
            }
            if ready == Ready::Wait && again == Drive::Idle {
                host.park(&mut set, until);
            }
        }
    }

    /// Moves what can be moved now, for asynchronous callers. Never blocks. `deadline`: the present, and when to look
    /// again at the latest; `None` while somebody else drives.
    pub(crate) fn poll(
        &self,
        tickets: &[Ticket],
        waker: &Waker,
        deadline: Option<(Time, Time)>,
    ) -> Poll<Result<(), Error>> {
        let Some(mut core) = self.try_lock(waker) else {
            return Poll::Pending;
        };
        let mut set = WaitSet::new();
        for round in 1..=INLINE_ROUNDS {
            if round == INLINE_ROUNDS {
                // Registered before the last look, so that nothing between is missed.
                if core.listen(self, &mut set) == Ready::Now {
                    waker.wake_by_ref();
                }
                for (event, _) in set.events() {
                    event.register(waker);
                }
            }
            match core.step(self).and_then(|_| core.state(tickets)) {
                Ok(false) => {}
                Ok(true) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let alarm = deadline.and_then(|(now, deadline)| core.arm(now, deadline));
        drop(core);
        for delay in set.longest_sleep().into_iter().chain(alarm) {
            self.control.wake_after(delay, &self.event);
        }
        Poll::Pending
    }

    fn try_lock(&self, waker: &Waker) -> Option<Guard<'_>> {
        for attempt in 0..2 {
            match self.core.try_lock() {
                Ok(core) => return Some(self.guard(core)),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return Some(self.guard(self.recover(poisoned)));
                }
                Err(TryLockError::WouldBlock) if attempt == 0 => {
                    // Whoever holds it sees the flag when he leaves, and wakes us.
                    self.event.register(waker);
                    self.contended.store(true, Ordering::SeqCst);
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        None
    }

    /// An operation was not done in time: the group is over.
    pub(crate) fn expire(&self, timeout: Duration) {
        self.lock().fail_deadline(self, timeout);
    }

    /// The group's clock; `None` while somebody else drives (who then minds the time).
    pub(crate) fn now(&self) -> Option<Time> {
        self.take_role().map(|host| host.now())
    }

    /// Keeps the memory of an operation whose handle is dropped.
    pub(crate) fn adopt(&self, ticket: Ticket, memory: Box<dyn Keep>) {
        self.lock().adopt(ticket, memory);
    }

    /// One round of progress for everything in flight.
    pub(crate) fn progress(&self) -> Result<(), Error> {
        self.lock().step(self).map(|_| ())
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
        let core = self.core.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(cause) = core.left_behind(self.rank) {
            self.control.abort(cause);
        }
        core.quiet();
    }
}

/// The state, locked. Leaving wakes whoever could not wait for it.
pub(crate) struct Guard<'a> {
    shared: &'a Shared,
    core: Option<MutexGuard<'a, Core>>,
}

impl std::ops::Deref for Guard<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        match &self.core {
            Some(core) => core,
            None => unreachable!("given back only by drop"),
        }
    }
}

impl std::ops::DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        match &mut self.core {
            Some(core) => core,
            None => unreachable!("given back only by drop"),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.core = None;
        let contended = &self.shared.contended;
        if contended.load(Ordering::SeqCst) && contended.swap(false, Ordering::SeqCst) {
            self.shared.event.notify();
        }
    }
}
