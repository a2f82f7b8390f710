//! `unisono bench`: runs collectives on real data, times them and checks them.
//!
//! ```text
//! arguments -> cases, one per row --+-> threads with a group between them ------> rows
//!                                   +-> processes, each of them this program --+
//!                   one rank of such a group <---------------------------------+
//!                   its cases -> the group -> rows, at rank 0
//! ```

pub(crate) mod case;
mod cases;
mod environment;
pub(crate) mod measure;
mod member;
pub(crate) mod memory;
mod parent;
pub(crate) mod pattern;
mod report;
mod verdict;

use anyhow::{Context as _, Result, bail};
use unisono_control::env::RANK;

use crate::args::bench::Args;
use crate::args::names::Transport;
use crate::output::Output;
use crate::progress::Progress;
use case::Case;
use environment::Launched;
use report::{Report, Row};
use verdict::Verdict;

/// Measures every row that was asked for.
///
/// # Errors
/// Something that was asked for does not exist or cannot be done; a rank failed; a result is wrong; stdout cannot be
/// written to.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let launched = Launched::from_env(args.ranks.as_ref())?;
    match (args.transport, launched) {
        (Transport::Later(name), _) => {
            bail!("the {name} transport is not built yet; built: tcp, inproc")
        }
        (Transport::Tcp, Some(launched)) => member::run(args, &launched, out),
        (Transport::Tcp, None) => parent::run(args),
        (Transport::Inproc, None) => threads(args, out),
        (Transport::Inproc, Some(_)) => bail!(
            "--transport inproc is between threads of one process, but {RANK} says that this process is one rank"
        ),
    }
}

/// Between threads of this process.
fn threads(args: &Args, out: &mut Output) -> Result<()> {
    let cases = cases::cases(args, &cases::worlds(args))?;
    let mut report = Report::new(args.json, out);
    report.head(&headline(args, &cases))?;
    let progress = Progress::new(cases.len() as u64);
    let mut verdict = Verdict::default();
    for case in &cases {
        progress.at(case.to_string());
        let row = row(case)?;
        progress.step();
        progress.aside(|| report.row(&row))?;
        verdict.note(case, row.wrong());
    }
    drop(progress);
    report.summary()?;
    verdict.end(args.corrupt)
}

fn row(case: &Case) -> Result<Row> {
    let groups = unisono::inproc(case.ranks);
    let algorithm = measure::choice(case, &groups[0]).with_context(|| case.to_string())?;
    memory::all_fit(case, algorithm.as_deref())?;
    let measured = measure::threads(case, groups).with_context(|| case.to_string())?;
    let algorithm = algorithm.as_deref().unwrap_or("message");
    Ok(Row::new(case, Transport::Inproc, algorithm, &measured))
}

fn headline(args: &Args, cases: &[Case]) -> String {
    let reduces = cases.iter().any(|c| c.op.reduces());
    let checked = cases.iter().any(|c| c.check);
    let ranks = match args.transport {
        Transport::Inproc => "threads of this process",
        _ => "processes",
    };
    let mut text = format!("transport {}, ranks are {ranks}", args.transport);
    if reduces {
        text += &format!(", operator {}", args.reduce);
    }
    if cases.iter().any(|c| c.op.is_rooted()) {
        text += &format!(", root {}", args.root);
    }
    text + if checked { ", checked" } else { "" }
}
