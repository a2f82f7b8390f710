//! Whether a case fits into memory, asked before anything is allocated.
//!
//! A system that promises more memory than it has ends programs by a signal when they use it. That must not happen for
//! a size that was mistyped.

use std::ops::Range;

use anyhow::{Result, bail};
use unisono_core::{Rank, Shape, UnknownName};
use unisono_program::{Algorithm, Context, Program, build};

use super::case::{Case, total};
use crate::args::names::Operation;
use crate::catalogue;

/// Refuses a case whose ranks, all on this machine, need more memory than is free.
///
/// # Errors
/// What they need and what there is.
pub(crate) fn all_fit(case: &Case, algorithm: Option<&str>) -> Result<()> {
    fits(case, algorithm, 0..case.ranks)
}

/// Refuses a case in which this rank alone needs more memory than is free.
///
/// # Errors
/// What it needs and what there is.
pub(super) fn one_fits(case: &Case, algorithm: Option<&str>, rank: Rank) -> Result<()> {
    fits(case, algorithm, rank..rank + 1)
}

fn fits(case: &Case, algorithm: Option<&str>, ranks: Range<Rank>) -> Result<()> {
    let needed = needed(case, algorithm, ranks)?;
    let Some(free) = free() else { return Ok(()) };
    // Something must be left for programs, staging and others.
    if needed > free / 10 * 9 {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        bail!(
            "{case}: needs {:.1} GiB of memory, {:.1} GiB are free",
            gib(needed),
            gib(free)
        );
    }
    Ok(())
}

/// Bytes of the buffers and the scratch of these ranks.
fn needed(case: &Case, algorithm: Option<&str>, of: Range<Rank>) -> Result<u64, UnknownName> {
    let buffers: u64 = of
        .clone()
        .map(|r| (total(&case.input(r)) + total(&case.output(r))) as u64)
        .fold(0, u64::saturating_add);
    let scratch = match (case.op, algorithm) {
        (Operation::Collective(collective), Some(name)) => {
            let cx = Context::full(collective, 0, case.ranks).with_root(case.root);
            let algorithm = catalogue::algorithms().find(name)?.as_ref();
            // The root and its neighbour: one of them has as much scratch as any.
            let ranks = [case.root, (case.root + 1) % case.ranks];
            let most = ranks.map(|r| scratch(algorithm, &cx.at_rank(r), case.call_count() as u64));
            most[0].max(most[1]).saturating_mul(of.len() as u64)
        }
        _ => 0,
    };
    let elements = buffers.saturating_add(scratch);
    Ok(elements.saturating_mul(case.dtype.size() as u64))
}

/// Elements that the program of a rank keeps outside of the buffers. A program that cannot be built needs none.
fn scratch(algorithm: &dyn Algorithm, cx: &Context, count: u64) -> u64 {
    build(algorithm, cx).map_or(0, |program| {
        let Program {
            slots,
            homeless,
            blocks,
            subs,
            ..
        } = &program;
        let shape = Shape::new(cx.collective(), count, *blocks, *subs);
        let own = slots.iter().map(|s| shape.len(s.like));
        let homeless = homeless
            .iter()
            .flat_map(|s| s.first..s.first + s.len)
            .map(|i| shape.len(i));
        own.chain(homeless).fold(0, u64::saturating_add)
    })
}

/// Bytes that can be had without harm: of this machine, or of the container if that has fewer. `None`: not known here.
fn free() -> Option<u64> {
    let read = |path| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| available(&text));
    let number = |path| read(path).and_then(|text| text.trim().parse::<u64>().ok());
    let container = number("/sys/fs/cgroup/memory.max").map(|most| {
        let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
        most.saturating_sub(used)
    });
    match (machine, container) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// `MemAvailable` of Linux' meminfo, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:       32 kB\nMemAvailable:   17 kB\n";
        assert_eq!(available(text), Some(17 * 1024));
        assert_eq!(available("MemTotal: 32 kB"), None);
    }
}
