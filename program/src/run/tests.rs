//! Small programs whose runs can be followed by hand.

mod reference;

use std::sync::Arc;

use unisono_core::Collective;

use super::{At, Blocked, Model, Options, Outcome, Stuck, run};
use crate::{Algorithm, Context, Emit, Program, Unsupported, block, build_all};

/// A closure as an algorithm.
pub(super) struct Of<F>(pub(super) F);

impl<F: Fn(&Context, &mut dyn Emit) + Send + Sync> Algorithm for Of<F> {
    fn name(&self) -> &str {
        "test"
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        (self.0)(cx, b);
    }
}

fn programs(p: u32, emit: impl Fn(&Context, &mut dyn Emit) + Send + Sync) -> Vec<Arc<Program>> {
    build_all(&Of(emit), &Context::full(Collective::AllReduce, 0, p)).unwrap()
}

pub(super) fn ring(cx: &Context, b: &mut dyn Emit) {
    let (ring, p) = (cx.ring(), i64::from(cx.size()));
    let (me, left, right) = (ring.position(), ring.left(), ring.right());
    for k in 0..p - 1 {
        b.send(right, block(me - k));
        b.recv_reduce(left, block(me - k - 1));
    }
    for k in 0..p - 1 {
        b.send(right, block(me + 1 - k));
        b.recv(left, block(me - k));
    }
}

/// Every message takes one unit; sends and receives cost nothing else.
pub(super) struct Rounds;

impl Model for Rounds {
    type Time = u64;
    type Message = u64;
    fn send(&mut self, _: &At<'_>, ready: u64) -> (u64, u64) {
        (ready, ready + 1)
    }
    fn recv(&mut self, _: &At<'_>, arrival: u64, ready: u64) -> u64 {
        arrival.max(ready)
    }
    fn local(&mut self, _: &At<'_>, ready: u64) -> u64 {
        ready
    }
}

/// Completion only.
struct Untimed;

