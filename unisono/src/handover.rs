//! Who moves the data: one driver at a time, whoever has called, and how the role changes hands.
//!
//! The state of a group is behind one lock. The *host*, which is the way to sleep until peers have news, lies beside it:
//! who takes it out is the driver until he puts it back. All changes of role happen under the lock, so the rules are few:
//!
//! | who | finds | does |
//! |---|---|---|
//! | a blocking call | the host | drives: looks, sleeps on `bell` and the endpoints, looks again; puts the host back and notifies `event` |
//! | a blocking call | no host | listens to `event` under the lock, then sleeps: the driver cannot leave unheard |
//! | a poll | the lock | looks, registered everywhere before its last look; never sleeps |
//! | a poll | the lock taken | registers with `event`, raises `contended`: whoever unlocks next notifies `event` |
//! | anybody but the driver | something moved, and the host is away | notifies `bell`: what the driver sleeps on is out of date |
//!
//! Nothing is notified, and nothing of the user's is dropped, while the lock is held. The lock is never held while
//! sleeping.

use std::sync::PoisonError;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::sync::{AtomicBool, Event, Mutex, MutexGuard, Ordering, TryLockError, fence};

/// What the lock protects.
pub(crate) trait State {
    /// What others must hear, since the last time.
    fn news(&mut self) -> News;

    /// Somebody panicked while he held the lock.
    fn panicked(&mut self);
}

/// What others must hear.
#[derive(Default)]
pub(crate) struct News {
    /// Operations are done, or the group has failed.
    pub(crate) done: bool,
    /// Something was posted or has arrived.
    pub(crate) moved: bool,
    /// To be dropped after unlocking.
    pub(crate) garbage: Vec<Box<dyn Send>>,
}

/// What a look found.
pub(crate) enum Look<R> {
    /// The call is over.
    Done(R),
    /// Something moved: look again before sleeping.
    Moved,
    /// Nothing can move until a peer does something.
    Idle,
}

/// What listening found.
pub(crate) enum Heard {
    /// Something is there already.
    Something,
    /// Nothing, but what came just before is not announced: look once more.
    Maybe,
    /// Nothing, and what came just before is announced all the same: sleep.
    Nothing,
}

/// A call that waits for its operations.
pub(crate) trait Call<S, H> {
    /// What the call returns.
    type Out;

    /// Moves what can be moved.
    fn look(&mut self, state: &mut S) -> Look<Self::Out>;

    /// As the driver: whether somebody's time is up.
    fn late(&mut self, state: &mut S, host: &H) -> Option<Self::Out>;

    /// As the driver, idle: whether to look again at once rather than sleep.
    fn spins(&mut self, host: &H) -> bool;

    /// As the driver, after an idle look under the same lock: collects what to sleep on.
    fn listen(&mut self, state: &mut S) -> Heard;

    /// As the driver: sleeps. The state is not locked.
    fn park(&mut self, host: &mut H);

    /// As the driver: something moved, or the call is over.
    fn resumed(&mut self, host: &mut H);

    /// Not as the driver: how long to sleep at most.
    fn left(&mut self) -> Option<Duration>;

    /// Not as the driver: that time is over.
    fn give_up(&mut self, state: &mut S) -> Self::Out;
}

/// A call that must not block.
pub(crate) trait Task<S, H> {
    /// What comes out in the end.
    type Out;

    /// Moves what can be moved.
    fn look(&mut self, state: &mut S) -> Look<Self::Out>;

    /// Registers the waker with whatever announces progress; false when something is there already.
    fn register(&mut self, state: &mut S, waker: &Waker) -> bool;

    /// Minds the time; without a host the driver has to.
    fn mind(&mut self, state: &mut S, host: Option<&H>) -> Option<Self::Out>;
}

/// Looks of a poll before it parks: a neighbour is often just about to answer.
const INLINE_LOOKS: usize = 4;
/// Rounds in which something moves between two looks at the clock.
const ROUNDS: u32 = 16;

/// The state of a group, and the role of its driver.
pub(crate) struct Handover<S, H> {
    inner: Mutex<Inner<S, H>>,
    /// Notified when operations are done, when the driver leaves, and when the group fails.
    event: Event,
    /// Among what the driver sleeps on.
    bell: Event,
    /// Somebody who must not block found the lock taken.
    contended: AtomicBool,
}

struct Inner<S, H> {
    state: S,
    /// `None` while somebody drives.
    host: Option<H>,
}

