//! Reasons why a changed program may still be right, found without `verify`.
//!
//! [`Events`] lays a program set out segment by segment and asks what must have happened before what; [`leaves_early`]
//! holds one rank of a barrier back and looks who leaves; [`repeatable`] and [`independent`] look at memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use unisono_core::Rank;
use unisono_program::ir::next_strand;
use unisono_program::{Cursor, Lane, LaneKind, Location, Operand, Program, Run, Wait};

/// A segment of a step: rank, lane, and its number in the lane.
type Event = (usize, usize, u64);

/// All segments of all steps of a program set.
pub(crate) struct Events<'a> {
    programs: &'a [Arc<Program>],
    segments: u64,
    /// By received segment, the sent one.
    sender: BTreeMap<Event, Event>,
}

impl<'a> Events<'a> {
    /// Pairs the ends of every message. The set must have no message without its other end.
    pub(crate) fn new(programs: &'a [Arc<Program>], segments: u64) -> Events<'a> {
        let mut fifos: BTreeMap<(Rank, Rank, u16), [Vec<Event>; 2]> = BTreeMap::new();
        for (rank, program) in programs.iter().enumerate() {
            let kinds: HashSet<LaneKind> = program.lanes.iter().map(|l| l.kind).collect();
            for kind in kinds {
                let (fifo, end) = match kind {
                    LaneKind::Send { peer, channel } => ((program.rank, peer, channel), 0),
                    LaneKind::Recv { peer, channel } => ((peer, program.rank, channel), 1),
                    LaneKind::Local { .. } => continue,
                };
                fifos.entry(fifo).or_default()[end] = messages(rank, program, kind, segments);
            }
        }
        let mut sender = BTreeMap::new();
        for [sent, received] in fifos.into_values() {
            assert_eq!(
                sent.len(),
                received.len(),
                "a message without its other end"
            );
            sender.extend(received.into_iter().zip(sent));
        }
        Events {
            programs,
            segments,
            sender,
        }
    }

    /// Whether `wait`, which step `step` of a lane of a rank had, holds for each segment when that begins, wait or not.
    pub(crate) fn imply(&self, (rank, lane, step): Event, wait: &Wait) -> bool {
        (0..self.segments).all(|segment| {
            let begins = (rank, lane, step * self.segments + segment);
            let needed = wait.needs(0, segment, self.segments);
            needed == 0 || self.complete(begins, (rank, wait.lane as usize, needed - 1))
        })
    }

    /// Whether `earlier` is complete whenever `later` begins.
    ///
    /// Walks back over what has begun. A step waited for is complete, and so is the one before a step in its lane, but
    /// for a send, which follows another as soon as that is posted; a message says that its sender has begun.
    fn complete(&self, later: Event, earlier: Event) -> bool {
        let found = |e: Event| (e.0, e.1) == (earlier.0, earlier.1) && e.2 >= earlier.2;
        let (mut stack, mut seen) = (vec![later], HashSet::from([later]));
        while let Some(event @ (rank, lane, number)) = stack.pop() {
            let program = &self.programs[rank];
            let faces = &program.lanes[lane];
            let mut begun = Vec::new();
            if number > 0 {
                let before = (rank, lane, number - 1);
                if !matches!(faces.kind, LaneKind::Send { .. }) && found(before) {
                    return true;
                }
                begun.push(before);
            }
            let (step, segment) = (number / self.segments, number % self.segments);
            let (run, k) = at(faces, step);
            for wait in &run.waits {
                let needed = wait.needs(k, segment, self.segments);
                if needed > 0 {
                    let waited = (rank, wait.lane as usize, needed - 1);
                    if found(waited) {
                        return true;
                    }
                    begun.push(waited);
                }
            }
            begun.extend(self.sender.get(&event));
            stack.extend(begun.into_iter().filter(|&e| seen.insert(e)));
        }
        false
    }
}

fn at(lane: &Lane, step: u64) -> (&Run, u64) {
    lane.find(step).expect("a step of this lane")
}

/// The messages of one end of a FIFO, in order: its strands, merged.
fn messages(rank: usize, program: &Program, kind: LaneKind, segments: u64) -> Vec<Event> {
    let lanes = || {
        program
            .lanes
            .iter()
            .enumerate()
            .filter(|(_, l)| l.kind == kind)
    };
    let mut at: Vec<(Cursor, u64)> = vec![Default::default(); program.lanes.len()];
    let mut all = Vec::new();
    while let Some(i) = next_strand(lanes().map(|(i, l)| (i, l, at[i].0)), segments) {
        all.push((rank, i, at[i].1));
        at[i].0.advance(&program.lanes[i], segments);
        at[i].1 += 1;
    }
    all
}

/// A rank that completes a barrier although another, the second one, has not entered it.
pub(crate) fn leaves_early(programs: &[Arc<Program>]) -> Option<(usize, usize)> {
    let events = Events::new(programs, 1);
    (0..programs.len()).find_map(|absent| {
        // Steps done per rank and lane: whatever can be done, until nothing can.
        let mut done: Vec<Vec<u64>> = programs.iter().map(|p| vec![0; p.lanes.len()]).collect();
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (r, p) in programs.iter().enumerate().filter(|(r, _)| *r != absent) {
                for (l, lane) in p.lanes.iter().enumerate() {
                    let step = done[r][l];
                    let Some((run, k)) = lane.find(step) else {
                        continue;
                    };
                    let waits =
                        (run.waits.iter()).all(|w| done[r][w.lane as usize] >= w.needs(k, 0, 1));
                    let sender = events.sender.get(&(r, l, step));
                    if waits && sender.is_none_or(|&(from, lane, number)| done[from][lane] > number)
                    {
                        done[r][l] += 1;
                        moved = true;
                    }
                }
            }
        }
        let left = |r: usize| {
            programs[r]
                .lanes
                .iter()
                .zip(&done[r])
                .all(|(l, &d)| d == l.steps)
        };
        let early = (0..programs.len()).find(|&r| r != absent && left(r));
        early.map(|rank| (rank, absent))
    })
}

