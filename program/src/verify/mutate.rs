//! Small wrong changes to a program set, to see that [`verify`](super::verify) finds them.
//!
//! [`mutants`] changes one step of one rank at a time: deletes it, does it twice, swaps it with the next, sends it to
//! another rank, names another block, drops or weakens a wait. Waits of other steps keep meaning the same steps.
//! A mutant that is still right is possible (a wait that others imply, steps whose order does not matter).
//!
//! ```
//! # use unisono_core::Collective;
//! # use unisono_program::{block, build_all, Algorithm, Context, Emit, Unsupported};
//! # struct Exchange;
//! # impl Algorithm for Exchange {
//! #     fn name(&self) -> &str { "exchange" }
//! #     fn supports(&self, _: &Context) -> Result<(), Unsupported> { Ok(()) }
//! #     fn blocks(&self, _: &Context) -> u64 { 1 }
//! #     fn emit(&self, cx: &Context, b: &mut dyn Emit) {
//! #         b.send(1 - cx.rank(), block(0));
//! #         b.recv_reduce(1 - cx.rank(), block(0));
//! #     }
//! # }
//! use unisono_program::verify::{mutate::mutants, verify};
//!
//! let programs = build_all(&Exchange, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
//! for mutant in mutants(&programs) {
//!     assert!(verify(&mutant.programs).is_err(), "{mutant}");
//! }
//! ```

use std::fmt;
use std::sync::Arc;

use super::Place;
use crate::{Kind, Lane, LaneKind, Operand, Program, Run, Stage};

/// What is changed at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It is not done.
    Delete,
    /// It is done twice in a row.
    Duplicate,
    /// It is done after its successor in the lane.
    Swap,
    /// It goes to, or is expected from, the next rank, after what is there already.
    RePeer,
    /// Its target begins one block later.
    ReBlock,
    /// Its source with this index begins one block later.
    ReSource(usize),
    /// It does not wait for this lane.
    DropWait(u32),
    /// It waits for the same segment in this lane only, not for all.
    WeakenWait(u32),
    /// It overwrites instead of reducing, or reduces instead of overwriting.
    Reduce,
    /// It divides where it did not, or the other way round.
    Finish,
}

/// A program set with one change.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// The step, as it was.
    pub place: Place,
    /// What was changed.
    pub change: Change,
    /// The changed set.
    pub programs: Vec<Arc<Program>>,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.change, self.place)
    }
}

/// The same program with every step in a run of its own.
pub fn unroll(program: &Program) -> Program {
    let mut out = program.clone();
    for lane in &mut out.lanes {
        let single =
            |run: &Run| -> Vec<Run> { (0..run.count).map(|k| step(program, run, k)).collect() };
        lane.runs = lane.runs.iter().flat_map(single).collect();
    }
    out
}

fn step(program: &Program, run: &Run, k: u64) -> Run {
    let operand = |o: &Operand| Operand {
        span: program.span_at(o, k),
        stride: 0,
        location: o.location.clone(),
    };
    let mut waits = run.waits.clone();
    for wait in &mut waits {
        (wait.step, wait.stride) = (wait.step_at(k), 0);
    }
    waits.retain(|w| w.step >= 0);
    Run {
        start: run.start + k,
        count: 1,
        kind: run.kind,
        target: operand(&run.target),
        sources: run.sources.iter().map(operand).collect(),
        waits,
        stage: run.stage_at(k).map(|s| (s, Stage::default())),
    }
}

/// Every single change of every step of every rank.
pub fn mutants(programs: &[Arc<Program>]) -> impl Iterator<Item = Mutant> + use<> {
    let unrolled: Vec<Arc<Program>> = programs.iter().map(|p| Arc::new(unroll(p))).collect();
    let all = unrolled.clone();
    all.into_iter().flat_map(move |program| {
        let unrolled = unrolled.clone();
        let sites: Vec<(u32, u64, Change)> = (program.lanes.iter().enumerate())
            .flat_map(|(i, lane)| lane.runs.iter().map(move |run| (i as u32, run)))
            .flat_map(|(lane, run)| {
                let at = move |change| (lane, run.start, change);
                changes(&program, lane, run).into_iter().map(at)
            })
            .collect();
        sites.into_iter().filter_map(move |(lane, step, change)| {
            let mut changed = (*program).clone();
            apply(&mut changed, lane as usize, step as usize, change);
            if changed == *program {
                return None;
            }
            let mut programs = unrolled.clone();
            programs[program.rank as usize] = Arc::new(changed);
            let place = Place::of(&program, lane, step);
            Some(Mutant {
                place,
                change,
                programs,
            })
        })
    })
}

