//! Whether waits cover every hazard, for every timing, every number of segments and both bindings.
//!
//! Independent of how the waits were found, and of any schedule: for each step, what its rank *knows* when the step
//! begins. A wait tells that a step of another lane is complete, and with it all that this step knew; the order of a
//! lane tells what its earlier steps knew (and, except for sends, that they are complete: a send is only posted in
//! order). Two steps that use one block, at least one writing it, must know of each other in one direction.
//!
//! Segments need no numbers. In a lane, "through segment s of step j" comes before "all of step j", which comes before
//! "through segment s of step j + 1": knowledge of a lane is one number, `2j + 1` or `2j + 2`. Two steps over the same
//! span meet in the same segment, so the first kind will do; over different spans a segment of one may meet any segment
//! of the other. (Where one span ends the other, evenly cut segments would still come in time, but cuts are rounded.)

use std::collections::{HashSet, VecDeque};

use smallvec::SmallVec;

use super::graph::{Graph, NONE};
use super::{Flaw, checks};
use crate::{Kind, LaneKind, Location, Operand, Program, Span};

/// Checks all ranks.
pub(super) fn check(graph: &Graph<'_>) -> Result<(), Flaw> {
    let mut by_rank: Vec<Vec<u32>> = vec![Vec::new(); graph.programs.len()];
    for &id in &graph.order {
        by_rank[graph.node(id).rank as usize].push(id);
    }
    by_rank.iter().try_for_each(|order| rank(graph, order))
}

/// Who uses one block: the last step that wrote it, and per lane the last one that read it since.
#[derive(Clone)]
struct Cell {
    writer: u32,
    writer_span: Span,
    readers: SmallVec<[(u32, Span); 2]>,
}

/// What the steps of one rank know when they begin: a row per step, a column per lane.
struct Known {
    first: u32,
    lanes: usize,
    rows: Vec<u32>,
}

fn rank(graph: &Graph<'_>, order: &[u32]) -> Result<(), Flaw> {
    let Some(&first) = order.iter().min() else {
        return Ok(());
    };
    let p = graph.program(first);
    let lanes = p.lanes.len();
    let mut known = Known {
        first,
        lanes,
        rows: vec![0; order.len() * lanes],
    };
    let empty = Cell {
        writer: NONE,
        writer_span: Span { first: 0, len: 0 },
        readers: SmallVec::new(),
    };
    let mut cells = vec![empty; p.data_indices() as usize + p.slots.len()];
    for &id in order {
        known.learn(graph, id);
        let node = graph.node(id);
        let target = p.span_at(&node.run.target, node.k);
        let (reads, writes) = uses(node.run.kind);
        let sources = node.run.sources.iter().map(|s| (s, p.span_at(s, node.k)));
        let read = reads.then_some((&node.run.target, target));
        for (operand, span) in read.into_iter().chain(sources) {
            each_read(p, operand, span, |index, aliased| {
                if !aliased {
                    return Ok(());
                }
                let cell = &mut cells[index as usize];
                known.ordered(graph, (cell.writer, cell.writer_span), (id, span), index)?;
                let lane = |r: u32| graph.node(r).lane;
                match cell
                    .readers
                    .iter_mut()
                    .find(|r| lane(r.0) == node.lane && r.0 != id)
                {
                    Some(reader) => *reader = (id, span),
                    None => cell.readers.push((id, span)),
                }
                Ok(())
            })?;
        }
        if writes {
            for index in p.ranges(target).flatten() {
                let cell = &mut cells[index as usize];
                known.ordered(graph, (cell.writer, cell.writer_span), (id, target), index)?;
                for &reader in &cell.readers {
                    known.ordered(graph, reader, (id, target), index)?;
                }
                cell.readers.clear();
                (cell.writer, cell.writer_span) = (id, target);
            }
        }
    }
    Ok(())
}

/// Whether a step of this kind reads its target, and whether it writes it.
pub(super) fn uses(kind: Kind) -> (bool, bool) {
    match kind {
        Kind::Send => (true, false),
        Kind::RecvReduce => (true, true),
        Kind::Recv | Kind::Reduce { .. } | Kind::Copy => (false, true),
        Kind::SyncTo | Kind::SyncFrom => (false, false),
    }
}

/// Calls `f` with each index of a span that is read, and whether it can be memory that steps write.
///
/// A block in the input without an output home is never overwritten, in either binding.
fn each_read(
    p: &Program,
    operand: &Operand,
    span: Span,
    mut f: impl FnMut(u64, bool) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let homes = p.homes();
    for_each_located(p, operand, span, |index, input| {
        f(index, !input || homes.output(p.block_of(index)).is_some())
    })
}

