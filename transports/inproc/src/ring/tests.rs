//! The slot state machine under every interleaving (loom), or many real ones (std).
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p unisono-inproc --release --lib loom
//! ```
//!
//! An ordinary `cargo test` runs the same properties on plain threads, each many
//! times. The memory that offers tell of is a `sync::Cell`, so loom reports any
//! copy that overlaps the owner's next use of it.

use super::*;
use std::convert::Infallible;

#[cfg(loom)]
use loom::thread;
#[cfg(not(loom))]
use std::thread;

/// What a slot of these tests carries.
#[derive(Default)]
struct Parcel {
    value: u64,
    memory: Option<Arc<Memory>>,
}

/// One word of somebody's memory.
struct Memory(Cell<u64>);

// SAFETY: the tests read and write it only as the protocol allows; that this is
// so is what loom checks.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Memory {
    fn new(value: u64) -> Arc<Self> {
        Arc::new(Self(Cell::new(value)))
    }

    fn read(&self) -> u64 {
        // SAFETY: loom checks that no write overlaps.
        self.0.with(|p| unsafe { *p })
    }

    fn write(&self, value: u64) {
        // SAFETY: loom checks that no other access overlaps.
        self.0.with_mut(|p| unsafe { *p = value });
    }
}

#[cfg(loom)]
fn explore(property: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(property);
}

#[cfg(not(loom))]
fn explore(property: impl Fn() + Send + Sync + 'static) {
    for _ in 0..2_000 {
        property();
    }
}

fn put(sender: &mut Sender<Parcel>, kind: Kind, value: u64, memory: Option<&Arc<Memory>>) -> bool {
    sender
        .put(kind, |parcel| {
            parcel.value = value;
            parcel.memory = memory.cloned();
            Ok::<_, Infallible>(())
        })
        .unwrap()
}

fn copy_of(parcel: &Parcel) -> u64 {
    parcel.memory.as_ref().map_or(parcel.value, |m| m.read())
}

/// What the receiver met; offers are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Nothing,
    Value(u64),
    Closed,
}

fn step(receiver: &mut Receiver<Parcel>) -> Met {
    match receiver.head() {
        Head::Empty => Met::Nothing,
        Head::Closed => Met::Closed,
        Head::Message(message) => {
            let value = message.cargo(copy_of);
            let _ = message.take();
            Met::Value(value)
        }
        Head::Offer(offer) => {
            // The cargo may be read before the claim, whatever the sender does.
            offer.cargo(|parcel| assert!(parcel.memory.is_some()));
            match offer.claim() {
                None => Met::Nothing,
                Some(claim) => {
                    let value = claim.cargo(copy_of);
                    claim.finish();
                    Met::Value(value)
                }
            }
        }
    }
}

fn step_until_something(receiver: &mut Receiver<Parcel>) -> Met {
    loop {
        match step(receiver) {
            Met::Nothing => thread::yield_now(),
            met => return met,
        }
    }
}

#[test]
fn loom_messages_arrive_whole_and_in_order() {
    explore(|| {
        let (mut sender, mut receiver) = ring(2, Parcel::default);
        let sending = thread::spawn(move || {
            for value in 1..=3 {
                while !put(&mut sender, Kind::Message, value, None) {
                    thread::yield_now();
                }
            }
        });
        for value in 1..=3 {
            assert_eq!(step_until_something(&mut receiver), Met::Value(value));
        }
        sending.join().unwrap();
        assert_eq!(step(&mut receiver), Met::Closed);
    });
}

#[test]
fn loom_a_copied_offer_gives_the_memory_back() {
    explore(|| {
        let (mut sender, mut receiver) = ring(1, Parcel::default);
        let receiving = thread::spawn(move || {
            [(); 2].map(|()| step_until_something(&mut receiver)) // Two laps of the ring.
        });
        let memory = Memory::new(7);
        for (position, value) in [(0, 7), (1, 8)] {
            memory.write(value);
            assert!(put(&mut sender, Kind::Offer, 0, Some(&memory)));
            loop {
                match sender.outcome(position) {
                    Outcome::Open => thread::yield_now(),
                    outcome => break assert_eq!(outcome, Outcome::Copied),
                }
            }
        }
        memory.write(0);
        let met = receiving.join().unwrap();
        assert_eq!(met, [Met::Value(7), Met::Value(8)]);
    });
}

#[test]
fn loom_a_withdrawn_offer_is_copied_whole_or_not_at_all() {
    explore(|| {
        let (mut sender, mut receiver) = ring(2, Parcel::default);
        let memory = Memory::new(7);
        assert!(put(&mut sender, Kind::Offer, 0, Some(&memory)));
        let withdrawing = thread::spawn(move || {
            let outcome = sender.withdraw(0);
            memory.write(9); // The memory is the owner's again, at once.
            (outcome, sender)
        });
        let first = step_until_something(&mut receiver);
        let (outcome, _sender) = withdrawing.join().unwrap();
        match outcome {
            Outcome::Copied => assert_eq!(first, Met::Value(7)),
            outcome => {
                assert_eq!(outcome, Outcome::Withdrawn);
                assert_eq!(first, Met::Closed);
            }
        }
    });
}

