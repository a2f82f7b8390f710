//! A study by events: real groups with real engines, on simulated links.

use anyhow::{Result, anyhow, bail};
use unisono_core::{Collective, DType, Rank};
use unisono_sim::{Ask, Cluster, Outcome, PieceCall, SimError};

use super::failure::Failure;
use super::place::Place;
use super::report::Found;
use super::study::Study;
use crate::args::sim::Args;
use crate::bench::case::Case;
use crate::bench::measure::{Buffers, typed};
use crate::bench::memory;
use crate::bench::pattern::{MOST_RANKS, Patterns, Sample};

/// With phantom payload.
///
/// # Errors
/// A fault at a rank or link that does not exist.
pub(super) fn phantom(args: &Args, place: &Place, study: &Study) -> Result<Found> {
    let case = &study.case;
    let mut call = PieceCall::new(study.collective, case.call_count() as u64, case.dtype);
    if let Some(op) = study.op() {
        call = call.op(op);
    }
    let ask = Ask::new(call.root(case.root))
        .algorithm(study.algorithm())
        .segments(study.chosen.segments);
    let outcome = cluster(args, place).collective(&ask);
    found(args, outcome, |result| match result {
        Ok(true) => Ok(()),
        // Nothing is what it should be.
        Ok(false) if case.count == 0 => Ok(()),
        Ok(false) => Err("the result is wrong".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// With bytes, every one of them compared.
///
/// # Errors
/// More ranks than there are data for, or more memory than there is; a fault at a rank or link that does not exist.
pub(super) fn real(args: &Args, place: &Place, study: &Study) -> Result<Found> {
    if place.ranks() > MOST_RANKS {
        bail!(
            "{} ranks are too many for data with exact sums: at most {MOST_RANKS}; use --payload phantom",
            place.ranks()
        );
    }
    let case = Case {
        segments: Some(study.chosen.segments),
        channels: Some(1),
        ..study.case.clone()
    };
    memory::all_fit(&case, Some(study.algorithm()))?;
    let cluster = cluster(args, place);
    typed!(case, moved(args, &case, &cluster, study.collective))
}

fn moved<T: Sample>(
    args: &Args,
    case: &Case,
    cluster: &Cluster,
    collective: Collective,
) -> Result<Found> {
    let op = collective.reduces().then_some(case.reduce);
    let patterns = Patterns::<T>::new(case.ranks, op);
    let outcome = cluster.run_blocking(|group| Buffers::new(&group, case, &patterns)?.check());
    found(args, outcome, |result| match result {
        Ok(0) => Ok(()),
        Ok(wrong) => Err(format!("{wrong} elements are wrong")),
        Err(error) => Err(format!("{error:#}")),
    })
}

/// The place with all that befalls it.
fn cluster(args: &Args, place: &Place) -> Cluster {
    let cluster = place
        .cluster()
        .seed(args.seed)
        .jitter(args.jitter)
        .unposted(args.unposted);
    let cluster = args.fault.iter().fold(cluster, |c, &fault| c.fault(fault));
    match is_recorded(args) {
        true => cluster.record(),
        false => cluster,
    }
}

/// Whether a trace or a picture is to be made.
fn is_recorded(args: &Args) -> bool {
    args.trace.is_some() || args.svg.is_some()
}

/// What a run says, and what each rank got if it was not what it should be.
fn found<T>(
    args: &Args,
    outcome: Outcome<T>,
    judge: impl Fn(T) -> Result<(), String>,
) -> Result<Found> {
    let Outcome { results, report } = outcome;
    if let Some(SimError::Setup(error)) = report.error {
        return Err(error.into());
    }
    let mut told: Vec<String> = Vec::new();
    let mut wrong: Option<(Rank, String)> = None;
    for ((rank, result), state) in (0..).zip(results).zip(&report.ranks) {
        let judged = result.map(&judge);
        told.push(match (&judged, state.crashed_ps) {
            (_, Some(_)) => "crashed".to_owned(),
            (Some(Ok(())), _) => "done".to_owned(),
            (Some(Err(error)), _) => error.clone(),
            (None, _) => "never ended".to_owned(),
        });
        if let (Some(Err(error)), None) = (judged, &wrong) {
            wrong = Some((rank, error));
        }
    }
    let cause = report.error.as_ref().map(ToString::to_string);
    let cause = cause.or_else(|| {
        // What groups say begins with the rank already.
        wrong.map(|(rank, error)| match error.starts_with("rank ") {
            true => error,
            false => format!("rank {rank}: {error}"),
        })
    });
    Ok(Found {
        total_ps: report.total_ps,
        trace_hash: report.trace_hash,
        bottleneck: report.bottleneck,
        messages: report.messages,
        links: report.links.clone(),
        lost: report.lost,
        failure: cause.map(|cause| Failure { cause, told }),
        recorded: is_recorded(args).then(|| Box::new(report)),
    })
}
