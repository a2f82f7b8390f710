//! Random programs, against a run that is obvious: sweep over all lanes, remember everything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use unisono_core::{Collective, Rank};

use super::super::{At, Model, Options, run};
use crate::ir::next_strand;
use crate::{
    Algorithm, Context, Cursor, Emit, LaneKind, Program, Stage, Unsupported, block, build_all,
    scratch,
};

/// A small generator (xorshift): the same numbers everywhere.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Loops of exchanges between random ranks. Every rank draws the same numbers and emits its own part, so the order of
/// emission is one in which the program completes.
struct Random {
    seed: u64,
    loops: u64,
    waves: bool,
}

impl Algorithm for Random {
    fn name(&self) -> &str {
        "random"
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn blocks(&self, _: &Context) -> u64 {
        7
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let mut dice = Dice(self.seed);
        let (me, p) = (cx.rank(), u64::from(cx.size()));
        let mut stage = 0;
        for _ in 0..self.loops {
            let (what, count) = (dice.below(6), 1 + dice.below(60));
            let from = dice.below(p) as Rank;
            let to = ((u64::from(from) + 1 + dice.below(p - 1)) % p) as Rank;
            let (first, stride) = (dice.below(7) as i64, dice.below(3) as i64);
            let shift = dice.below(2) as i64;
            for k in 0..count as i64 {
                let source = block(first + stride * k);
                let target = block(first + stride * k + shift);
                if self.waves {
                    b.stage(Stage {
                        hops: stage / 3,
                        offset: stage,
                    });
                    stage += 1;
                }
                match what {
                    0 if me == from => b.copy(scratch(0), source),
                    1 if me == from => b.reduce(source, &[source, block(first)]),
                    0 | 1 => {}
                    2 if me == from => b.sync_to(to),
                    2 if me == to => b.sync_from(from),
                    _ if me == from => b.send(to, source),
                    3 if me == to => b.recv(from, target),
                    _ if me == to => b.recv_reduce(from, target),
                    _ => {}
                }
            }
        }
    }
}

/// Times that depend on nothing but the step: mostly short, sometimes long.
struct Jitter {
    ordered: bool,
}

fn jitter(at: &At<'_>, salt: u64) -> u64 {
    let mut dice = Dice(
        (u64::from(at.rank) << 40 | u64::from(at.lane) << 32 | at.number << 4 | salt)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            | 1,
    );
    dice.below(7);
    let long = dice.below(20) == 0;
    dice.below(if long { 500 } else { 5 })
}

impl Model for Jitter {
    type Time = u64;
    type Message = u64;
    fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, u64) {
        let done = ready + jitter(at, 1);
        (done, done + jitter(at, 2))
    }
    fn recv(&mut self, at: &At<'_>, arrival: u64, ready: u64) -> u64 {
        arrival.max(ready) + jitter(at, 3)
    }
    fn local(&mut self, at: &At<'_>, ready: u64) -> u64 {
        ready + jitter(at, 4)
    }
    fn in_time_order(&self) -> bool {
        self.ordered
    }
}

#[derive(Default)]
struct Fifo {
    messages: VecDeque<u64>,
    sent: u64,
    applied: Vec<u64>,
}