#[test]
fn loom_what_was_sent_before_the_sender_left_is_received_before_closed() {
    explore(|| {
        let (mut sender, mut receiver) = ring(2, Parcel::default);
        let sending = thread::spawn(move || {
            assert!(put(&mut sender, Kind::Message, 5, None));
        });
        assert_eq!(step_until_something(&mut receiver), Met::Value(5));
        assert_eq!(step_until_something(&mut receiver), Met::Closed);
        sending.join().unwrap();
    });
}

#[test]
fn loom_a_sender_that_leaves_takes_its_offers_along() {
    explore(|| {
        let (mut sender, mut receiver) = ring(2, Parcel::default);
        let memory = Memory::new(7);
        assert!(put(&mut sender, Kind::Offer, 0, Some(&memory)));
        let leaving = thread::spawn(move || {
            drop(sender);
            memory.write(9);
        });
        let first = step_until_something(&mut receiver);
        assert!(matches!(first, Met::Value(7) | Met::Closed), "{first:?}");
        if first == Met::Value(7) {
            assert_eq!(step_until_something(&mut receiver), Met::Closed);
        }
        leaving.join().unwrap();
    });
}

#[test]
fn loom_a_receiver_that_leaves_is_seen_and_reads_nothing_more() {
    explore(|| {
        let (mut sender, mut receiver) = ring(1, Parcel::default);
        let memory = Memory::new(7);
        let offered = Arc::clone(&memory);
        let sending = thread::spawn(move || {
            assert!(put(&mut sender, Kind::Offer, 0, Some(&offered)));
            loop {
                if sender.outcome(0) == Outcome::Copied {
                    break;
                }
                if sender.is_receiver_gone() {
                    sender.withdraw(0);
                    break;
                }
                thread::yield_now();
            }
            offered.write(9);
        });
        let met = step(&mut receiver);
        assert!(matches!(met, Met::Nothing | Met::Value(7)), "{met:?}");
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(memory.read(), 9);
    });
}

#[test]
fn loom_a_sender_waiting_for_room_is_told_or_sees_it() {
    explore(|| {
        let (mut sender, mut receiver) = ring(1, Parcel::default);
        assert!(put(&mut sender, Kind::Message, 1, None));
        let taking = thread::spawn(move || match receiver.head() {
            Head::Message(message) => (message.take(), receiver),
            _ => panic!("the message was there before the thread"),
        });
        let sees_room = sender.await_room();
        let (told, _receiver) = taking.join().unwrap();
        assert_eq!(told, !sees_room);
        assert!(put(&mut sender, Kind::Message, 2, None));
    });
}

#[test]
fn loom_a_claim_that_is_dropped_refuses_the_offer() {
    explore(|| {
        let (mut sender, mut receiver) = ring(1, Parcel::default);
        let memory = Memory::new(7);
        assert!(put(&mut sender, Kind::Offer, 0, Some(&memory)));
        let refusing = thread::spawn(move || {
            if let Head::Offer(offer) = receiver.head() {
                drop(offer.claim().inspect(|claim| {
                    claim.cargo(copy_of); // Begun, and not finished.
                }));
            }
            receiver
        });
        let outcome = sender.withdraw(0);
        memory.write(9);
        assert!(
            matches!(outcome, Outcome::Refused | Outcome::Withdrawn),
            "{outcome:?}"
        );
        drop(refusing.join().unwrap());
    });
}

#[test]
fn loom_both_ends_gone_free_what_the_slots_held() {
    explore(|| {
        let (mut sender, receiver) = ring(2, Parcel::default);
        let memory = Memory::new(7);
        assert!(put(&mut sender, Kind::Offer, 0, Some(&memory)));
        let leaving = thread::spawn(move || drop(receiver));
        drop(sender);
        leaving.join().unwrap();
        assert_eq!(Arc::strong_count(&memory), 1);
    });
}

/// Long runs instead of many short ones: laps of the ring, both kinds mixed, and a
/// withdrawal at the end of each that races the copy.
#[cfg(not(loom))]
#[test]
fn stress_mixed_messages_and_offers_that_end_in_a_withdrawal() {
    for last in (0..400).map(|round| round * 2 + 1) {
        let (mut sender, mut receiver) = ring(8, Parcel::default);
        let sending = thread::spawn(move || {
            let mut outcome = Outcome::Open;
            for value in 0..=last {
                let kind = [Kind::Message, Kind::Offer][value as usize % 2];
                let memory = (kind == Kind::Offer).then(|| Memory::new(value));
                while !put(&mut sender, kind, value, memory.as_ref()) {
                    thread::yield_now();
                }
                let Some(memory) = memory else { continue };
                if value == last {
                    outcome = sender.withdraw(value);
                } else {
                    while sender.outcome(value) != Outcome::Copied {
                        thread::yield_now();
                    }
                }
                memory.write(u64::MAX);
            }
            outcome
        });
        let mut received = 0;
        loop {
            match step_until_something(&mut receiver) {
                Met::Closed => break,
                met => assert_eq!(met, Met::Value(received)),
            }
            received += 1;
        }
        let withdrawn = sending.join().unwrap() == Outcome::Withdrawn;
        assert_eq!(received + u64::from(withdrawn), last + 1);
    }
}