impl<S: State, H> Handover<S, H> {
    /// `bell` must be among what [`Call::listen`] collects.
    pub(crate) fn new(state: S, host: H, bell: Event) -> Handover<S, H> {
        let host = Some(host);
        Handover {
            inner: Mutex::new(Inner { state, host }),
            event: Event::new(),
            bell,
            contended: AtomicBool::new(false),
        }
    }

    /// What polls are woken by, besides the endpoints.
    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// The state, for a short time.
    pub(crate) fn lock(&self) -> Guard<'_, S, H> {
        // Who panicked has said so when he unlocked.
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard(inner)
    }

    /// The state of a group that nobody uses any more.
    pub(crate) fn exclusive(&mut self) -> &mut S {
        let inner = self.inner.get_mut();
        &mut inner.unwrap_or_else(PoisonError::into_inner).state
    }

    fn guard<'a>(&'a self, inner: MutexGuard<'a, Inner<S, H>>) -> Guard<'a, S, H> {
        Guard {
            handover: self,
            inner: Some(inner),
            drives: false,
            unsettled: false,
            unwinds: thread::panicking(),
        }
    }

    /// The state, unless somebody else has it now: then `waker` is woken when he has done with it.
    fn try_lock(&self, waker: &Waker) -> Option<Guard<'_, S, H>> {
        for attempt in 0..2 {
            match self.inner.try_lock() {
                Ok(inner) => return Some(self.guard(inner)),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return Some(self.guard(poisoned.into_inner()));
                }
                Err(TryLockError::WouldBlock) if attempt == 0 => {
                    // In this order: who sees the flag finds the waker. The fence stands between raising the flag and
                    // finding the lock taken, as its twin stands between unlocking and looking at the flag.
                    self.event.register(waker);
                    self.contended.store(true, Ordering::SeqCst);
                    fence(Ordering::SeqCst);
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        None
    }

    /// Blocks until the call is over, as the driver if nobody else is.
    pub(crate) fn wait<C: Call<S, H>>(&self, call: &mut C) -> C::Out {
        let mut guard = self.lock();
        let (mut is_over, mut rounds) = (false, 0);
        loop {
            match call.look(guard.state()) {
                Look::Done(out) => return out,
                Look::Moved => {
                    rounds += 1;
                    if rounds % ROUNDS == 0 {
                        drop(guard); // let others in
                        guard = self.lock();
                    }
                    continue;
                }
                Look::Idle if is_over => return call.give_up(guard.state()),
                Look::Idle => {}
            }
            if let Some(host) = guard.inner().host.take() {
                return self.drive(guard, host, call);
            }
            // Under the lock, so the driver is still there and will notify.
            let key = self.event.listen();
            drop(guard);
            is_over = !self.event.wait(key, call.left());
            guard = self.lock();
        }
    }

    /// The part of the driver, from an idle look on.
    fn drive<C: Call<S, H>>(&self, guard: Guard<'_, S, H>, host: H, call: &mut C) -> C::Out {
        let mut role = Role {
            handover: self,
            unwinds: guard.unwinds,
            guard: Some(guard),
            host: Some(host),
        };
        role.locked().0.drives = true;
        let mut rounds = 0;
        loop {
            let (guard, host) = role.locked();
            if let Some(out) = call.late(guard.state(), host) {
                return out;
            }
            if call.spins(host) {
                role.unlocked(|_| std::hint::spin_loop());
            } else {
                let found = match call.listen(guard.state()) {
                    Heard::Something => None,
                    Heard::Maybe => Some(call.look(guard.state())),
                    Heard::Nothing => Some(Look::Idle),
                };
                match found {
                    None => {}
                    Some(Look::Done(out)) => return out,
                    Some(Look::Moved) => call.resumed(host),
                    Some(Look::Idle) => role.unlocked(|host| call.park(host)),
                }
            }
            loop {
                let (guard, host) = role.locked();
                match call.look(guard.state()) {
                    Look::Done(out) => {
                        call.resumed(host);
                        return out;
                    }
                    Look::Moved => call.resumed(host),
                    Look::Idle => break,
                }
                rounds += 1;
                if rounds % ROUNDS == 0
                    && let Some(out) = call.late(guard.state(), host)
                {
                    return out;
                }
                role.unlocked(|_| ()); // let others in
            }
        }
    }

    /// Looks without ever blocking.
    pub(crate) fn poll<T: Task<S, H>>(&self, waker: &Waker, task: &mut T) -> Poll<T::Out> {
        let Some(mut guard) = self.try_lock(waker) else {
            return Poll::Pending;
        };
        for _ in 1..INLINE_LOOKS {
            if let Look::Done(out) = task.look(guard.state()) {
                return Poll::Ready(out);
            }
        }
        // Registered before the last look, so that nothing between is missed.
        self.event.register(waker);
        let is_quiet = task.register(guard.state(), waker);
        let moved = match task.look(guard.state()) {
            Look::Done(out) => return Poll::Ready(out),
            Look::Moved => true,
            Look::Idle => false,
        };
        // What is there already is not announced again: somebody has to come back for it.
        guard.unsettled = moved || !is_quiet;
        let Inner { state, host } = &mut **guard.inner();
        match task.mind(state, host.as_ref()) {
            Some(out) => Poll::Ready(out),
            None => Poll::Pending,
        }
    }
}

