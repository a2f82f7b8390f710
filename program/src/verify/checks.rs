//! What can be said about each program alone, and whether the programs belong together.
//!
//! Everything later relies on it: after [`check`] spans are in bounds, waits name steps that exist, operands of local
//! steps fit each other.

use std::collections::HashMap;
use std::sync::Arc;

use unisono_core::Rank;

use super::graph::Graph;
use super::{Flaw, Place, place};
use crate::{Kind, LaneKind, Location, Operand, Program, Run, Span, Stage};

/// Checks every program and that all describe the same call.
pub(super) fn check(programs: &[Arc<Program>]) -> Result<(), Flaw> {
    agree(programs)?;
    programs.iter().try_for_each(|p| program(p))
}

fn agree(programs: &[Arc<Program>]) -> Result<(), Flaw> {
    let Some(first) = programs.first() else {
        return Ok(());
    };
    fn same<T: PartialEq + std::fmt::Debug>(
        rank: Rank,
        field: &'static str,
        found: T,
        expected: T,
    ) -> Result<(), Flaw> {
        if found == expected {
            return Ok(());
        }
        Err(Flaw::Disagree {
            rank,
            field,
            found: format!("{found:?}"),
            expected: format!("{expected:?}"),
        })
    }
    for (i, p) in programs.iter().enumerate() {
        let rank = i as Rank;
        same(rank, "rank", p.rank, rank)?;
        same(rank, "size", p.size as usize, programs.len())?;
        same(rank, "collective", p.collective, first.collective)?;
        if p.collective.is_rooted() {
            same(rank, "root", p.root, first.root)?;
        }
        same(rank, "blocks", p.blocks, first.blocks)?;
        if let Some(rows) = p.collective.rows(p.size) {
            same(rank, "blocks", p.blocks, rows)?;
        }
        same(rank, "subs", p.subs, first.subs)?;
        same(rank, "commutative", p.commutative, first.commutative)?;
        same(rank, "average", p.average, first.average)?;
    }
    Ok(())
}

fn program(p: &Program) -> Result<(), Flaw> {
    let lane_flaw = |lane, why| {
        let rank = p.rank;
        Err(Flaw::Lane { rank, lane, why })
    };
    if p.slots.iter().any(|s| !p.is_data(s.like)) {
        return lane_flaw(
            0,
            "a scratch slot is as large as a block that does not exist",
        );
    }
    let homeless = p.homeless.iter().map(|s| (s.first, s.first + s.len));
    if !homeless.clone().is_sorted_by(|a, b| a.1 <= b.0) {
        return lane_flaw(
            0,
            "the list of blocks without a home is not sorted and disjoint",
        );
    }
    if homeless
        .clone()
        .any(|(first, end)| first >= end || end > p.data_indices())
    {
        return lane_flaw(
            0,
            "the list of blocks without a home names blocks that do not exist",
        );
    }
    let mut strands: HashMap<LaneKind, usize> = HashMap::new();
    p.lanes
        .iter()
        .for_each(|l| *strands.entry(l.kind).or_default() += 1);
    for (i, lane) in p.lanes.iter().enumerate() {
        let i = i as u32;
        if let LaneKind::Send { peer, .. } | LaneKind::Recv { peer, .. } = lane.kind {
            if peer >= p.size || peer == p.rank {
                return lane_flaw(i, "its peer is not another rank of this world");
            }
            if strands[&lane.kind] > 1 && lane.runs.iter().any(|r| r.stage.is_none()) {
                return lane_flaw(
                    i,
                    "shares its FIFO with another lane, but has steps without a stage",
                );
            }
        }
        let mut next = 0;
        for run in &lane.runs {
            if run.start != next || run.count == 0 {
                return lane_flaw(i, "its runs do not follow each other");
            }
            next += run.count;
        }
        if next != lane.steps {
            return lane_flaw(i, "its number of steps is not that of its runs");
        }
        for run in &lane.runs {
            check_run(p, i, lane.kind, run)?;
        }
    }
    Ok(())
}

fn check_run(p: &Program, lane: u32, faces: LaneKind, run: &Run) -> Result<(), Flaw> {
    let at = |k: u64| Box::new(Place::of(p, lane, run.start + k));
    let malformed = |why| {
        let place = at(0);
        Err(Flaw::Malformed { place, why })
    };
    let fits = match run.kind {
        Kind::Send | Kind::SyncTo => matches!(faces, LaneKind::Send { .. }),
        Kind::Recv | Kind::RecvReduce | Kind::SyncFrom => matches!(faces, LaneKind::Recv { .. }),
        Kind::Reduce { .. } | Kind::Copy => matches!(faces, LaneKind::Local { .. }),
    };
    if !fits {
        return malformed("this kind of step does not belong in this lane");
    }
    match run.kind {
        Kind::Reduce { .. } if run.sources.is_empty() => return malformed("has no source"),
        Kind::Copy if run.sources.len() != 1 => return malformed("has not exactly one source"),
        Kind::Reduce { .. } | Kind::Copy => {}
        _ if !run.sources.is_empty() => return malformed("is no local step, but has sources"),
        Kind::SyncTo | Kind::SyncFrom if run.target.span.len > 0 => {
            return malformed("carries no data, but names blocks");
        }
        _ => {}
    }
    for operand in std::iter::once(&run.target).chain(&run.sources) {
        bounds(p, operand, run.count, &at)?;
    }
    if !run.sources.is_empty() {
        (0..run.count).try_for_each(|k| operands(p, run, k, &at))?;
    }
    for (i, wait) in run.waits.iter().enumerate() {
        if run.waits[..i].iter().any(|w| w.lane == wait.lane) {
            let (place, lane) = (at(0), wait.lane);
            return Err(Flaw::TwoWaits { place, lane });
        }
        let steps = p.lanes.get(wait.lane as usize).map_or(0, |l| l.steps);
        for k in [0, run.count - 1] {
            let step = wait.step_at(k);
            if step >= steps as i64 || wait.lane as usize >= p.lanes.len() {
                return Err(Flaw::WaitOutOfRange {
                    place: at(k),
                    lane: wait.lane,
                    step,
                    steps,
                });
            }
        }
    }
    Ok(())
}

