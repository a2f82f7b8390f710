//! What a program costs on given links: the max-plus run.
//!
//! This is the abstract run of `unisono_program::run` with times. A message waits for the steps it depends on and for
//! its link, behind those before it; it occupies the link for its bytes and arrives a latency later. So simple programs
//! cost exactly what their textbook formula says.
//!
//! Where cores cost something too, they take work in the order in which an engine gives it to them: a message that has
//! come in first, then what is ready, in the order in which it became so, and of one FIFO all that can be sent. The
//! discrete-event simulator (crate `unisono-sim`) runs the engine itself, and its tests say how closely the two agree.
//!
//! | cost | of | default |
//! |---|---|---|
//! | latency `alpha` | each message, between leaving the link and being there | given |
//! | bandwidth `beta` | each directed pair of ranks; all channels of a pair share it, in order of time | given |
//! | overhead | each message, of the core of its sender and of its receiver | 0 |
//! | reduce rate `gamma` | each byte reduced or copied, of the rank's core | infinite |
//!
//! Times are picoseconds in u64: 200 days, and a byte at 100 GB/s is still ten of them.
//!
//! ```
//! use unisono_core::{Collective, DType};
//! use unisono_evaluator::{Call, Links, evaluate};
//! use unisono_program::{Algorithm, Context, Emit, Unsupported, block, build_all};
//!
//! struct Exchange;
//!
//! impl Algorithm for Exchange {
//!     fn name(&self) -> &str { "exchange" }
//!     fn supports(&self, _: &Context) -> Result<(), Unsupported> { Ok(()) }
//!     fn blocks(&self, _: &Context) -> u64 { 1 }
//!     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//!         b.send(1 - cx.rank(), block(0));
//!         b.recv_reduce(1 - cx.rank(), block(0));
//!     }
//! }
//!
//! let programs = build_all(&Exchange, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
//! // 1 MB at 1 GB/s with 10 us of latency.
//! let links = Links::uniform(10_000, 1_000_000_000);
//! let report = evaluate(&programs, &Call::new(250_000, DType::F32), &links).unwrap();
//! assert_eq!(report.total_ps, 1_010_000_000);
//! ```
#![forbid(unsafe_code)]

mod links;
mod model;
mod path;
mod report;
mod size;

use std::sync::Arc;

use unisono_core::DType;
use unisono_program::Program;
use unisono_program::run::{Options, Stuck, run};

pub use links::{LinkCost, Links};
pub use report::{Hop, LinkLoad, Report};

use model::Timed;
use path::Traced;

/// The call that is priced, as far as programs do not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Elements of the vector, or of one row of the table.
    pub count: u64,
    /// What one element is.
    pub dtype: DType,
    /// Segments that every message is cut into.
    pub segments: u64,
    /// Segments that a FIFO holds before its sender must wait; `None`: any number.
    pub window: Option<u64>,
    /// The critical path is recorded if the programs have at most so many steps (in segments); it takes 12 bytes of
    /// memory for each, 28 where cores cost time.
    pub path_limit: u64,
    /// Input and output are the same memory: what an all_reduce or a broadcast copies from one to the other takes no
    /// time. Other collectives are priced as out of place.
    pub in_place: bool,
}

impl Call {
    /// A call with one segment, no window, out of place, and a critical path up to a million steps.
    pub fn new(count: u64, dtype: DType) -> Call {
        Call {
            count,
            dtype,
            segments: 1,
            window: None,
            path_limit: 1 << 20,
            in_place: false,
        }
    }

    /// The same with `segments` segments (0 counts as 1).
    #[must_use]
    pub fn with_segments(mut self, segments: u64) -> Call {
        self.segments = segments.max(1);
        self
    }

    /// The same with at most `window` segments in a FIFO.
    #[must_use]
    pub fn with_window(mut self, window: u64) -> Call {
        self.window = Some(window);
        self
    }

    /// The same in place.
    #[must_use]
    pub fn in_place(mut self) -> Call {
        self.in_place = true;
        self
    }

    /// The same with another limit for recording the critical path; 0 never records it.
    #[must_use]
    pub fn with_path_limit(mut self, steps: u64) -> Call {
        self.path_limit = steps;
        self
    }
}

/// Why programs have no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// They never end.
    #[error("{algorithm} has no end: {stuck}")]
    Stuck {
        /// Name of the algorithm.
        algorithm: String,
        /// Which lanes stand where.
        stuck: Stuck,
    },
}

/// What the programs of all ranks, in rank order, cost together.
///
/// # Errors
/// [`EvaluateError::Stuck`] if they never end, naming the lanes.
pub fn evaluate(
    programs: &[Arc<Program>],
    call: &Call,
    links: &Links,
) -> Result<Report, EvaluateError> {
    let options = Options {
        segments: call.segments.max(1),
        window: call.window,
    };
    let mut timed = Timed::new(programs, call, links);
    let steps: u64 = programs.iter().map(|p| p.steps()).sum();
    let traced = steps.saturating_mul(options.segments) <= call.path_limit.min(path::MOST_STEPS);
    let (outcome, path) = if traced {
        let mut traced = Traced::new(programs, &options, timed);
        let outcome = run(programs, options, &mut traced);
        let (inner, path) = traced.finish();
        timed = inner;
        (outcome, Some(path))
    } else {
        (run(programs, options, &mut timed), None)
    };
    let outcome = outcome.map_err(|stuck| EvaluateError::Stuck {
        algorithm: programs
            .first()
            .map_or_else(String::new, |p| p.algorithm.clone()),
        stuck,
    })?;
    Ok(timed.report(outcome, path))
}