/// The changes that make sense at a step.
fn changes(program: &Program, lane: u32, run: &Run) -> Vec<Change> {
    let message = !matches!(run.kind, Kind::Reduce { .. } | Kind::Copy);
    let mut out = vec![Change::Delete, Change::Duplicate];
    if run.start + 1 < program.lanes[lane as usize].steps {
        out.push(Change::Swap);
    }
    if message && program.size > 2 {
        out.push(Change::RePeer);
    }
    if run.target.span.len > 0 {
        out.push(Change::ReBlock);
    }
    out.extend((0..run.sources.len()).map(Change::ReSource));
    for wait in &run.waits {
        out.push(Change::DropWait(wait.lane));
        if wait.whole {
            out.push(Change::WeakenWait(wait.lane));
        }
    }
    match run.kind {
        Kind::Recv | Kind::RecvReduce => out.push(Change::Reduce),
        Kind::Reduce { .. } => out.push(Change::Finish),
        _ => {}
    }
    out
}

fn apply(p: &mut Program, lane: usize, step: usize, change: Change) {
    match change {
        Change::Delete => {
            p.lanes[lane].runs.remove(step);
            renumber(p, lane, |s| if s >= step as i64 { s - 1 } else { s });
        }
        Change::Duplicate => {
            let copy = p.lanes[lane].runs[step].clone();
            p.lanes[lane].runs.insert(step, copy);
            renumber(p, lane, |s| if s >= step as i64 { s + 1 } else { s });
        }
        Change::Swap => {
            // Stages belong to places in the lane, not to what is done there.
            let runs = &mut p.lanes[lane].runs;
            let stages = (runs[step].stage, runs[step + 1].stage);
            runs.swap(step, step + 1);
            (runs[step].stage, runs[step + 1].stage) = stages;
            let step = step as i64;
            renumber(p, lane, |s| match s - step {
                0 => s + 1,
                1 => s - 1,
                _ => s,
            });
        }
        Change::RePeer => re_peer(p, lane, step),
        Change::ReBlock => {
            let all = (p.blocks, p.data_indices(), p.slots.len() as u64);
            shift(&mut p.lanes[lane].runs[step].target, all);
        }
        Change::ReSource(i) => {
            let all = (p.blocks, p.data_indices(), p.slots.len() as u64);
            shift(&mut p.lanes[lane].runs[step].sources[i], all);
        }
        Change::DropWait(other) => {
            p.lanes[lane].runs[step].waits.retain(|w| w.lane != other);
        }
        Change::WeakenWait(other) => {
            let waits = &mut p.lanes[lane].runs[step].waits;
            waits
                .iter_mut()
                .filter(|w| w.lane == other)
                .for_each(|w| w.whole = false);
        }
        Change::Reduce => {
            let kind = &mut p.lanes[lane].runs[step].kind;
            *kind = if *kind == Kind::Recv {
                Kind::RecvReduce
            } else {
                Kind::Recv
            };
        }
        Change::Finish => {
            if let Kind::Reduce { finish } = &mut p.lanes[lane].runs[step].kind {
                *finish = !*finish;
            }
        }
    }
}

/// Moves a message step to the end of the lane for the next rank.
fn re_peer(p: &mut Program, lane: usize, step: usize) {
    let (rank, size) = (p.rank, p.size);
    let next = |peer| {
        (1..size)
            .map(|d| (peer + d) % size)
            .find(|&q| q != rank)
            .unwrap_or(peer)
    };
    let kind = match p.lanes[lane].kind {
        LaneKind::Send { peer, channel } => LaneKind::Send {
            peer: next(peer),
            channel,
        },
        LaneKind::Recv { peer, channel } => LaneKind::Recv {
            peer: next(peer),
            channel,
        },
        local => local,
    };
    let run = p.lanes[lane].runs.remove(step);
    let gone = step as i64;
    renumber(p, lane, |s| if s >= gone { s - 1 } else { s });
    let to = p
        .lanes
        .iter()
        .position(|l| l.kind == kind)
        .unwrap_or_else(|| {
            let (steps, runs) = (0, Vec::new());
            p.lanes.push(Lane { kind, steps, runs });
            p.lanes.len() - 1
        });
    p.lanes[to].runs.push(run);
    renumber(p, to, |s| s);
}

/// The next block of the copy, or the next scratch slot.
fn shift(operand: &mut Operand, (blocks, data, slots): (u64, u64, u64)) {
    let first = &mut operand.span.first;
    *first = if *first < data {
        *first / blocks * blocks + (*first % blocks + 1) % blocks
    } else {
        data + (*first - data + 1) % slots.max(1)
    };
}

/// Numbers the steps of `lane` again and lets all waits on it follow `moved`.
fn renumber(p: &mut Program, lane: usize, moved: impl Fn(i64) -> i64) {
    let steps = &mut p.lanes[lane];
    steps.steps = steps.runs.len() as u64;
    for (i, run) in steps.runs.iter_mut().enumerate() {
        run.start = i as u64;
    }
    let waits = p
        .lanes
        .iter_mut()
        .flat_map(|l| &mut l.runs)
        .flat_map(|r| &mut r.waits);
    for wait in waits.filter(|w| w.lane as usize == lane) {
        wait.step = moved(wait.step);
    }
}
