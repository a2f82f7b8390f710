//! The hand-over of the driver's role, in many interleavings:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p unisono --test handover --release`.
//!
//! The code is the library's, over shuttle's locks. A lost wake-up is a deadlock, which shuttle reports.
#![cfg(shuttle)]

#[path = "../src/handover.rs"]
#[allow(dead_code, unreachable_pub)]
mod handover;

/// What `handover` is built from here.
mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering, fence};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use std::sync::TryLockError;

    use std::task::Waker;
    use std::time::Duration;

    use shuttle::sync::{Arc, Condvar};

    /// The library's event without its fast path, which has tests of its own.
    #[derive(Clone, Default)]
    pub(crate) struct Event(Arc<(Mutex<(u64, Vec<Waker>)>, Condvar)>);

    impl Event {
        pub(crate) fn new() -> Event {
            Event::default()
        }

        pub(crate) fn notify(&self) {
            let mut state = self.0.0.lock().unwrap();
            state.0 += 1;
            let wakers = std::mem::take(&mut state.1);
            drop(state);
            self.0.1.notify_all();
            wakers.into_iter().for_each(Waker::wake);
        }

        pub(crate) fn listen(&self) -> u64 {
            self.0.0.lock().unwrap().0
        }

        pub(crate) fn register(&self, waker: &Waker) {
            let mut state = self.0.0.lock().unwrap();
            if !state.1.iter().any(|known| known.will_wake(waker)) {
                state.1.push(waker.clone());
            }
        }

        /// Time does not pass here: who is not woken waits for ever.
        pub(crate) fn wait(&self, key: u64, _: Option<Duration>) -> bool {
            let mut state = self.0.0.lock().unwrap();
            while state.0 == key {
                state = self.0.1.wait(state).unwrap();
            }
            true
        }
    }
}

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use handover::{Call, Handover, Heard, Look, News, State, Task};
use shuttle::{future, thread};
use sync::{Event, Mutex};

/// What a peer has sent: the numbers of operations that are done by it.
#[derive(Clone)]
struct Wire {
    messages: Arc<Mutex<Vec<usize>>>,
    event: Event,
}

impl Wire {
    fn send(&self, operation: usize) {
        self.messages.lock().unwrap().push(operation);
        self.event.notify();
    }
}

/// A rank: operation k is done when message k was fetched. Messages are fetched in order, each not before its operation
/// was submitted: a later operation of one thread can hold up an earlier one of another.
struct Rank {
    wire: Wire,
    submitted: Vec<usize>,
    done: Vec<usize>,
    news: News,
}

impl State for Rank {
    fn news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    fn panicked(&mut self) {}
}

impl Rank {
    fn has_mail(&self) -> bool {
        let messages = self.wire.messages.lock().unwrap();
        messages.first().is_some_and(|m| self.submitted.contains(m))
    }

    /// Fetches one message, though there may be more: so do endpoints with large ones.
    fn look(&mut self, operation: usize) -> Look<()> {
        let mut messages = self.wire.messages.lock().unwrap();
        let expected = messages.first().is_some_and(|m| self.submitted.contains(m));
        let fetched = expected.then(|| messages.remove(0));
        drop(messages);
        if let Some(fetched) = fetched {
            self.done.push(fetched);
            self.news.done |= fetched < PARTS;
            self.news.moved = true;
        }
        match fetched {
            _ if self.done.contains(&operation) => Look::Done(()),
            Some(_) => Look::Moved,
            None => Look::Idle,
        }
    }
}

/// Messages from this number on are parts of something: no operation is done by them.
const PARTS: usize = 100;

struct Host;

struct Blocking {
    operation: usize,
    listens: Option<(Event, u64)>,
}

impl Call<Rank, Host> for Blocking {
    type Out = ();

    fn look(&mut self, rank: &mut Rank) -> Look<()> {
        rank.look(self.operation)
    }

    fn late(&mut self, _: &mut Rank, _: &Host) -> Option<()> {
        None
    }

    fn spins(&mut self, _: &Host) -> bool {
        false
    }

    fn listen(&mut self, rank: &mut Rank) -> Heard {
        let event = rank.wire.event.clone();
        let key = event.listen();
        self.listens = Some((event, key));
        if self.operation % 2 == 0 {
            // What is there already is not seen here, as with events: that takes another look.
            return Heard::Maybe;
        }
        // As with descriptors, which tell their state.
        match rank.has_mail() {
            true => Heard::Something,
            false => Heard::Nothing,
        }
    }

    fn park(&mut self, _: &mut Host) {
        if let Some((event, key)) = self.listens.take() {
            event.wait(key, None);
        }
    }

    fn resumed(&mut self, _: &mut Host) {}

    fn left(&mut self) -> Option<Duration> {
        None
    }

    fn give_up(&mut self, _: &mut Rank) {
        unreachable!("time does not pass");
    }
}

struct Polled(usize);

impl Task<Rank, Host> for Polled {
    type Out = ();

    fn look(&mut self, rank: &mut Rank) -> Look<()> {
        rank.look(self.0)
    }

