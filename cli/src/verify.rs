//! `unisono verify`: proves program sets and says what they cost beside the least possible.
//!
//! ```text
//! arguments -> jobs (algorithm, collective, ranks) -> threads -> what was found, back in the order of the jobs
//! ```

mod prove;
mod report;

use anyhow::{Result, bail};
use unisono_core::Collective;

use crate::args::names::every_algorithm;
use crate::args::verify::Args;
use crate::output::Output;
use crate::parallel::in_order;
use crate::progress::Progress;
use prove::Job;
use report::{Report, Summary};

/// Proves what was asked for.
///
/// # Errors
/// A program set is wrong; a pair that was named is not offered; stdout cannot be written to.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let jobs = jobs(args);
    let mut report = Report::new(args.json, out);
    let mut summary = Summary::new(args);
    let progress = Progress::new(jobs.len() as u64);
    report.head()?;
    in_order(
        jobs.len(),
        |i| jobs[i].run(),
        |i, found| {
            let job = &jobs[i];
            progress.at(job.to_string());
            progress.step();
            summary.add(job, &found);
            progress.aside(|| report.found(job, &found))
        },
    )?;
    drop(progress);
    report.summary(&summary)?;
    match summary.cause() {
        None => Ok(()),
        Some(cause) => bail!("{cause}"),
    }
}

/// One job per algorithm, collective and number of ranks.
fn jobs(args: &Args) -> Vec<Job> {
    let both_named = args.algorithm.is_named() && args.op.is_named();
    let mut jobs = Vec::new();
    for algorithm in args.algorithm.or(every_algorithm()) {
        for op in args.op.or(Collective::ALL) {
            jobs.extend(args.ranks.0.iter().map(|&ranks| Job {
                algorithm: algorithm.0.clone(),
                op,
                ranks,
                named: both_named,
            }));
        }
    }
    jobs
}
