//! [`Event`]: "something changed", for one who may be asleep.
//!
//! Whoever changes something calls [`notify`](Event::notify) afterwards: a fence and a load when
//! nobody listens. Whoever waits *listens first, then looks, then sleeps*:
//!
//! ```
//! use std::{sync::atomic::{AtomicBool, Ordering}, thread};
//! use unisono_contract::Event;
//!
//! let (event, flag) = (Event::new(), AtomicBool::new(false));
//! thread::scope(|scope| {
//!     scope.spawn(|| {
//!         flag.store(true, Ordering::Release);
//!         event.notify();
//!     });
//!     loop {
//!         let key = event.listen();
//!         if flag.load(Ordering::Acquire) {
//!             break;
//!         }
//!         event.wait(key, None);
//!     }
//! });
//! ```
//!
//! **Why no wake-up is lost.** The state is one word: a count of wake-ups above, the bit
//! `LISTENED` below. A notifier writes its change, passes a `SeqCst` fence, and loads the word; a
//! listener sets the bit, passes a `SeqCst` fence, and looks for changes. Consider where the value
//! the notifier loaded stands in the word's modification order:
//! * before the listener's `fetch_or`: then the notifier's fence comes before the listener's in the
//!   single order of fences, and the listener's look sees the change;
//! * at or after it, with the bit set: the notifier takes the lock, counts up and wakes;
//! * after it, with the bit cleared: the bit is only ever cleared together with counting up, so the
//!   count has moved on since the listener's key, and `wait` returns at once.
//!
//! The count only moves under the lock, and `wait` compares it under the lock, so a sleeper cannot
//! miss the signal between its compare and its sleep. Wakers are pushed under the lock with the bit
//! set, and taken under the lock when it is cleared.

use std::{
    fmt, mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering, fence},
    },
    task::Waker,
    time::{Duration, Instant},
};

/// Somebody listens: the next notify has to wake.
const LISTENED: u64 = 1;
/// One more wake-up.
const COUNT: u64 = 2;

/// Wakes who waits for a change. Clones are the same event.
#[derive(Clone, Default)]
pub struct Event {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: AtomicU64,
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Default)]
struct Sleepers {
    wakers: Vec<Waker>,
    /// An empty vector with room, so that taking the wakers out costs no allocation.
    spare: Vec<Waker>,
}

/// Since when somebody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Key(u64);

impl Event {
    /// A new event that nobody waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes everyone who has listened since before the change. Call after the change.
    #[inline]
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.shared.state.load(Ordering::Relaxed) & LISTENED != 0 {
            self.wake();
        }
    }

    /// Starts to listen. Look for changes after this, and [`wait`](Self::wait) only if there were
    /// none.
    #[inline]
    pub fn listen(&self) -> Key {
        let state = self.shared.state.fetch_or(LISTENED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Key(state & !LISTENED)
    }

    /// Whether there was a wake-up since `key`.
    #[inline]
    pub fn has_passed(&self, key: Key) -> bool {
        // Acquire pairs with the counting up in `wake`, which follows the change.
        self.shared.state.load(Ordering::Acquire) & !LISTENED != key.0
    }

    /// Whether both are the same event.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Sleeps until there was a wake-up since `key`, or for `timeout`; says whether there was one.
    pub fn wait(&self, key: Key, timeout: Option<Duration>) -> bool {
        // A timeout beyond the clock's range is as good as none.
        let until = timeout.map(|timeout| Instant::now().checked_add(timeout));
        let mut sleepers = self.lock();
        while !self.has_passed(key) {
            sleepers = match until.flatten() {
                None => self
                    .shared
                    .changed
                    .wait(sleepers)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.shared
                        .changed
                        .wait_timeout(sleepers, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        true
    }

    /// Has the next [`notify`](Self::notify) wake `waker`, once. Look for changes after this. A
    /// waker that is registered already is not registered twice.
    pub fn register(&self, waker: &Waker) {
        let mut sleepers = self.lock();
        if !sleepers.wakers.iter().any(|known| known.will_wake(waker)) {
            sleepers.wakers.push(waker.clone());
        }
        self.shared.state.fetch_or(LISTENED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    #[cold]
    fn wake(&self) {
        let mut sleepers = self.lock();
        // A read-modify-write, because listeners set the bit without the lock. Who set it just now
        // holds the old count as key: counting up releases them too.
        let _ = self
            .shared
            .state
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |state| {
                Some((state + COUNT) & !LISTENED)
            });
        let spare = mem::take(&mut sleepers.spare);
        let mut wakers = mem::replace(&mut sleepers.wakers, spare);
        drop(sleepers);
        self.shared.changed.notify_all();
        if wakers.capacity() == 0 {
            return;
        }
        // Outside the lock: a waker may run anything, also a `register` on this event.
        for waker in wakers.drain(..) {
            waker.wake();
        }
        self.lock().spare = wakers;
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.shared
            .sleepers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.load(Ordering::Relaxed);
        f.debug_struct("Event")
            .field("count", &(state / COUNT))
            .field("listened", &(state & LISTENED != 0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
        thread,
    };

    use super::*;

    #[test]
    fn a_notify_before_listening_is_not_kept() {
        let event = Event::new();
        event.notify();
        let key = event.listen();
        assert!(!event.wait(key, Some(Duration::from_millis(1))));
    }

    #[test]
    fn a_notify_between_listening_and_waiting_is_seen() {
        let event = Event::new();
        let key = event.listen();
        event.notify();
        assert!(event.wait(key, None));
    }

    #[test]
    fn one_notify_releases_every_listener() {
        let event = Event::new();
        let keys = [event.listen(), event.listen()];
        event.notify();
        assert!(keys.iter().all(|key| event.has_passed(*key)));
    }

    #[test]
    fn two_threads_hand_a_turn_back_and_forth() {
        const TURNS: usize = if cfg!(miri) { 50 } else { 10_000 };
        let turn = AtomicUsize::new(0);
        let events = [Event::new(), Event::new()];
        thread::scope(|scope| {
            for me in 0..2 {
                let (turn, events) = (&turn, &events);
                scope.spawn(move || {
                    for step in (me..TURNS).step_by(2) {
                        loop {
                            let key = events[me].listen();
                            if turn.load(Ordering::Relaxed) == step {
                                break;
                            }
                            assert!(events[me].wait(key, Some(Duration::from_secs(60))));
                        }
                        turn.store(step + 1, Ordering::Relaxed);
                        events[1 - me].notify();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), TURNS);
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn wakers_are_woken_once_per_registration() {
        let event = Event::new();
        let counts = [0, 1].map(|_| Arc::new(Count(AtomicUsize::new(0))));
        for count in &counts {
            let waker = Waker::from(count.clone());
            event.register(&waker);
            event.register(&waker);
        }
        event.notify();
        event.notify();
        for count in &counts {
            assert_eq!(count.0.load(Ordering::Relaxed), 1);
        }
    }
}
