//! The price of a candidate: the evaluator, run on the programs of all ranks.
//!
//! Segments are what is searched for. A chain of h hops with S segments costs (h + S - 1) messages of n/S bytes, so the best S
//! is the square root of what pipelining could gain over what one more segment costs the busiest core; both are read off the
//! run with one segment. A few more runs, at that S and around it, settle the matter.

use std::sync::Arc;

use unisono_core::DType;
use unisono_evaluator::{Call, Links, evaluate};
use unisono_program::{Algorithm, BuildError, Context, Program, build, build_all};

use crate::facts::Network;

/// What a candidate costs at one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) segments: u64,
    pub(crate) ps: u64,
}

/// A candidate ready to be priced at any size.
pub(crate) struct Pricer {
    programs: Vec<Arc<Program>>,
    links: Links,
    /// Of all ranks, with one segment.
    steps: u64,
    overhead_ps: u64,
    latency_ps: u64,
}

/// Why a candidate has no price.
pub(crate) enum Unpriced {
    /// It emits no program.
    Build(BuildError),
    /// So many steps take too long.
    TooLong { steps: u64 },
    /// It never ends.
    Stuck(String),
}

/// The most steps, of all ranks, of which a price is worked out.
const MOST_STEPS: u64 = 1 << 19;
/// Segments are only tried while the steps, in segments, stay below this.
const SEGMENT_STEPS: u64 = 1 << 13;
/// No segment is smaller: below, headers and wake-ups count that no link figure knows of.
const LEAST_SEGMENT: u64 = 16 * 1024;
const MOST_SEGMENTS: u64 = 1024;

impl Pricer {
    pub(crate) fn new(
        algorithm: &dyn Algorithm,
        cx: &Context,
        network: &Network,
    ) -> Result<Pricer, Unpriced> {
        // The last rank first: whether it is worth building all is seen from one.
        let one = build(algorithm, &cx.at_rank(cx.size() - 1)).map_err(Unpriced::Build)?;
        let steps = one.steps().saturating_mul(cx.size().into());
        if steps > MOST_STEPS {
            return Err(Unpriced::TooLong { steps });
        }
        let programs = build_all(algorithm, cx).map_err(Unpriced::Build)?;
        Ok(Pricer {
            steps: programs.iter().map(|p| p.steps()).sum::<u64>().max(1),
            programs,
            links: network.links(cx.params().channels),
            overhead_ps: network.overhead().as_nanos() as u64 * 1000,
            latency_ps: network.figures().alpha.value.as_nanos() as u64 * 1000,
        })
    }

    /// The price at `n` bytes of the vector, or of one row. With `best` known, segments are searched for only if they could
    /// make this candidate better than that.
    pub(crate) fn price(&self, n: u64, best: Option<u64>) -> Result<Price, Unpriced> {
        let (first, report) = self.run(n, 1)?;
        let Some(busiest) = report.bottleneck else {
            return Ok(first);
        };
        let message = busiest.bytes / busiest.messages.max(1);
        let most = (message / LEAST_SEGMENT)
            .min(SEGMENT_STEPS / self.steps)
            .min(MOST_SEGMENTS);
        // At best, the busiest link is never idle.
        let least = busiest.busy_ps + self.latency_ps;
        if most < 2 || best.is_some_and(|best| least >= best) {
            return Ok(first);
        }
        let gain = first.ps.saturating_sub(least);
        let each = self.busiest_core(&report).saturating_mul(self.overhead_ps);
        let closed = gain.checked_div(each).map_or(most, u64::isqrt);
        let closed = closed.clamp(2, most);
        let mut found = first;
        let mut segments = closed;
        // Cores that wait for links anyway make segments cheaper than they seem: up, as long as it pays.
        loop {
            let next = self.run(n, segments)?.0;
            let better = next.ps < found.ps;
            found = cheaper(found, next);
            if !better || segments == most {
                break;
            }
            segments = (segments * 2).min(most);
        }
        // Beside the best so far, where half and twice as many are worse.
        let beside = match found.segments {
            1 => [closed / 2, 0],
            best => [best * 5 / 7, best * 7 / 5],
        };
        for segments in beside {
            if segments > 1 && segments <= most && segments != found.segments {
                found = cheaper(found, self.run(n, segments)?.0);
            }
        }
        Ok(found)
    }

    /// Messages that the busiest core sends and receives for each segment.
    fn busiest_core(&self, report: &unisono_evaluator::Report) -> u64 {
        let mut messages = vec![0u64; self.programs.len()];
        for link in &report.links {
            messages[link.from as usize] += link.messages;
            messages[link.to as usize] += link.messages;
        }
        messages.into_iter().max().unwrap_or(0)
    }

    /// The time with so many segments.
    pub(crate) fn predict(&self, n: u64, segments: u64) -> Result<u64, Unpriced> {
        self.run(n, segments).map(|(price, _)| price.ps)
    }

    fn run(&self, n: u64, segments: u64) -> Result<(Price, unisono_evaluator::Report), Unpriced> {
        let call = Call::new(n, DType::U8)
            .with_segments(segments)
            .in_place() // As calls of an all_reduce and a broadcast are.
            .with_path_limit(0);
        let report = evaluate(&self.programs, &call, &self.links)
            .map_err(|e| Unpriced::Stuck(e.to_string()))?;
        let ps = report.total_ps;
        Ok((Price { segments, ps }, report))
    }
}

/// Fewer segments where the time is the same.
fn cheaper(a: Price, b: Price) -> Price {
    if (b.ps, b.segments) < (a.ps, a.segments) {
        b
    } else {
        a
    }
}
