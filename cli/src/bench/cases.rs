//! Which rows there are: from arguments to [`Case`]s.

use anyhow::{Result, bail};
use unisono_core::{Collective, DType, Rank};
use unisono_program::Context;

use super::case::{self, Case};
use super::pattern;
use crate::args::bench::{Algorithms, Args, RANKS, SIZES};
use crate::args::names::{AlgorithmName, Choice, Operation, every_algorithm};
use crate::args::ranks::Worlds;
use crate::args::sizes::Sizes;
use crate::catalogue;

/// The numbers of ranks that were asked for.
pub(super) fn worlds(args: &Args) -> Vec<Rank> {
    // What the help says parses.
    let default_ranks = || RANKS.parse().unwrap_or(Worlds(vec![4]));
    args.ranks.clone().unwrap_or_else(default_ranks).0
}

/// Every row, in the order of the arguments: operations, worlds, algorithms, element types, sizes.
///
/// # Errors
/// Something cannot be done, or nothing is left that can.
pub(super) fn cases(args: &Args, worlds: &[Rank]) -> Result<Vec<Case>> {
    // What the help says parses.
    let default_sizes = || SIZES.parse().unwrap_or(Sizes(vec![4]));
    let Sizes(sizes) = args.bytes.clone().unwrap_or_else(default_sizes);
    let plain = std::env::args_os().len() <= 2;
    let mut cases = Vec::new();
    for op in args.op.or(Collective::ALL.map(Operation::Collective)) {
        for &ranks in worlds {
            if ranks > pattern::MOST_RANKS {
                bail!(
                    "{ranks} ranks are too many for data with exact sums: at most {}",
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