/// The state, locked. Leaving wakes whoever has to hear of what was done.
pub(crate) struct Guard<'a, S: State, H> {
    handover: &'a Handover<S, H>,
    /// `Some` until dropped.
    inner: Option<MutexGuard<'a, Inner<S, H>>>,
    /// Held by the driver.
    drives: bool,
    /// Something may move without anybody being told: whoever is woken looks.
    unsettled: bool,
    /// The thread was panicking already when it locked.
    unwinds: bool,
}

impl<'a, S: State, H> Guard<'a, S, H> {
    fn inner(&mut self) -> &mut MutexGuard<'a, Inner<S, H>> {
        match &mut self.inner {
            Some(inner) => inner,
            None => unreachable!("given back only by drop"),
        }
    }

    fn state(&mut self) -> &mut S {
        &mut self.inner().state
    }

    /// Somebody has to look, though nothing announces it.
    pub(crate) fn unsettle(&mut self) {
        self.unsettled = true;
    }
}

impl<S: State, H> std::ops::Deref for Guard<'_, S, H> {
    type Target = S;

    fn deref(&self) -> &S {
        match &self.inner {
            Some(inner) => &inner.state,
            None => unreachable!("given back only by drop"),
        }
    }
}

impl<S: State, H> std::ops::DerefMut for Guard<'_, S, H> {
    fn deref_mut(&mut self) -> &mut S {
        self.state()
    }
}

impl<S: State, H> Drop for Guard<'_, S, H> {
    fn drop(&mut self) {
        let Some(mut inner) = self.inner.take() else {
            return;
        };
        if thread::panicking() && !self.unwinds {
            inner.state.panicked();
        }
        let news = inner.state.news();
        let is_driven = inner.host.is_none() && !self.drives;
        let is_left = self.unsettled && !is_driven;
        drop(inner);
        let Handover {
            event,
            bell,
            contended,
            ..
        } = self.handover;
        fence(Ordering::SeqCst);
        let is_wanted =
            contended.load(Ordering::Relaxed) && contended.swap(false, Ordering::SeqCst);
        if is_wanted || news.done || is_left {
            event.notify();
        }
        if is_driven && (news.done || news.moved || self.unsettled) {
            bell.notify();
        }
    }
}

/// The role of the driver; leaving it, also by a panic, puts the host back and tells everybody.
struct Role<'a, S: State, H> {
    handover: &'a Handover<S, H>,
    /// `None` while unlocked.
    guard: Option<Guard<'a, S, H>>,
    /// `Some` until dropped.
    host: Option<H>,
    /// The thread was panicking already when it took the role.
    unwinds: bool,
}

impl<'a, S: State, H> Role<'a, S, H> {
    fn locked(&mut self) -> (&mut Guard<'a, S, H>, &mut H) {
        let guard = self.guard.get_or_insert_with(|| {
            let mut guard = self.handover.lock();
            guard.drives = true;
            guard
        });
        match &mut self.host {
            Some(host) => (guard, host),
            None => unreachable!("given back only by drop"),
        }
    }

    fn unlocked(&mut self, f: impl FnOnce(&mut H)) {
        self.guard = None;
        if let Some(host) = &mut self.host {
            f(host);
        }
    }
}

impl<S: State, H> Drop for Role<'_, S, H> {
    fn drop(&mut self) {
        let mut guard = self.guard.take().unwrap_or_else(|| self.handover.lock());
        guard.inner().host = self.host.take();
        guard.drives = false;
        guard.unsettled = true;
        guard.unwinds = self.unwinds;
    }
}
