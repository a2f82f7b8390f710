//! [`Host`]: the clock and the way to sleep.
//!
//! Nothing above a host knows what time really is: a simulator gives its own. A driver waits like
//! this, and the [`SystemHost`] learns from it how long spinning pays:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use unisono_contract::*;
//! # fn drive(endpoint: &mut dyn Endpoint, host: &mut dyn Host, done: &mut Completions) -> Result<(), LinkError> {
//! let began = host.now();
//! let mut set = WaitSet::new();
//! while done.is_empty() {
//!     endpoint.poll(done)?;
//!     if done.is_empty() && host.now().since(began) > host.spin_budget() {
//!         set.clear();
//!         if let Ready::Wait = endpoint.wait_on(&mut set)? {
//!             endpoint.poll(done)?; // Once more: the keys are taken, so nothing is missed now.
//!             if done.is_empty() {
//!                 host.park(&mut set, Time::NEVER);
//!             }
//!         }
//!     }
//! }
//! let waited = host.now().since(began);
//! host.waited(waited);
//! # Ok(()) }
//! ```

use std::{
    io,
    ops::Add,
    sync::{Arc, OnceLock},
    task::{Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use smallvec::SmallVec;

use crate::yielding::Yielding;
use crate::{
    descriptor::{Descriptor, Doorbell, Interest, Source},
    event::{Event, Key},
};

/// Nanoseconds of the group's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time(pub u64);

impl Time {
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// From `earlier` to here; zero if it is the other way round.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates at [`Time::NEVER`].
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Whether to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Ready {
    /// Something is here: poll, do not sleep.
    Now,
    /// Nothing is here; the set knows what to sleep on.
    Wait,
}

/// What announces progress: filled by endpoints, slept on by a host.
#[derive(Debug, Default)]
pub struct WaitSet {
    events: SmallVec<[(Event, Key); 2]>,
    descriptors: SmallVec<[Source; 4]>,
    longest_sleep: Option<Duration>,
}

impl WaitSet {
    /// Nothing to wait for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `event`, listening from now on: poll after this, before sleeping.
    pub fn add(&mut self, event: &Event) {
        if !self.events.iter().any(|(known, _)| known.is(event)) {
            self.events.push((event.clone(), event.listen()));
        }
    }

    /// Adds an open file, to wait for what `interest` says. No key is needed: a file tells its
    /// state, not its changes.
    pub fn add_descriptor(&mut self, descriptor: &Descriptor, interest: Interest) {
        if !interest.is_none() {
            self.descriptors.push(Source {
                descriptor: descriptor.clone(),
                interest,
            });
        }
    }

    /// The open files to wait on.
    pub fn descriptors(&self) -> &[Source] {
        &self.descriptors
    }

    /// Asks for no sleep longer than `duration`: for what announces itself by no event.
    pub fn sleep_at_most(&mut self, duration: Duration) {
        self.longest_sleep = Some(self.longest_sleep.map_or(duration, |d| d.min(duration)));
    }

    /// The events and since when they are listened to.
    pub fn events(&self) -> &[(Event, Key)] {
        &self.events
    }

    /// The longest sleep asked for.
    pub fn longest_sleep(&self) -> Option<Duration> {
        self.longest_sleep
    }

    /// Whether one of the events came since it was added.
    pub fn has_passed(&self) -> bool {
        self.events
            .iter()
            .any(|(event, key)| event.has_passed(*key))
    }

    /// Forgets everything, for the next round.
    pub fn clear(&mut self) {
        self.events.clear();
        self.descriptors.clear();
        self.longest_sleep = None;
    }
}

/// The clock and the way to sleep.
pub trait Host: Send {
    /// The group's clock.
    fn now(&self) -> Time;

    /// Sleeps until something in `set` came, or until `until`; may return early.
    fn park(&mut self, set: &mut WaitSet, until: Time);

    /// How long to poll before parking.
    fn spin_budget(&self) -> Duration;

    /// Tells how long a wait was, spinning and parking together.
    fn waited(&mut self, wait: Duration) {
        let _ = wait;
    }
}

/// Waits up to here are worth spinning through, and no spin is longer.
const WORTH: Duration = Duration::from_micros(50);
/// The budget before anything was measured.
const FIRST: Duration = Duration::from_micros(20);

/// The real clock and real sleep.
///
/// The spin budget follows the measured waits: towards twice a wait that spinning could have
/// covered, and half of itself after one that it could not. Where ranks share cores it is zero for
/// good: whoever spins there has the core of the rank that it waits for, and because such waits
/// *are* short, measuring them would only keep it spinning. Instead it gives its core away a few
/// times before it sleeps, as long as nobody but other ranks wants it.
#[derive(Debug)]
pub struct SystemHost {
    budget: Duration,
    /// More ranks than cores.
    crowded: bool,
    yielding: Yielding,
    /// Made when several events are first slept on together.
    parker: Option<(Arc<Parker>, Waker)>,
    /// Made when descriptors are first slept on.
    doorbell: Option<(Arc<Doorbell>, Waker)>,
}

impl SystemHost {
    /// A host for one of `sharers` ranks that share the cores of this process. With more ranks
    /// than cores it never spins.
    pub fn new(sharers: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let crowded = sharers > cores;
        Self {
            budget: if crowded { Duration::ZERO } else { FIRST },
            crowded,
            yielding: Yielding::default(),
            parker: None,
            doorbell: None,
        }
    }

    /// Whether more ranks share cores than there are.
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Sleeps on several events: the thread is unparked by whichever comes first.
    fn park_on_many(&mut self, set: &WaitSet, timeout: Option<Duration>) {
        let me = thread::current();
        if self
            .parker
            .as_ref()
            .is_none_or(|(p, _)| p.0.id() != me.id())
        {
            let parker = Arc::new(Parker(me));
            let waker = Waker::from(parker.clone());
            self.parker = Some((parker, waker));
        }
        if let Some((_, waker)) = &self.parker {
            for (event, _) in set.events() {
                event.register(waker);
            }
        }
        let began = Instant::now();
        while !set.has_passed() {
            match timeout {
                None => thread::park(),
                Some(timeout) => {
                    let left = timeout.saturating_sub(began.elapsed());
                    if left.is_zero() {
                        return;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }
}

impl SystemHost {
    /// Sleeps in `poll(2)`: events ring a doorbell that lies beside the descriptors.
    fn park_on_descriptors(&mut self, set: &WaitSet, timeout: Option<Duration>) -> io::Result<()> {
        if self.doorbell.is_none() {
            let bell = Arc::new(Doorbell::new()?);
            let waker = Waker::from(bell.clone());
            self.doorbell = Some((bell, waker));
        }
        let Some((bell, waker)) = &self.doorbell else {
            return Ok(());
        };
        for (event, _) in set.events() {
            event.register(waker);
        }
        if set.has_passed() {
            return Ok(());
        }
        bell.sleep(set.descriptors(), timeout)
    }
}

fn now() -> Time {
    // One origin for the process: times of different ranks can be compared.
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let elapsed = ORIGIN.get_or_init(Instant::now).elapsed();
    Time::default() + elapsed
}

impl Host for SystemHost {
    fn now(&self) -> Time {
        now()
    }

    fn park(&mut self, set: &mut WaitSet, until: Time) {
        if self.crowded && self.yielding.instead_of_sleep(now, thread::yield_now) {
            return; // Early, as any park may.
        }
        let left = (until != Time::NEVER).then(|| until.since(self.now()));
        let timeout = match (left, set.longest_sleep()) {
            (Some(left), Some(longest)) => Some(left.min(longest)),
            (left, longest) => left.or(longest),
        };
        if !set.descriptors().is_empty() {
            if self.park_on_descriptors(set, timeout).is_err() {
                thread::yield_now(); // Out of descriptors or memory: poll instead of sleeping.
            }
            return;
        }
        match (set.events(), timeout) {
            ([], None) => thread::yield_now(), // Nothing would ever wake us: return early instead.
            ([], Some(timeout)) => thread::sleep(timeout),
            ([(event, key)], timeout) => {
                event.wait(*key, timeout);
            }
            (_, timeout) => self.park_on_many(set, timeout),
        }
    }

    fn spin_budget(&self) -> Duration {
        self.budget
    }

    fn waited(&mut self, wait: Duration) {
        if self.crowded {
            self.yielding.progressed();
            return;
        }
        self.budget = if wait < WORTH {
            // A quarter of the way: one odd wait does not decide.
            (self.budget * 3 + wait * 2) / 4
        } else {
            self.budget / 2
        }
        .min(WORTH);
    }
}

/// Unparks a thread when woken.
#[derive(Debug)]
struct Parker(Thread);

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::net::UnixStream};

    use super::*;

    #[test]
    fn the_budget_follows_short_waits_and_flees_long_ones() {
        let mut host = SystemHost::new(1);
        for _ in 0..50 {
            host.waited(Duration::from_micros(10));
        }
        let settled = host.spin_budget();
        assert!(settled > Duration::from_micros(19) && settled <= Duration::from_micros(20));
        for _ in 0..50 {
            host.waited(Duration::from_micros(49));
        }
        assert_eq!(host.spin_budget(), WORTH);
        host.waited(Duration::from_millis(1));
        assert_eq!(host.spin_budget(), WORTH / 2);
    }

    #[test]
    fn more_ranks_than_cores_never_spin() {
        let mut crowded = SystemHost::new(usize::MAX);
        for _ in 0..50 {
            assert_eq!(crowded.spin_budget(), Duration::ZERO);
            crowded.waited(Duration::from_micros(10));
        }
        assert!(SystemHost::new(1).spin_budget() > Duration::ZERO);
    }

    #[test]
    fn an_event_after_the_key_ends_the_park_at_once() {
        for others in 0..2 {
            let (event, other) = (Event::new(), Event::new());
            let mut set = WaitSet::new();
            set.add(&event);
            if others > 0 {
                set.add(&other);
            }
            event.notify();
            let mut host = SystemHost::new(1);
            host.park(&mut set, Time::NEVER); // Would hang if the wake-up were lost.
            assert!(set.has_passed());
        }
    }

    #[test]
    fn either_of_two_events_wakes_a_sleeper() {
        let events = [Event::new(), Event::new()];
        for chosen in &events {
            let mut set = WaitSet::new();
            for event in &events {
                set.add(event);
            }
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(5));
                    chosen.notify();
                });
                SystemHost::new(1).park(&mut set, Time::NEVER);
            });
            assert!(set.has_passed());
        }
    }

    #[test]
    fn the_longest_sleep_bounds_a_park() {
        let mut set = WaitSet::new();
        set.add(&Event::new());
        set.sleep_at_most(Duration::from_millis(1));
        set.sleep_at_most(Duration::from_secs(3600));
        SystemHost::new(1).park(&mut set, Time::NEVER); // Would hang if the bound were lost.
        assert!(!set.has_passed());
    }

    fn set_on(file: &UnixStream, event: &Event) -> WaitSet {
        let mut set = WaitSet::new();
        set.add(event);
        set.add_descriptor(&Descriptor::new(file.try_clone().unwrap()), Interest::READ);
        set
    }

    #[test]
    fn a_readable_descriptor_ends_the_park() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut set = set_on(&here, &Event::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(5));
                there.write_all(b"x").unwrap();
            });
            SystemHost::new(1).park(&mut set, Time::NEVER);
        });
        let mut set = set_on(&here, &Event::new());
        SystemHost::new(1).park(&mut set, Time::NEVER); // It is readable still.
        assert!(!set.has_passed());
    }

    #[test]
    fn an_event_beside_descriptors_wakes_and_is_heard_once() {
        let (here, _there) = UnixStream::pair().unwrap();
        let event = Event::new();
        let mut host = SystemHost::new(1);
        for _ in 0..3 {
            let mut set = set_on(&here, &event);
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(5));
                    event.notify();
                });
                while !set.has_passed() {
                    host.park(&mut set, Time::NEVER);
                }
            });
        }
        let mut set = set_on(&here, &event);
        let began = Instant::now();
        let until = host.now() + Duration::from_millis(20);
        while host.now() < until {
            host.park(&mut set, until); // An unheard ring would make this spin.
        }
        assert!(began.elapsed() >= Duration::from_millis(20) && !set.has_passed());
        let mut set = set_on(&here, &event);
        event.notify();
        host.park(&mut set, Time::NEVER); // Would hang if the key were not looked at.
    }
}