/// The times of all ranks, by sweeping; `None` if stuck.
fn sweep(programs: &[Arc<Program>], segments: u64, window: Option<u64>) -> Option<Vec<u64>> {
    let mut model = Jitter { ordered: false };
    let mut fifos: BTreeMap<(Rank, Rank, u16), Fifo> = BTreeMap::new();
    let lanes = |p: &Arc<Program>| vec![(Cursor::default(), Vec::<u64>::new()); p.lanes.len()];
    let mut states: Vec<_> = programs.iter().map(lanes).collect();
    let mut floors: BTreeMap<(usize, LaneKind), u64> = BTreeMap::new();
    loop {
        let mut moved = false;
        for (rank, program) in programs.iter().enumerate() {
            let kinds: std::collections::BTreeSet<LaneKind> =
                program.lanes.iter().map(|l| l.kind).collect();
            for kind in kinds {
                let strands = program.lanes.iter().enumerate();
                let strands = strands.filter(|(_, lane)| lane.kind == kind);
                let strands = strands.map(|(i, lane)| (i, lane, states[rank][i].0));
                let Some(l) = next_strand(strands, segments) else {
                    continue;
                };
                let lane = &program.lanes[l];
                let cursor = states[rank][l].0;
                let run = &lane.runs[cursor.run as usize];
                let floor = floors.entry((rank, kind)).or_default();
                let last = states[rank][l].1.last().copied().unwrap_or(0);
                let mut ready = match kind {
                    LaneKind::Send { .. } => *floor,
                    LaneKind::Recv { .. } => last.max(*floor),
                    LaneKind::Local { .. } => last,
                };
                let needs = |w: &crate::Wait| {
                    let need = w.needs(cursor.k, cursor.segment, segments) as usize;
                    (&states[rank][w.lane as usize].1, need)
                };
                if run
                    .waits
                    .iter()
                    .map(needs)
                    .any(|(times, need)| times.len() < need)
                {
                    continue;
                }
                for (times, need) in run.waits.iter().map(needs).filter(|n| n.1 > 0) {
                    ready = ready.max(times[need - 1]);
                }
                let at = At {
                    rank: rank as Rank,
                    lane: l as u32,
                    run,
                    k: cursor.k,
                    segment: cursor.segment,
                    number: states[rank][l].1.len() as u64,
                    program,
                };
                let done = match kind {
                    LaneKind::Send { peer, channel } => {
                        let fifo = fifos.entry((rank as Rank, peer, channel)).or_default();
                        if window.is_some_and(|w| fifo.messages.len() as u64 >= w) {
                            continue;
                        }
                        if let Some(i) = window.and_then(|w| fifo.sent.checked_sub(w)) {
                            ready = ready.max(fifo.applied[i as usize]);
                        }
                        let (done, message) = model.send(&at, ready);
                        fifo.messages.push_back(message);
                        fifo.sent += 1;
                        done
                    }
                    LaneKind::Recv { peer, channel } => {
                        let fifo = fifos.entry((peer, rank as Rank, channel)).or_default();
                        let Some(message) = fifo.messages.pop_front() else {
                            continue;
                        };
                        let done = model.recv(&at, message, ready);
                        fifo.applied.push(done);
                        done
                    }
                    LaneKind::Local { .. } => model.local(&at, ready),
                };
                *floor = ready;
                states[rank][l].1.push(done.max(last));
                states[rank][l].0.advance(lane, segments);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let ends = programs.iter().zip(&states);
    let complete = ends
        .flat_map(|(p, s)| p.lanes.iter().zip(s))
        .all(|(l, s)| s.0.at(l).is_none());
    let last = |s: &Vec<(Cursor, Vec<u64>)>| {
        s.iter()
            .filter_map(|(_, times)| times.last().copied())
            .max()
            .unwrap_or(0)
    };
    complete.then(|| states.iter().map(last).collect())
}

/// Compares all ways to run it; how many of the eight complete.
fn compare(random: &Random, p: u32) -> u32 {
    let mut complete = 0;
    let cx = Context::full(Collective::AllReduce, 0, p);
    let programs = build_all(random, &cx).unwrap();
    for segments in [1, 3] {
        for window in [None, Some(1), Some(2), Some(50)] {
            let options = Options { segments, window };
            let expected = sweep(&programs, segments, window);
            for ordered in [false, true] {
                let outcome = run(&programs, options, &mut Jitter { ordered });
                assert_eq!(
                    outcome.ok().map(|o| o.times),
                    expected,
                    "seed {} of {p} ranks, {options:?}, in time order: {ordered}",
                    random.seed
                );
            }
            complete += u32::from(expected.is_some());
        }
    }
    complete
}

#[test]
fn random_programs_take_the_times_of_a_run_that_remembers_everything() {
    for seed in 1..=25 {
        let random = Random {
            seed: seed * 7919,
            loops: 40,
            waves: false,
        };
        assert_eq!(compare(&random, 2 + seed as u32 % 4), 8);
    }
}

#[test]
fn random_waves_are_merged_and_timed_as_by_next_strand() {
    let mut complete = 0;
    for seed in 1..=25 {
        let random = Random {
            seed: seed * 104_729,
            loops: 4,
            waves: true,
        };
        complete += compare(&random, 2 + seed as u32 % 3);
    }
    // Those that do not must be stuck in both runs; but most do.
    assert!(complete > 100, "{complete} of 200");
}