    fn register(&mut self, rank: &mut Rank, waker: &Waker) -> bool {
        rank.wire.event.register(waker);
        true
    }

    fn mind(&mut self, _: &mut Rank, _: Option<&Host>) -> Option<()> {
        None
    }
}

type Shared = Arc<Handover<Rank, Host>>;

fn rank() -> (Shared, Wire) {
    let event = Event::new();
    let wire = Wire {
        messages: Arc::default(),
        event: event.clone(),
    };
    let rank = Rank {
        wire: wire.clone(),
        submitted: Vec::new(),
        done: Vec::new(),
        news: News::default(),
    };
    (Arc::new(Handover::new(rank, Host, event)), wire)
}

fn submit(shared: &Shared, operation: usize) {
    shared.lock().submitted.push(operation);
}

fn block(shared: &Shared, operation: usize) {
    submit(shared, operation);
    shared.wait(&mut Blocking {
        operation,
        listens: None,
    });
}

fn poll(shared: &Shared, operation: usize) {
    submit(shared, operation);
    let mut task = Polled(operation);
    future::block_on(poll_fn(|cx: &mut Context<'_>| {
        shared.poll(cx.waker(), &mut task)
    }));
}

/// Runs `threads` against a peer that sends messages 0.. in order.
fn run(messages: usize, threads: Vec<Box<dyn FnOnce(&Shared) + Send>>) {
    let (shared, wire) = rank();
    let peer = thread::spawn(move || (0..messages).for_each(|m| wire.send(m)));
    let threads: Vec<_> = threads
        .into_iter()
        .map(|f| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || f(&shared))
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    peer.join().unwrap();
}

fn check(f: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(f, 20_000);
    shuttle::check_pct(f, 20_000, 4);
}

#[test]
fn two_blocking_threads_hand_the_role_on() {
    check(|| {
        run(
            4,
            vec![
                Box::new(|s| [0, 2].into_iter().for_each(|k| block(s, k))),
                Box::new(|s| [1, 3].into_iter().for_each(|k| block(s, k))),
            ],
        );
    });
}

#[test]
fn two_blocking_threads_and_a_task() {
    check(|| {
        run(
            4,
            vec![
                Box::new(|s| [0, 3].into_iter().for_each(|k| block(s, k))),
                Box::new(|s| block(s, 1)),
                Box::new(|s| poll(s, 2)),
            ],
        );
    });
}

#[test]
fn two_tasks_and_a_blocking_thread() {
    check(|| {
        run(
            3,
            vec![
                Box::new(|s| poll(s, 0)),
                Box::new(|s| poll(s, 1)),
                Box::new(|s| block(s, 2)),
            ],
        );
    });
}

#[test]
fn two_tasks_alone() {
    check(|| {
        run(
            4,
            vec![
                Box::new(|s| [0, 2].into_iter().for_each(|k| poll(s, k))),
                Box::new(|s| [1, 3].into_iter().for_each(|k| poll(s, k))),
            ],
        );
    });
}

#[test]
fn a_task_that_is_polled_once_and_given_up_takes_no_wake_up_along() {
    check(|| {
        run(
            3,
            vec![
                Box::new(|s| {
                    submit(s, 0);
                    let _: Poll<()> = s.poll(Waker::noop(), &mut Polled(0));
                }),
                Box::new(|s| block(s, 1)),
                Box::new(|s| poll(s, 2)),
            ],
        );
    });
}

#[test]
fn messages_that_came_early_are_fetched_by_who_expects_them() {
    // All messages are there before anybody looks: nothing is announced any more.
    check(|| {
        let (shared, wire) = rank();
        let parts = PARTS..PARTS + 10;
        parts.clone().chain(0..2).for_each(|m| wire.send(m));
        parts.for_each(|k| submit(&shared, k));
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || poll(&other, 0));
        poll(&shared, 1);
        task.join().unwrap();
    });
}

#[test]
fn a_driver_hears_of_what_others_have_let_through() {
    // Message 1 waits behind message 0, which nobody expects when the driver falls asleep.
    check(|| {
        let (shared, wire) = rank();
        (0..2).for_each(|m| wire.send(m));
        let other = Arc::clone(&shared);
        let driver = thread::spawn(move || block(&other, 1));
        block(&shared, 0);
        driver.join().unwrap();
    });
    check(|| {
        let (shared, wire) = rank();
        (0..2).for_each(|m| wire.send(m));
        let other = Arc::clone(&shared);
        let driver = thread::spawn(move || block(&other, 1));
        poll(&shared, 0);
        driver.join().unwrap();
    });
}

#[test]
fn whoever_is_done_is_told_at_once_and_not_when_the_driver_leaves() {
    // The peer answers the one operation only when the other is over.
    check(|| {
        let (shared, wire) = rank();
        submit(&shared, 0);
        submit(&shared, 1);
        let other = Arc::clone(&shared);
        let last = thread::spawn(move || block(&other, 1));
        let peer = wire.clone();
        let sender = thread::spawn(move || peer.send(0));
        block(&shared, 0);
        wire.send(1);
        last.join().unwrap();
        sender.join().unwrap();
    });
}
