//! `unisono sim`: collectives in virtual time, on clusters that need not exist.
//!
//! ```text
//! arguments -> place (ranks, links, costs) -> studies: what to run, by which algorithm, on which engine
//!                                                |
//!              evaluator: programs -> times <----+----> events: groups, engines, messages -> times, records
//!                                    |                       |
//!                                    +--------> rows <-------+
//! ```

mod events;
mod failure;
mod files;
mod place;
mod plan;
mod priced;
mod report;
mod study;

use std::time::Instant;

use anyhow::{Result, bail};

use crate::args::sim::{Args, Payload};
use crate::exit::say;
use crate::output::Output;
use crate::progress::Progress;
use failure::{Failure, Failures};
use files::Files;
use place::Place;
use plan::Plan;
use report::{Found, Report, Row};
use study::{Engine, Study};

/// Runs what was asked for.
///
/// # Errors
/// The cluster cannot be read or made; something that was named cannot be done on it; an operation failed, or its result
/// is wrong; two equal runs differ; a file or stdout cannot be written to.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let place = Place::new(args)?;
    let studies = study::studies(args, &place)?;
    let mut files = Files::open(args, studies.len())?;
    let mut report = Report::new(args.json, out);
    report.head(&place.to_string(), args)?;
    let progress = Progress::new(studies.len() as u64);
    progress.keep_moving();
    let mut failures = Failures::default();
    for study in &studies {
        progress.at(study.to_string());
        let done = once(args, &place, study)?;
        progress.step();
        match done {
            Once::TooLarge(why) if study.named => bail!("{study}: {why}"),
            Once::TooLarge(why) => progress.aside(|| say(&format!("skipped {study}: {why}"))),
            Once::Row(row, failure, recorded) => {
                if let Some(recorded) = recorded {
                    files.write(&recorded)?;
                }
                progress.aside(|| report.row(&row))?;
                failures.note(study, failure);
            }
        }
    }
    drop(progress);
    report.summary(failures.count())?;
    failures.end()
}

/// What came of a study.
enum Once {
    /// It is more than one computer should try, and why.
    TooLarge(String),
    /// Its row, how it failed if it did, and what was recorded if that was asked for.
    Row(Box<Row>, Option<Failure>, Option<Box<unisono_sim::Report>>),
}

fn once(args: &Args, place: &Place, study: &Study) -> Result<Once> {
    let start = Instant::now();
    let plan = match Plan::new(args, place, study)? {
        Ok(plan) => plan,
        Err(why) => return Ok(Once::TooLarge(why)),
    };
    let found = execute(args, place, study, &plan)?;
    let wall = start.elapsed();
    if args.repeat_check {
        let again = execute(args, place, study, &plan)?;
        if found.trace_hash != again.trace_hash {
            bail!(
                "{study}: two runs differ: hash {:016x}, then {:016x}",
                found.trace_hash,
                again.trace_hash
            );
        }
    }
    let row = Row::new(args, study, &plan, &found, wall);
    Ok(Once::Row(Box::new(row), found.failure, found.recorded))
}

fn execute(args: &Args, place: &Place, study: &Study, plan: &Plan) -> Result<Found> {
    match (study.engine, args.payload) {
        (Engine::Evaluator, _) => priced::run(place, study, plan),
        (Engine::Events, Payload::Phantom) => events::phantom(args, place, study),
        (Engine::Events, Payload::Real) => events::real(args, place, study),
    }
}
