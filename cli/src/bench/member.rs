//! One rank of a bench between processes. All of them come to the same cases from the same arguments; rank 0 prints.

use anyhow::{Context as _, Result};
use unisono::{Error, Group};
use unisono_control::Place;

use super::environment::Launched;
use super::report::{Report, Row};
use super::verdict::Verdict;
use super::{cases, headline, measure, memory};
use crate::args::bench::Args;
use crate::args::names::Transport;
use crate::output::Output;
use crate::progress::Progress;

/// Measures every row together with the other ranks.
///
/// # Errors
/// As [`run`](super::run); wrong results are an error at every rank.
pub(super) fn run(args: &Args, launched: &Launched, out: &mut Output) -> Result<()> {
    // What cannot be done is refused before anybody is waited for.
    let Place { rank, size, .. } = launched.place;
    let cases = cases::cases(args, &[size])?;
    let group = launched.join(args.channels.unwrap_or(1))?;

    let mut report = (rank == 0).then(|| Report::new(args.json, out));
    let mut printed = match &mut report {
        Some(report) => report.head(&headline(args, &cases)),
        None => Ok(()),
    };
    let progress = report.as_ref().map(|_| Progress::new(cases.len() as u64));
    let mut verdict = Verdict::default();
    for case in &cases {
        if !goes_on(&group, printed.is_ok())? {
            break;
        }
        if let Some(progress) = &progress {
            progress.at(case.to_string());
        }
        let algorithm = measure::choice(case, &group).with_context(|| case.to_string())?;
        memory::one_fits(case, algorithm.as_deref(), rank)?;
        let measured = measure::member(case, &group).with_context(|| case.to_string())?;
        let algorithm = algorithm.as_deref().unwrap_or("message");
        let row = Row::new(case, Transport::Tcp, algorithm, &measured);
        verdict.note(case, row.wrong());
        if let (Some(report), Some(progress)) = (&mut report, &progress) {
            progress.step();
            printed = progress.aside(|| report.row(&row));
        }
    }
    drop(progress);
    group.close()?;
    // Whoever reads has left, or cannot be written to: nothing more is to be said, and only rank 0 knows.
    printed?;
    if let Some(report) = &mut report {
        report.summary()?;
    }
    verdict.end(args.corrupt)
}

/// Whether rank 0 wants another row: all stop together where nobody reads on.
fn goes_on(group: &Group, wanted: bool) -> Result<bool, Error> {
    let mut flag = [u8::from(wanted)];
    group.broadcast(&mut flag, 0)?;
    Ok(flag[0] != 0)
}
