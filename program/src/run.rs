//! The abstract run: a whole program set executed step by step, without data, clocks or threads.
//!
//! Lanes talk only through FIFOs and monotone counters, so any order of execution gives the same result; this run takes
//! one that is fast and small. `verify` runs programs to see that they complete and what every block ends up holding;
//! the evaluator runs them with times. What a step means is the [`Model`]'s business; *when* it may happen is this
//! file's alone.
//!
//! ```
//! use std::sync::Arc;
//! use unisono_program::run::{At, Model, Options, run};
//! # use unisono_core::Collective;
//! # use unisono_program::*;
//! # struct Exchange;
//! # impl Algorithm for Exchange {
//! #     fn name(&self) -> &str { "exchange" }
//! #     fn supports(&self, _: &Context) -> Result<(), Unsupported> { Ok(()) }
//! #     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//! #         b.send(1 - cx.rank(), block(0));
//! #         b.recv_reduce(1 - cx.rank(), block(0));
//! #     }
//! # }
//!
//! /// Every message takes one unit of time.
//! struct Rounds;
//!
//! impl Model for Rounds {
//!     type Time = u64;
//!     type Message = u64;
//!     fn send(&mut self, _: &At<'_>, ready: u64) -> (u64, u64) {
//!         (ready, ready + 1)
//!     }
//!     fn recv(&mut self, _: &At<'_>, arrival: u64, ready: u64) -> u64 {
//!         arrival.max(ready)
//!     }
//!     fn local(&mut self, _: &At<'_>, ready: u64) -> u64 {
//!         ready
//!     }
//! }
//!
//! let programs = build_all(&Exchange, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
//! let outcome = run(&programs, Options { segments: 1, window: Some(1) }, &mut Rounds).unwrap();
//! assert_eq!(outcome.times, [1, 1]);
//! ```

mod history;
mod machine;
mod queue;
mod stuck;
mod wiring;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use unisono_core::Rank;

use crate::{Program, Run};

pub use stuck::{Blocked, Leftover, Standing, Stuck};

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Segments that every step is cut into (0 counts as 1).
    pub segments: u64,
    /// Messages (segments) that a FIFO holds; `None`: any number.
    pub window: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segments: 1,
            window: None,
        }
    }
}

/// Which segment of which step is being executed.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The rank: the position of its program in the set.
    pub rank: Rank,
    /// Index of the lane in the program.
    pub lane: u32,
    /// The run that the step belongs to.
    pub run: &'a Run,
    /// Step of the run.
    pub k: u64,
    /// Segment of the step.
    pub segment: u64,
    /// Position in the lane: step of the lane * segments + segment.
    pub number: u64,
    /// The rank's program.
    pub program: &'a Program,
}

/// What steps mean. Called once per segment of each step, in an order that respects waits and FIFOs.
pub trait Model {
    /// When something is complete: `()` to verify, picoseconds to evaluate. The default is the start; nothing is before.
    type Time: Copy + Default + PartialOrd;

    /// What a message in flight carries.
    type Message;

    /// A send (or sync) is posted: when it is complete, and the message.
    ///
    /// `ready` is when the message before it was ready, and all it waits for and room in its FIFO were there.
    fn send(&mut self, at: &At<'_>, ready: Self::Time) -> (Self::Time, Self::Message);

    /// A message is received, which may be long before it can be applied: when it has landed. The default takes no time.
    ///
    /// `ready` is when it was there ([`arrival`](Model::arrival)) and its predecessor in the lane was applied.
    fn land(&mut self, _: &At<'_>, _message: &Self::Message, ready: Self::Time) -> Self::Time {
        ready
    }

    /// A message is applied: when that is complete.
    ///
    /// `ready` is when it had [landed](Model::land) and all it waits for was there.
    fn recv(&mut self, at: &At<'_>, message: Self::Message, ready: Self::Time) -> Self::Time;

    /// A local step: when it is complete.
    fn local(&mut self, at: &At<'_>, ready: Self::Time) -> Self::Time;

    /// When a message can be applied at the earliest. The default leaves it to `recv`.
    fn arrival(&self, _message: &Self::Message) -> Self::Time {
        Self::Time::default()
    }

    /// In time order: whether receives are posted ahead, as engines do. Then a receive that waits for nothing more when
    /// its predecessor is posted lands when its message is there, though the predecessor has not landed.
    fn posts_ahead(&self) -> bool {
        false
    }

    /// Whether calls must come in the order of their `ready` times.
    ///
    /// Needed only where lanes compete for something in order of arrival (a link shared by two channels, a core shared by
    /// all lanes); about ten times slower. At equal times messages land before steps go on, and these go in the order
    /// of an engine: lane by lane at first, then as they were woken, and a sender goes on while it can.
    fn in_time_order(&self) -> bool {
        false
    }
}

/// What a run that completed comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<T> {
    /// When each rank was done: the latest of its lanes.
    pub times: Vec<T>,
    /// Messages sent (segments, syncs and empty ones included).
    pub messages: u64,
    /// Steps executed, counted in segments.
    pub steps: u64,
}

/// Runs the programs of all ranks, in rank order, to the end.
///
/// Each lane goes in order; a segment of a step proceeds when its predecessor in the lane has and each of its waits
/// holds. A send needs room in its FIFO and is complete once it is there; a receive takes the head of its FIFO when its
/// waits hold. Strands of one FIFO are merged as by [`next_strand`](crate::ir::next_strand) on both ends.
///
/// Times are exact for any order of execution unless the model itself depends on the order of calls. Within a lane they
/// never decrease. Messages queue: one is ready to be sent no earlier than the one before it on its FIFO was, though that
/// one may be under way yet. Where a FIFO has several strands, that holds for receives too. With a window, a send is
/// ready no earlier than the receive that made room for it was complete.
///
/// # Errors
/// [`Stuck`]: some lanes cannot proceed, or messages are left that nobody receives.
pub fn run<M: Model>(
    programs: &[Arc<Program>],
    options: Options,
    model: &mut M,
) -> Result<Outcome<M::Time>, Stuck> {
    machine::Machine::new(programs, options, model)?.run()
}
