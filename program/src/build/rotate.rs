//! Programs of large symmetric worlds, made from rank 0's.

use unisono_core::Rank;

use super::join;
use crate::{LaneKind, Program, Span};

/// Rank `by`'s program, made from rank 0's: see [`Symmetry::Rotation`](crate::Symmetry::Rotation).
pub fn rotate(program: &Program, by: Rank) -> Program {
    let mut out = program.clone();
    let (n, size) = (program.blocks, program.size);
    let shift = u64::from(by) * (n / u64::from(size));
    let data = program.data_indices();
    let index = |i: u64| {
        if i < data && n > 0 {
            i / n * n + (i % n + shift) % n
        } else {
            i
        }
    };
    let peer = |p: Rank| (p + by) % size;
    out.rank = by;
    for lane in &mut out.lanes {
        match &mut lane.kind {
            LaneKind::Send { peer: p, .. } | LaneKind::Recv { peer: p, .. } => *p = peer(*p),
            LaneKind::Local { .. } => {}
        }
        for run in &mut lane.runs {
            run.target.span.first = index(run.target.span.first);
            for source in &mut run.sources {
                source.span.first = index(source.span.first);
            }
        }
    }
    for slot in &mut out.slots {
        slot.like = index(slot.like);
    }
    let moved: Vec<Span> = program
        .homeless
        .iter()
        .flat_map(|s| {
            let span = Span {
                first: index(s.first),
                len: s.len,
            };
            program.ranges(span).map(|r| Span {
                first: r.start,
                len: r.end - r.start,
            })
        })
        .collect();
    out.homeless = join(moved);
    out
}
