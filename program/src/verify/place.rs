//! Where in a program set something is: rank, lane, step, and what that step does.

use std::fmt;

use unisono_core::Rank;

use crate::{Kind, LaneKind, Program, Span};

/// One step of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: Rank,
    /// Index of the lane in the rank's program.
    pub lane: u32,
    /// Index of the step in the lane.
    pub step: u64,
    /// Which way the lane faces.
    pub faces: LaneKind,
    /// What the step does: `recv_reduce [3]`. Blocks in brackets, scratch as `[s0]`, a part of a block as `[3.1]`.
    pub what: String,
}

impl Place {
    /// Step `step` of lane `lane`; a step that does not exist is described as `nothing`.
    pub fn of(program: &Program, lane: u32, step: u64) -> Place {
        let found = program.lanes.get(lane as usize);
        let what = match found.and_then(|l| l.find(step)) {
            None => "nothing".to_owned(),
            Some((run, k)) => {
                let mut what = word(run.kind).to_owned();
                if !matches!(run.kind, Kind::SyncTo | Kind::SyncFrom) {
                    what += &format!(" {}", span(program, program.span_at(&run.target, k)));
                }
                if !run.sources.is_empty() {
                    let sources: Vec<String> = run
                        .sources
                        .iter()
                        .map(|s| span(program, program.span_at(s, k)))
                        .collect();
                    what += &format!(" = {}", sources.join(" + "));
                }
                what
            }
        };
        Place {
            rank: program.rank,
            lane,
            step,
            faces: found.map_or(LaneKind::Local { channel: 0 }, |l| l.kind),
            what,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, lane, step) = (self.rank, self.lane, self.step);
        let (faces, channel) = match self.faces {
            LaneKind::Send { peer, channel } => (format!("to {peer}"), channel),
            LaneKind::Recv { peer, channel } => (format!("from {peer}"), channel),
            LaneKind::Local { channel } => ("local".to_owned(), channel),
        };
        write!(f, "rank {rank} lane {lane} ({faces}")?;
        if channel > 0 {
            write!(f, ", channel {channel}")?;
        }
        write!(f, ") step {step}: {}", self.what)
    }
}

/// The name of a step kind.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "send",
        Kind::Recv => "recv",
        Kind::RecvReduce => "recv_reduce",
        Kind::SyncTo => "sync_to",
        Kind::SyncFrom => "sync_from",
        Kind::Reduce { finish: false } => "reduce",
        Kind::Reduce { finish: true } => "reduce and finish",
        Kind::Copy => "copy",
    }
}

/// One index: `3`, `3.1` for part 1 of block 3, `s0` for scratch slot 0.
pub(crate) fn index(program: &Program, index: u64) -> String {
    if !program.is_data(index) {
        format!("s{}", index - program.data_indices())
    } else if program.subs > 1 {
        format!("{}.{}", index % program.blocks, index / program.blocks)
    } else {
        index.to_string()
    }
}

/// A span: `[3]`, `[3..5]` with the last block included.
fn span(program: &Program, span: Span) -> String {
    match span.len {
        0 => "[]".to_owned(),
        1 => format!("[{}]", index(program, span.first)),
        len => {
            let last = program.index_in(span, len - 1);
            format!("[{}..{}]", index(program, span.first), index(program, last))
        }
    }
}
