//! The programs of a study, unless they are more than one computer should try.
//!
//! Limits are on what would fill memory, take hours, or pass the end of the clock, whose picoseconds in 64 bits last 213
//! days. They are looked at while programs are built, so that a mesh of ten thousand ranks is refused at once.

use std::sync::Arc;

use anyhow::Result;
use unisono_program::build::rotate;
use unisono_program::{Program, Symmetry, build};
use unisono_sim::Fault;
use unisono_topology::Figures;

use super::place::Place;
use super::study::{Engine, Study};
use crate::args::sim::Args;

/// Lanes of all programs: about a kilobyte each.
const LANES: u64 = 1 << 19;
/// Steps in segments that the evaluator prices in some minutes.
const PRICED: u64 = 1 << 31;
/// Steps in segments that events execute in some minutes.
const EXECUTED: u64 = 1 << 28;
/// Seconds that the clock counts, with room to spare.
const LONGEST: f64 = 1e7;

/// The programs of all ranks, and how much they are.
pub(super) struct Plan {
    pub(super) programs: Vec<Arc<Program>>,
    /// Sends, receives, reductions and copies of all ranks, in segments.
    pub(super) steps: u64,
}

impl Plan {
    /// Builds the programs; the inner error says what there is too much of.
    ///
    /// # Errors
    /// The algorithm cannot do it.
    pub(super) fn new(args: &Args, place: &Place, study: &Study) -> Result<Result<Plan, String>> {
        let cx = study.context(place);
        let algorithm = study.chosen.algorithm.as_ref();
        let size = cx.size();
        let limit = match study.engine {
            Engine::Evaluator => PRICED,
            Engine::Events => EXECUTED,
        };
        let mut load = Load::default();
        let mut programs: Vec<Arc<Program>> = Vec::new();
        let alike = size > 256 && algorithm.symmetry(&cx) == Symmetry::Rotation;
        for rank in 0..size {
            let program = match programs.first() {
                Some(first) if alike => rotate(first, rank),
                _ => build(algorithm, &cx.at_rank(rank))?,
            };
            let all = if alike { u64::from(size) } else { 1 };
            if !alike || rank == 0 {
                load.add(&program, all);
            }
            if let Some(why) = load.too_much(study.chosen.segments, limit) {
                let hint = match study.engine {
                    Engine::Events if load.lanes <= LANES => "; try --engine evaluator",
                    _ => "",
                };
                return Ok(Err(why + hint));
            }
            programs.push(Arc::new(program));
        }
        if load.seconds(args, place, study) > LONGEST {
            return Ok(Err(
                "it may take more than 115 days of virtual time, and the clock ends".to_owned(),
            ));
        }
        let steps = load.steps * study.chosen.segments;
        Ok(Ok(Plan { programs, steps }))
    }
}

/// How much programs are, together.
#[derive(Debug, Default)]
struct Load {
    lanes: u64,
    steps: u64,
    /// Blocks that steps move.
    blocks: f64,
    /// Of the vector or table, per program.
    shares: u64,
}

impl Load {
    fn add(&mut self, program: &Program, times: u64) {
        self.lanes += program.lanes.len() as u64 * times;
        self.steps += program.steps() * times;
        let runs = program.lanes.iter().flat_map(|lane| &lane.runs);
        let blocks: f64 = runs
            .map(|run| run.count as f64 * run.target.span.len as f64)
            .sum();
        self.blocks += blocks * times as f64;
        self.shares = match program.collective.cuts_a_vector() {
            true => program.data_indices().max(1),
            false => u64::from(program.subs.max(1)),
        };
    }

    fn too_much(&self, segments: u64, limit: u64) -> Option<String> {
        let steps = self.steps.saturating_mul(segments);
        if self.lanes > LANES {
            return Some(format!(
                "its ranks have more than {LANES} lanes, too many for one computer"
            ));
        }
        (steps > limit).then(|| format!("it has more than {limit} steps"))
    }

    /// At most so long: if every step waited for all others.
    fn seconds(&self, args: &Args, place: &Place, study: &Study) -> f64 {
        let figures = || std::iter::once(place.figures()).chain(place.exceptions());
        let most = |of: fn(&Figures) -> f64| figures().map(|f| of(&f)).fold(0.0, f64::max);
        let latency = most(|f| f.alpha.value.as_secs_f64() + 2.0 * f.overhead.value.as_secs_f64());
        let per_byte = most(|f| match f.beta.value.bytes_per_second() {
            0 => 0.0,
            rate => 1.0 / rate as f64,
        });
        let slowest = args.fault.iter().map(|fault| match fault {
            Fault::Slow { factor, .. } => 1.0 / factor,
            _ => 1.0,
        });
        let per_byte = per_byte * slowest.fold(1.0, f64::max) + {
            let gamma = place.gamma().map_or(0.0, |rate| 1.0 / rate as f64);
            3.0 * gamma // a reduction reads and writes
        };
        let elements = study.case.call_count() as f64 / self.shares.max(1) as f64 + 1.0;
        let bytes = self.blocks * elements * study.case.dtype.size() as f64;
        let steps = self.steps as f64 * study.chosen.segments as f64;
        (steps * latency + bytes * per_byte) * (1.0 + args.jitter)
    }
}