impl Model for Untimed {
    type Time = ();
    type Message = ();
    fn send(&mut self, _: &At<'_>, (): ()) -> ((), ()) {
        ((), ())
    }
    fn recv(&mut self, _: &At<'_>, (): (), (): ()) {}
    fn local(&mut self, _: &At<'_>, (): ()) {}
}

fn rounds(
    programs: &[Arc<Program>],
    segments: u64,
    window: Option<u64>,
) -> Result<Outcome<u64>, Stuck> {
    let options = Options { segments, window };
    let timed = run(programs, options, &mut Rounds);
    let untimed = run(programs, options, &mut Untimed);
    match (&timed, &untimed) {
        (Ok(a), Ok(b)) => assert_eq!((a.messages, a.steps), (b.messages, b.steps)),
        (Err(a), Err(b)) => assert_eq!(a, b),
        _ => panic!("time decides whether a run completes"),
    }
    timed
}

#[test]
fn a_ring_takes_two_p_minus_two_rounds_whatever_the_window() {
    for p in 2..20 {
        let programs = programs(p, ring);
        for segments in 1..4 {
            for window in [Some(1), Some(2), None] {
                let outcome = rounds(&programs, segments, window).unwrap();
                let hops = 2 * u64::from(p - 1);
                assert_eq!(outcome.messages, hops * segments * u64::from(p));
                assert_eq!(outcome.steps, 2 * outcome.messages);
                if window.is_none() {
                    assert_eq!(outcome.times, vec![hops; p as usize]);
                }
            }
        }
    }
}

#[test]
fn a_window_of_one_makes_the_next_message_wait_until_the_last_is_applied() {
    let two = programs(2, |cx, b| {
        for k in 0..3 {
            if cx.rank() == 0 {
                b.send(1, block(k));
            } else {
                b.recv(0, block(k));
            }
        }
    });
    assert_eq!(rounds(&two, 1, None).unwrap().times, [0, 1]);
    assert_eq!(rounds(&two, 1, Some(1)).unwrap().times, [2, 3]);
    assert_eq!(rounds(&two, 1, Some(2)).unwrap().times, [1, 2]);
    // Two segments of three messages, two at a time.
    assert_eq!(rounds(&two, 2, Some(2)).unwrap().times, [2, 3]);
}

/// The n-th message of a lane takes n + 1 units.
struct Slower;

impl Model for Slower {
    type Time = u64;
    type Message = u64;
    fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, u64) {
        (ready, ready + at.number + 1)
    }
    fn recv(&mut self, _: &At<'_>, arrival: u64, ready: u64) -> u64 {
        arrival.max(ready)
    }
    fn local(&mut self, _: &At<'_>, ready: u64) -> u64 {
        ready
    }
}

#[test]
fn a_wait_takes_the_time_of_the_step_waited_for_not_of_the_lane() {
    // Rank 1 receives both messages in one turn, at 1 and 2, and then answers the first.
    let two = programs(2, |cx, b| {
        if cx.rank() == 0 {
            b.send(1, block(0));
            b.send(1, block(1));
            b.recv(1, block(0));
        } else {
            b.recv(0, block(0));
            b.recv(0, block(1));
            b.send(0, block(0));
        }
    });
    let outcome = run(&two, Options::default(), &mut Slower).unwrap();
    assert_eq!(outcome.times, [2, 2]);
}

#[test]
fn a_cycle_of_receives_is_reported_with_what_each_lane_lacks() {
    let two = programs(2, |cx, b| {
        b.recv(1 - cx.rank(), block(0));
        b.send(1 - cx.rank(), block(0));
    });
    let stuck = rounds(&two, 2, Some(1)).unwrap_err();
    let lacks: Vec<_> = stuck.lanes.iter().map(|l| (l.rank, l.blocked)).collect();
    let step = Blocked::Step {
        lane: 0,
        step: 0,
        segment: 0,
    };
    assert_eq!(
        lacks,
        [
            (0, Blocked::Message),
            (0, step),
            (1, Blocked::Message),
            (1, step)
        ]
    );
    assert_eq!(
        stuck.to_string(),
        "stuck: rank 0 lane 0 (from 1, channel 0) at step 0 (recv) waits for a message; \
         rank 0 lane 1 (to 1, channel 0) at step 0 (send) waits for step 0 segment 0 of lane 0; \
         rank 1 lane 0 (from 0, channel 0) at step 0 (recv) waits for a message; \
         rank 1 lane 1 (to 0, channel 0) at step 0 (send) waits for step 0 segment 0 of lane 0"
    );
}

#[test]
fn messages_that_nobody_receives_are_leftovers() {
    let two = programs(2, |cx, b| {
        if cx.rank() == 0 {
            b.send(1, block(0));
            b.send(1, block(1));
        } else {
            b.recv(0, block(0));
        }
    });
    let stuck = rounds(&two, 3, None).unwrap_err();
    assert!(stuck.lanes.is_empty());
    let [left] = stuck.leftovers[..] else {
        panic!("{stuck}")
    };
    assert_eq!((left.from, left.to, left.messages), (0, 1, 3));
    // With a window the sender itself is stuck.
    let stuck = rounds(&two, 3, Some(1)).unwrap_err();
    assert_eq!(stuck.lanes[0].blocked, Blocked::Room);
    assert_eq!(stuck.lanes[0].segment, 1);
}

#[test]
fn a_program_may_need_more_than_a_window_of_one() {
    // Rank 1 takes rank 0's first message only after one of rank 2, which rank 0 lets go after its second message.
    let three = programs(3, |cx, b| match cx.rank() {
        0 => {
            b.send(1, block(0));
            b.send(1, block(1));
            b.recv(2, block(1));
            b.send(2, block(1));
        }
        1 => {
            b.recv(2, block(0));
            b.recv(0, block(0));
            b.recv(0, block(1));
        }
        _ => {
            b.send(0, block(1));
            b.recv(0, block(2));
            b.send(1, block(2));
        }
    });
    rounds(&three, 1, Some(2)).unwrap();
    let stuck = rounds(&three, 1, Some(1)).unwrap_err();
    let room = stuck.lanes.iter().find(|l| l.blocked == Blocked::Room);
    assert_eq!(room.map(|l| (l.rank, l.step)), Some((0, 1)), "{stuck}");
}

#[test]
fn an_unbounded_fifo_takes_more_than_the_soft_limit() {
    // All of rank 0's messages are in flight before rank 1 may take the first.
    const MANY: i64 = 500;
    let two = programs(2, |cx, b| {
        if cx.rank() == 0 {
            (0..MANY).for_each(|_| b.send(1, block(0)));
            b.recv(1, block(1));
        } else {
            b.send(0, block(1));
            (0..MANY).for_each(|_| b.recv(0, block(1)));
        }
    });
    assert_eq!(rounds(&two, 1, None).unwrap().messages, MANY as u64 + 1);
}

#[test]
fn a_wait_for_a_lane_that_does_not_exist_is_named() {
    let mut two = programs(2, ring);
    let first = Arc::make_mut(&mut two[1]);
    for run in first.lanes.iter_mut().flat_map(|l| &mut l.runs) {
        run.waits.iter_mut().for_each(|w| w.lane = 9);
    }
    let stuck = rounds(&two, 1, None).unwrap_err();
    assert_eq!(stuck.lanes[0].rank, 1);
    assert_eq!(stuck.lanes[0].blocked, Blocked::NoLane { lane: 9 });
}
