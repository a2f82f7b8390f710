//! Small worlds, exhaustively: every state that real engines and a network can get into, whatever the order of events.
//!
//! The engines are the ones that run on wires. They are stepped through the call contract of the engine crate: posts are
//! taken from them, and three kinds of events happen in every possible order:
//!
//! | event | of a FIFO |
//! |---|---|
//! | leave | the oldest posted send is read, goes onto the wire if that has room, and is complete |
//! | land | the oldest message on the wire is written to the memory of the oldest posted receive |
//! | tell | the receiving engine hears of the oldest message that has landed |
//!
//! (That a sender hears late that its message has left is the same as the message leaving late: until then nothing of
//! either side depends on it.) The wire holds as many messages as the window, and so many sends and receives may be
//! posted. An engine cannot be cloned; a state is reached again by replaying the events that led to it, which costs
//! microseconds, on the same memory, so that addresses stay. What identifies a state is all that can be seen of it: the
//! contents of all memory (staging and scratch included), what is posted and on the wire, and the progress of each
//! engine. `the_key_of_a_state_tells_everything` compares that with the engines' own description of their insides.
//!
//! Every state without a further event must be an end: all engines done, nothing on the wire, every result right and no
//! input changed. That no order of events leads anywhere else is then a fact about these worlds, not a statistic.

mod explore;
mod seat;
mod world;

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;

use explore::{Explored, explore};
use seat::Call;
use unisono::program::{Context, build_all};
use unisono_sim::Collective;
use world::World;

/// Every call of every algorithm that comes with the library, among `p` ranks.
fn calls(p: u32) -> Vec<(String, Call)> {
    let mut calls = Vec::new();
    for algorithm in unisono::registry().iter() {
        for collective in Collective::ALL {
            let roots = match collective {
                Collective::Broadcast
                | Collective::Reduce
                | Collective::Gather
                | Collective::Scatter => vec![0, p - 1],
                _ => vec![0],
            };
            let orders: &[bool] = if collective.reduces() {
                &[true, false]
            } else {
                &[true]
            };
            for root in roots {
                for &commutative in orders {
                    let context = Context::full(collective, 0, p)
                        .with_root(root)
                        .with_commutative(commutative);
                    if algorithm.supports(&context).is_err() {
                        continue;
                    }
                    let name = format!(
                        "{} {collective} p={p} root={root} free={commutative}",
                        algorithm.name()
                    );
                    let programs = build_all(&**algorithm, &context).unwrap();
                    calls.push((
                        name,
                        Call {
                            collective,
                            root,
                            programs,
                        },
                    ));
                }
            }
        }
    }
    calls
}

/// Explores all calls with 1 to `segments` segments, as far as they have no more than `limit` states.
fn all(worlds: std::ops::RangeInclusive<u32>, segments: u64, limit: usize) {
    let began = Instant::now();
    let (mut explored, mut states, mut edges, mut lowered) = (0, 0, 0, Vec::new());
    let mut whole = 0;
    for p in worlds {
        for (name, call) in calls(p) {
            for window in [1, 4] {
                let mut done = 0;
                let mut last = 1;
                for segments in 1..=segments {
                    let mut world = World::new(&call, p, segments, window, call.full(segments));
                    match explore(&mut world, limit, |w| w.key()) {
                        Explored::All(found) => {
                            (explored, done) = (explored + 1, segments);
                            (states, edges) = (states + found.states, edges + found.edges);
                            println!(
                                "{name} window={window} segments={segments}: {} states, {} edges, depth {}, {} ends",
                                found.states, found.edges, found.depth, found.ends
                            );
                            // Each further segment multiplies states by about as much.
                            let growth = found.states / last;
                            last = found.states;
                            if segments > 1 && found.states * growth > limit {
                                break;
                            }
                        }
                        Explored::TooMany => break,
                    }
                }
                match done {
                    d if d == segments => whole += 1,
                    d => lowered.push(format!(
                        "{name} window={window}: {d} of {segments} segments"
                    )),
                }
                // A single element: most blocks and segments are empty, and skipped.
                let mut world = World::new(&call, p, 2, window, 1);
                if let Explored::All(found) = explore(&mut world, limit, |w| w.key()) {
                    (states, edges, explored) =
                        (states + found.states, edges + found.edges, explored + 1);
                }
            }
        }
    }
    lowered.iter().for_each(|what| println!("lowered: {what}"));
    println!(
        "{explored} worlds, {states} states, {edges} edges in {:.1?}; {whole} calls with all segments, {} with fewer",
        began.elapsed(),
        lowered.len()
    );
    assert!(explored > 100);
}

#[test]
fn no_order_of_events_among_two_ranks_leads_to_anything_but_the_result() {
    all(1..=2, 4, 20_000);
}

#[test]
fn no_order_of_events_among_three_ranks_leads_to_anything_but_the_result() {
    all(3..=3, 1, 5_000);
}

#[test]
#[ignore = "an hour in a release build: cargo test --release -p unisono-sim --test small_worlds -- --ignored --nocapture"]
fn no_order_of_events_leads_to_anything_but_the_result() {
    all(1..=3, 4, 2_000_000);
}

#[test]
fn the_key_of_a_state_tells_everything() {
    let mut compared = 0;
    for p in [2, 3] {
        for (name, call) in calls(p) {
            let segments = if p == 2 { 2 } else { 1 };
            let mut world = World::new(&call, p, segments, 4, call.full(segments));
            let known = RefCell::new(HashMap::<u64, String>::new());
            let _ = explore(&mut world, 300, |w| {
                let key = w.key();
                let insides = w.insides();
                let mut known = known.borrow_mut();
                let first = known.entry(key).or_insert_with(|| insides.clone());
                assert_eq!(*first, insides, "{name}");
                key
            });
            compared += known.borrow().len();
        }
    }
    assert!(compared > 10_000, "{compared}");
}
