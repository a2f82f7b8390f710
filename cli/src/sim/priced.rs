//! A study by the evaluator.

use anyhow::Result;
use unisono_evaluator::{Call, Report, evaluate};

use super::place::Place;
use super::plan::Plan;
use super::report::Found;
use super::study::Study;

/// Prices the programs.
///
/// # Errors
/// They have no end.
pub(super) fn run(place: &Place, study: &Study, plan: &Plan) -> Result<Found> {
    let call = Call::new(study.case.call_count() as u64, study.case.dtype)
        .with_segments(study.chosen.segments)
        .in_place() // Where that can be, as through events.
        .with_path_limit(0);
    let report = evaluate(&plan.programs, &call, place.network.links())?;
    Ok(Found {
        total_ps: report.total_ps,
        trace_hash: hash(&report),
        bottleneck: report.bottleneck,
        messages: report.messages,
        links: report.links,
        lost: 0,
        failure: None,
        recorded: None,
    })
}

/// A hash of when every rank is done, and of what every link carried and for how long.
fn hash(report: &Report) -> u64 {
    let links = report.links.iter().flat_map(|l| {
        let ends = u64::from(l.from) << 32 | u64::from(l.to);
        [ends, l.bytes, l.messages, l.busy_ps]
    });
    let words = report.time_ps.iter().copied().chain(links);
    words.fold(0, |state: u64, word| {
        let mixed = (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}
