//! `unisono bench`: runs collectives on real data, times them and checks them.
//!
//! ```text
//! arguments -> cases, one per row -> threads with a group between them -> rows
//! ```

mod case;
mod environment;
mod measure;
mod memory;
mod pattern;
mod report;

use anyhow::{Context as _, Result, bail};
use unisono_core::{Collective, DType, Rank};
use unisono_program::Context;

use crate::args::bench::{Algorithms, Args, RANKS, SIZES};
use crate::args::names::{AlgorithmName, Choice, Operation, Transport, every_algorithm};
use crate::args::ranks::Worlds;
use crate::args::sizes::Sizes;
use crate::catalogue;
use crate::output::Output;
use crate::progress::Progress;
use case::Case;
use environment::Launched;
use report::{Report, Row};

/// Measures every row that was asked for.
///
/// # Errors
/// Something that was asked for does not exist or cannot be done; a rank failed; a result is wrong; stdout cannot be
/// written to.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    if let Some(Launched {
        rank,
        size,
        coordinator,
    }) = Launched::from_env(args.ranks.as_ref())?
    {
        bail!(
            "rank {rank} of {size} at {coordinator}: a group of processes needs the tcp transport, which is not built yet"
        );
    }
    if let Transport::Later(name) = args.transport {
        bail!("the {name} transport is not built yet; built: inproc");
    }
    let cases = cases(args)?;
    let mut report = Report::new(args.json, out);
    report.head(&headline(args, &cases))?;
    let progress = Progress::new(cases.len() as u64);
    let mut wrong = None;
    for case in &cases {
        progress.at(case.to_string());
        let row = row(case, args.transport)?;
        progress.step();
        progress.aside(|| report.row(&row))?;
        if row.wrong() > 0 && wrong.is_none() {
            let count = match row.wrong() {
                1 => "1 element is wrong".to_owned(),
                n => format!("{n} elements are wrong"),
            };
            wrong = Some(format!("{case}: {count}"));
        }
    }
    drop(progress);
    report.summary()?;
    match (wrong, args.corrupt) {
        (None, None) => Ok(()),
        (None, Some(rank)) => {
            bail!("a byte of rank {rank} was changed, and the check did not see it")
        }
        (Some(wrong), None) => bail!("{wrong}"),
        (Some(wrong), Some(rank)) => {
            bail!("{wrong} (a byte of rank {rank} was changed on purpose)")
        }
    }
}

fn row(case: &Case, transport: Transport) -> Result<Row> {
    let groups = unisono::inproc(case.ranks);
    let algorithm = measure::choice(case, &groups).with_context(|| case.to_string())?;
    memory::fits(case, algorithm.as_deref())?;
    let measured = measure::measure(case, groups).with_context(|| case.to_string())?;
    let algorithm = algorithm.as_deref().unwrap_or("message");
    Ok(Row::new(case, transport, algorithm, &measured))
}

fn headline(args: &Args, cases: &[Case]) -> String {
    let reduces = cases.iter().any(|c| c.op.reduces());
    let checked = cases.iter().any(|c| c.check);
    let mut text = format!(
        "transport {}, ranks are threads of this process",
        args.transport
    );
    if reduces {
        text += &format!(", operator {}", args.reduce);
    }
    if cases.iter().any(|c| c.op.is_rooted()) {
        text += &format!(", root {}", args.root);
    }
    text + if checked { ", checked" } else { "" }
}

/// Every row, in the order of the arguments: operations, worlds, algorithms, element types, sizes.
fn cases(args: &Args) -> Result<Vec<Case>> {
    // These are what the help says, so that they parse.
    let default_ranks = || RANKS.parse().unwrap_or(Worlds(vec![4]));
    let default_sizes = || SIZES.parse().unwrap_or(Sizes(vec![4]));
    let Worlds(worlds) = args.ranks.clone().unwrap_or_else(default_ranks);
    let Sizes(sizes) = args.bytes.clone().unwrap_or_else(default_sizes);
    let plain = std::env::args_os().len() <= 2;
    let mut cases = Vec::new();
    for op in args.op.or(Collective::ALL.map(Operation::Collective)) {
        for &ranks in &worlds {
            if ranks > pattern::MOST_RANKS {
                bail!(
                    "{ranks} ranks as threads of one process are too many: at most {}",
                    pattern::MOST_RANKS
                );
            }
            for algorithm in algorithms(args, op, ranks)? {
                for dtype in args.dtype.or(DType::ALL) {
                    // A barrier takes no size, and makes one row.
                    let sizes: &[u64] = if op.is_barrier() { &[0] } else { &sizes };
                    for &bytes in sizes {
                        let count = case::whole_count(op, ranks, dtype, bytes)?;
                        let bytes = count * dtype.size() as u64;
                        let iters = args.iters.unwrap_or_else(|| calls(bytes, ranks));
                        let case = Case {
                            op,
                            ranks,
                            root: if op.is_rooted() { args.root } else { 0 },
                            algorithm: algorithm.clone(),
                            segments: args.segments,
                            channels: args.channels,
                            dtype,
                            reduce: args.reduce,
                            count,
                            iters,
                            warmup: args.warmup.unwrap_or((iters / 10).clamp(1, 20)),
                            check: args.check || args.corrupt.is_some() || plain,
                            corrupt: args.corrupt,
                        };
                        case.validate()?;
                        cases.push(case);
                    }
                }
            }
        }
    }
    if cases.is_empty() {
        bail!("no algorithm that was named can do anything on so many ranks");
    }
    if args.corrupt.is_some() && cases.iter().all(|c| c.count == 0) {
        bail!("no data move, so that there is nothing to corrupt");
    }
    Ok(cases)
}

/// Timed calls of a row that says nothing about them: about as long for every size above a few kilobytes.
fn calls(bytes: u64, ranks: Rank) -> u32 {
    const MOVED: u64 = 1 << 30;
    let moved = bytes.saturating_mul(ranks.into()).max(1);
    (MOVED / moved).clamp(4, 500) as u32
}

/// The algorithms to measure an operation with; `None`: the call chooses.
fn algorithms(args: &Args, op: Operation, ranks: Rank) -> Result<Vec<Option<String>>> {
    // As in `verify`: what was named must be possible, what is one of all may be skipped.
    let named = |choice: &Choice<AlgorithmName>| choice.is_named() && args.op.is_named();
    let (choice, op) = match (&args.algorithm, op) {
        (Algorithms::Auto, _) => return Ok(vec![None]),
        (Algorithms::These(choice), Operation::SendRecv) if named(choice) => {
            bail!("send_recv is a message and takes no algorithm; leave out --algorithm")
        }
        (Algorithms::These(_), Operation::SendRecv) => return Ok(vec![None]),
        (Algorithms::These(choice), Operation::Collective(op)) => (choice, op),
    };
    let cx = Context::full(op, 0, ranks).with_root(args.root);
    let mut names = Vec::new();
    for AlgorithmName(name) in choice.or(every_algorithm()) {
        match catalogue::algorithms().find(&name)?.supports(&cx) {
            Ok(()) => names.push(Some(name)),
            Err(why) if named(choice) => bail!("{name} cannot do {op} on {ranks} ranks: {why}"),
            Err(_) => {}
        }
    }
    Ok(names)
}