/// Spans advance linearly, so the ends of a run suffice.
fn bounds(
    p: &Program,
    operand: &Operand,
    count: u64,
    at: &dyn Fn(u64) -> Box<Place>,
) -> Result<(), Flaw> {
    let Span { first, len } = operand.span;
    let all = p.data_indices() + p.slots.len() as u64;
    if let Location::Mixed(parts) = &operand.location
        && parts.iter().map(|(n, _)| n).sum::<u64>() != len
    {
        let (place, why) = (at(0), "the places of its blocks do not add up to its span");
        return Err(Flaw::Malformed { place, why });
    }
    if len == 0 {
        return Ok(());
    }
    for k in [0, count - 1] {
        let first = p.span_at(operand, k).first;
        let fine = if p.is_data(operand.span.first) {
            len <= p.blocks
        } else {
            first >= p.data_indices() && first.checked_add(len).is_some_and(|end| end <= all)
        };
        if !fine {
            return Err(Flaw::OutOfBounds {
                place: at(k),
                first,
                len,
                limit: if p.is_data(first) { p.blocks } else { all },
            });
        }
    }
    if !p.is_data(first) && !matches!(operand.location, Location::Work) {
        let (place, why) = (at(0), "scratch is never in the input");
        return Err(Flaw::Malformed { place, why });
    }
    Ok(())
}

/// Sources are as large as the target, and are it or have nothing in common with it.
fn operands(p: &Program, run: &Run, k: u64, at: &dyn Fn(u64) -> Box<Place>) -> Result<(), Flaw> {
    let target = p.span_at(&run.target, k);
    for source in &run.sources {
        let source = p.span_at(source, k);
        if !same_sizes(p, target, p, source) {
            let (place, why) = (at(k), "joins blocks of different sizes");
            return Err(Flaw::Malformed { place, why });
        }
        let overlap =
            |a: &std::ops::Range<u64>| p.ranges(source).any(|b| a.start < b.end && b.start < a.end);
        if source != target && p.ranges(target).any(|a| overlap(&a)) {
            let (place, why) = (
                at(k),
                "a source overlaps the target without being the same span",
            );
            return Err(Flaw::Malformed { place, why });
        }
    }
    Ok(())
}

/// Whether two spans, of two programs that agree, have blocks of equal sizes in turn, for every count.
pub(super) fn same_sizes(a: &Program, x: Span, b: &Program, y: Span) -> bool {
    if x.len != y.len {
        return false;
    }
    let like = |p: &Program, span: Span, k: u64| {
        let index = p.index_in(span, k);
        if p.is_data(index) {
            index
        } else {
            p.slots[(index - p.data_indices()) as usize].like
        }
    };
    // Rows of a table are all of one size; what differs is how its copies cut it.
    let rows = !a.collective.cuts_a_vector();
    let class = |index: u64| if rows { index / a.blocks } else { index };
    if a.is_data(x.first) && b.is_data(y.first) {
        return x.len == 0 || class(x.first) == class(y.first);
    }
    (0..x.len).all(|k| class(like(a, x, k)) == class(like(b, y, k)))
}

/// In a schedule of waves, stages rise along every wait and along every lane, for every number of segments.
///
/// A send comes strictly later than what it waits for; other steps no earlier.
pub(super) fn stages(graph: &Graph<'_>) -> Result<(), Flaw> {
    for id in 0..graph.len() {
        let node = graph.node(id);
        let Some(stage) = node.run.stage_at(node.k) else {
            continue;
        };
        let falls = |earlier: u32| {
            Err(Flaw::StageFalls {
                place: graph.place(id),
                earlier: graph.place(earlier),
            })
        };
        let local = matches!(node.run.kind, Kind::Reduce { .. } | Kind::Copy);
        if let Some(before) = graph.before(id)
            && !local
            && let Some(last) = graph.stage(before)
            && !later(last, stage, true, 1)
        {
            return falls(before);
        }
        let strictly = i64::from(node.run.kind == Kind::Send || node.run.kind == Kind::SyncTo);
        for wait in &node.run.waits {
            let Some(waited) = graph.waited(id, wait) else {
                continue;
            };
            if let Some(last) = graph.stage(waited)
                && !later(last, stage, wait.whole, strictly)
            {
                return falls(waited);
            }
        }
    }
    Ok(())
}

/// Whether the slot of `stage` is at least `by` after that of `last` (its last segment if `whole`) for every S >= 1.
fn later(last: Stage, stage: Stage, whole: bool, by: i64) -> bool {
    let (hops, offset) = (stage.hops - last.hops, stage.offset - last.offset);
    // slot(stage) - slot(last) - (S - 1 if whole) - by, which is linear in S: smallest at S = 1 if it does not fall.
    hops >= i64::from(whole) && hops + offset >= by
}

/// The name of an index, for messages.
pub(super) fn block_name(p: &Program, index: u64) -> String {
    place::index(p, index)
}