/// Calls `f` with each index of a span and whether it is read from the input.
pub(super) fn for_each_located(
    p: &Program,
    operand: &Operand,
    span: Span,
    mut f: impl FnMut(u64, bool) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let mut all = p.ranges(span).flatten();
    let mut part = |len: u64, input: bool| -> Result<(), Flaw> {
        all.by_ref()
            .take(len as usize)
            .try_for_each(|i| f(i, input))
    };
    match &operand.location {
        Location::Input => part(span.len, true),
        Location::Work => part(span.len, false),
        Location::Mixed(parts) => parts.iter().try_for_each(|&(len, work)| part(len, !work)),
    }
}

impl Known {
    fn row(&self, id: u32) -> std::ops::Range<usize> {
        let row = (id - self.first) as usize * self.lanes;
        row..row + self.lanes
    }

    /// What step `id` knows, from its lane and its waits. They have been here before it.
    fn learn(&mut self, graph: &Graph<'_>, id: u32) {
        let node = graph.node(id);
        let mine = self.row(id).start;
        if let Some(before) = graph.before(id) {
            self.inherit(mine, before, true);
            if !matches!(
                graph.program(id).lanes[node.lane as usize].kind,
                LaneKind::Send { .. }
            ) {
                self.rows[mine + node.lane as usize] = 2 * node.step() as u32;
            }
        }
        for wait in &node.run.waits {
            let Some(waited) = graph.waited(id, wait) else {
                continue;
            };
            self.inherit(mine, waited, wait.whole);
            let code = 2 * graph.node(waited).step() as u32 + 1 + u32::from(wait.whole);
            let known = &mut self.rows[mine + wait.lane as usize];
            *known = code.max(*known);
        }
    }

    /// What `from` knew at the same segment, or (`whole`) at its last: then "through its segment" is "all".
    fn inherit(&mut self, mine: usize, from: u32, whole: bool) {
        let from = self.row(from).start;
        for lane in 0..self.lanes {
            let known = self.rows[from + lane];
            let known = if whole { known + (known & 1) } else { known };
            let row = &mut self.rows[mine + lane];
            *row = known.max(*row);
        }
    }

    /// `Err` unless `earlier` is complete, in all segments that meet, when `later` begins.
    fn ordered(
        &self,
        graph: &Graph<'_>,
        earlier: (u32, Span),
        later: (u32, Span),
        index: u64,
    ) -> Result<(), Flaw> {
        if earlier.0 == NONE || earlier.0 == later.0 {
            return Ok(());
        }
        let before = graph.node(earlier.0);
        let whole = earlier.1 != later.1;
        let known = self.rows[self.row(later.0).start + before.lane as usize];
        let through = 2 * before.step() as u32 + 1;
        if known >= through + u32::from(whole) || through_messages(graph, earlier.0, later.0, whole)
        {
            return Ok(());
        }
        Err(Flaw::Race {
            place: graph.place(later.0),
            earlier: graph.place(earlier.0),
            block: checks::block_name(graph.program(later.0), index),
            segments: known >= through,
        })
    }
}

/// Whether `earlier` is complete when `later` begins because of what other ranks had to do in between.
///
/// A message is received after it was posted, so its receiver knows what its sender knew. Searched backwards, and only
/// where the rank's own waits do not tell.
fn through_messages(graph: &Graph<'_>, earlier: u32, later: u32, whole: bool) -> bool {
    let lane = |id: u32| (graph.node(id).rank, graph.node(id).lane);
    let goal = lane(earlier);
    // Complete, at its last segment or at the one in question: the step itself, or one that comes later in its lane.
    let found = |id: u32, last: bool| {
        lane(id) == goal && (id > earlier || (id == earlier && (last || !whole)))
    };
    // Steps that have begun, at their last segment or at the one in question.
    let mut queue = VecDeque::from([(later, false)]);
    let mut seen = HashSet::from([(later, false)]);
    while let Some((id, last)) = queue.pop_front() {
        let mut begun: SmallVec<[(u32, bool); 4]> = SmallVec::new();
        if let Some(before) = graph.before(id) {
            // Of an earlier send only what it knew when it was posted counts; other lanes complete in order.
            if !graph.sends(id) && found(before, true) {
                return true;
            }
            begun.push((before, true));
        }
        for wait in &graph.node(id).run.waits {
            if let Some(waited) = graph.waited(id, wait) {
                if found(waited, last || wait.whole) {
                    return true;
                }
                begun.push((waited, last || wait.whole));
            }
        }
        begun.extend(graph.sender(id).map(|sender| (sender, last)));
        queue.extend(begun.into_iter().filter(|&state| seen.insert(state)));
    }
    false
}
