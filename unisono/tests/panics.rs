//! A rank that panics is named by all others, nobody hangs, and its memory is its own again.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use common::{LIMIT, block_on, ranks};
use unisono::{Error, Group, Kind, Op, owned};

/// Registers a sum that panics at one rank, at its second piece of work.
fn exploding(g: &Group, at: u32) -> Op {
    let me = g.rank();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    g.operator::<u32>(true, move |acc, x| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(me != at || call == 0, "an operator that panics");
        acc.iter_mut().zip(x).for_each(|(a, x)| *a += x);
    })
    .unwrap()
}

fn text(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_rank_whose_operator_panics_is_named_by_all() {
    for n in [1, 100, 300_000] {
        let errors = ranks(4, |g| {
            let op = exploding(&g, 1);
            let mut x = vec![1u32; n];
            let result = catch_unwind(AssertUnwindSafe(|| {
                loop {
                    g.all_reduce(&mut x, op)?;
                }
            }));
            if g.rank() != 1 {
                return text(result.expect("only one rank panics"));
            }
            let panic = result.expect_err("its operator panics");
            assert_eq!(
                panic.downcast_ref::<&str>(),
                Some(&"an operator that panics")
            );
            // The memory is this rank's again: nobody else writes to it.
            x.fill(77);
            thread::sleep(Duration::from_millis(20));
            assert!(x.iter().all(|v| *v == 77));
            // And the group is over here too.
            text(g.barrier())
        });
        for error in &errors {
            assert!(
                error.starts_with("rank 1 panicked during all_reduce #"),
                "{error}"
            );
            assert_eq!(error, &errors[0]);
        }
    }
}

#[test]
fn a_panic_in_a_poll_fails_the_others() {
    let errors = ranks(3, |g| {
        let op = exploding(&g, 2);
        let result = catch_unwind(AssertUnwindSafe(|| {
            block_on(async {
                loop {
                    g.start(owned::all_reduce(vec![1u32; 70_000], op)).await?;
                }
            })
        }));
        match result {
            Ok(error) => text(error),
            Err(_) => {
                assert_eq!(g.rank(), 2);
                text(g.progress())
            }
        }
    });
    assert!(
        errors[0].starts_with("rank 2 panicked during all_reduce #"),
        "{}",
        errors[0]
    );
    assert!(errors.iter().all(|e| *e == errors[0]));
}

#[test]
fn a_thread_whose_operation_was_driven_into_a_panic_by_another_gets_an_error() {
    let outcomes = ranks(2, |g| {
        let op = exploding(&g, 1);
        let waits = |f: &(dyn Fn() -> Result<(), Error> + Sync)| {
            let outcome = catch_unwind(AssertUnwindSafe(f));
            outcome.map(text).unwrap_or_else(|_| "unwound".to_owned())
        };
        thread::scope(|s| {
            let a = s.spawn(|| waits(&|| g.recv(&mut [0u8; 10], 1 - g.rank())));
            let b = s.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                waits(&|| loop {
                    g.all_reduce(&mut vec![1u32; 50_000], op)?;
                })
            });
            [a.join().unwrap(), b.join().unwrap()]
        })
    });
    for outcome in &outcomes[0] {
        assert!(outcome.starts_with("rank 1 panicked during "), "{outcome}");
    }
    let unwound = outcomes[1].iter().filter(|o| *o == "unwound").count();
    assert_eq!(unwound, 1, "{outcomes:?}");
}

#[test]
fn a_rank_that_panics_between_calls_was_lost() {
    for delay in [0, 30] {
        let mut groups = unisono::inproc(3);
        let gone = groups.remove(1);
        // A group may fail before a barrier is over for all: the panic waits for that.
        let returned = Arc::new(Barrier::new(3));
        let here = Arc::clone(&returned);
        let gone = thread::spawn(move || {
            gone.barrier().unwrap();
            here.wait();
            thread::sleep(Duration::from_millis(delay));
            panic!("between calls");
        });
        let others: Vec<_> = groups
            .into_iter()
            .map(|g| {
                let g = g.with_timeout(LIMIT);
                let returned = Arc::clone(&returned);
                thread::spawn(move || {
                    g.barrier().unwrap();
                    returned.wait();
                    text(g.all_reduce(&mut vec![1f32; 10_000], Op::Sum))
                })
            })
            .collect();
        assert!(gone.join().is_err());
        for error in others {
            assert_eq!(
                error.join().unwrap(),
                "rank 1 was lost during all_reduce #1"
            );
        }
    }
}

#[test]
fn a_rank_that_panics_with_an_operation_in_flight_panicked() {
    let mut groups = unisono::inproc(2);
    let gone = groups.remove(1);
    // Started before the peer calls, so it cannot be done when it is left.
    let handle = gone.start(owned::all_reduce(vec![1f32; 10_000], Op::Sum));
    let gone = thread::spawn(move || {
        let _both = (handle, gone);
        panic!("with an operation in flight");
    });
    let error = groups[0]
        .all_reduce(&mut vec![1f32; 10_000], Op::Sum)
        .unwrap_err();
    assert!(gone.join().is_err());
    let Error::Failed { cause } = &error else {
        panic!("{error}");
    };
    assert_eq!((cause.origin, &cause.kind), (1, &Kind::Panicked));
}

#[test]
fn a_rank_that_leaves_with_an_operation_in_flight_says_so() {
    let mut groups = unisono::inproc(2);
    let gone = groups.remove(1);
    drop(gone.start(owned::all_reduce(vec![1f32; 10_000], Op::Sum)));
    drop(gone);
    let error = groups[0]
        .all_reduce(&mut vec![1f32; 10_000], Op::Sum)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 1 left the group during all_reduce #0"
    );
}

#[test]
fn a_call_while_unwinding_works() {
    // The thread panics before the call, not in it: the group is as good as ever.
    struct Last(Group);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.barrier().unwrap();
        }
    }
    ranks(2, |g| {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _last = Last(g.clone());
            panic!("elsewhere");
        }));
        assert!(panicked.is_err());
        g.barrier().unwrap();
    });
}