/// Blocks that a local step reads from memory that steps can write, and blocks that it writes.
fn memory(p: &Program, run: &Run, k: u64) -> (HashSet<u64>, HashSet<u64>) {
    let mut reads = HashSet::new();
    for source in &run.sources {
        let span = p.span_at(source, k);
        for i in 0..span.len {
            let index = p.index_in(span, i);
            let output = p.is_data(index) && p.homes().output(p.block_of(index)).is_some();
            if !in_input(source, i) || output {
                reads.insert(index);
            }
        }
    }
    let span = p.span_at(&run.target, k);
    (reads, (0..span.len).map(|i| p.index_in(span, i)).collect())
}

fn in_input(operand: &Operand, i: u64) -> bool {
    match &operand.location {
        Location::Input => true,
        Location::Work => false,
        Location::Mixed(parts) => {
            let each = parts
                .iter()
                .flat_map(|&(n, work)| std::iter::repeat_n(!work, n as usize));
            each.into_iter()
                .nth(i as usize)
                .expect("parts as long as the span")
        }
    }
}

/// Whether a local step done twice leaves what it leaves when done once: it reads nothing that it changes.
pub(crate) fn repeatable(p: &Program, lane: u32, step: u64) -> bool {
    let (run, k) = at(&p.lanes[lane as usize], step);
    let (reads, writes) = memory(p, run, k);
    !run.sources.is_empty()
        && (run.kind == unisono_program::Kind::Copy || reads.is_disjoint(&writes))
}

/// Whether two local steps may change places: neither writes what the other reads or writes.
pub(crate) fn independent(p: &Program, lane: u32, step: u64) -> bool {
    let lane = &p.lanes[lane as usize];
    let [(one, k), (two, n)] = [at(lane, step), at(lane, step + 1)];
    let ((r1, w1), (r2, w2)) = (memory(p, one, k), memory(p, two, n));
    let local = !one.sources.is_empty() && !two.sources.is_empty();
    local && w1.is_disjoint(&w2) && w1.is_disjoint(&r2) && w2.is_disjoint(&r1)
}
