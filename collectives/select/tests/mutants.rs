//! Mutants of every registered algorithm: each small wrong change is refused by `verify`, or is no mistake.
//!
//! Each step of each rank is deleted, done twice, swapped with the next, sent to another rank, moved to another block,
//! robbed of each wait. A refusal must name a rank and a step. A survivor must belong to a class for which it is known
//! why the result stays right, and the reason is looked for without `verify` (`witness`); those that move data are
//! executed on numbers in random order as well (`machine`), and of a barrier each rank is held back in turn.

#[path = "../../../program/tests/local/machine.rs"]
#[allow(dead_code)]
mod machine;
mod registered;
mod witness;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use machine::attack;
use registered::{Call, calls};
use unisono_core::{Collective, Rank};
use unisono_program::verify::mutate::{Change, Mutant, mutants, unroll};
use unisono_program::verify::{Flaw, verify};
use unisono_program::{Kind, Program};
use witness::{Events, independent, leaves_early, repeatable};

/// Why a mutant is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// What the missing wait waited for is complete without it, by other waits and messages.
    ImpliedWait,
    /// A wait of a barrier in which every rank hears of all others without it.
    HeardWithout,
    /// A local step that reads nothing that it writes, done twice.
    DoneTwice,
    /// Neighbouring local steps that do not touch each other's blocks, swapped.
    Independent,
    /// Syncs to (from) one peer, swapped: one is like the other.
    AlikeSyncs,
}

/// Numbers of segments at which waits are looked at.
const SEGMENTS: std::ops::RangeInclusive<u64> = 1..=3;

/// How often survivors are executed: seeds, each of them 12 executions.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// For those that lack a wait.
    waits: u64,
    /// For the others, which need no rare order of events to fail.
    others: u64,
}

/// Shows each of the missing waits among 3 ranks that break something, as a test below says.
const THOROUGH: Effort = Effort {
    waits: 20,
    others: 20,
};

/// Shows about 97 (87) of 100 of them, in seconds.
const QUICK: Effort = Effort {
    waits: 8,
    others: 3,
};

/// Why `mutant` of `programs` (unrolled) should be right, if a reason is known.
fn explain(mutant: &Mutant, programs: &[Arc<Program>]) -> Option<Why> {
    let place = &mutant.place;
    let program = &programs[place.rank as usize];
    let lane = &program.lanes[place.lane as usize];
    let run = |step| lane.find(step).map(|(run, _)| run);
    let sync = |step| run(step).is_some_and(|r| matches!(r.kind, Kind::SyncTo | Kind::SyncFrom));
    match mutant.change {
        Change::DropWait(other) | Change::WeakenWait(other) => {
            let wait = run(place.step)?.waits.iter().find(|w| w.lane == other)?;
            let step = (place.rank as usize, place.lane as usize, place.step);
            let implied = |s| Events::new(&mutant.programs, s).imply(step, wait);
            if SEGMENTS.into_iter().all(implied) {
                Some(Why::ImpliedWait)
            } else {
                (program.collective == Collective::Barrier).then_some(Why::HeardWithout)
            }
        }
        Change::Duplicate if repeatable(program, place.lane, place.step) => Some(Why::DoneTwice),
        Change::Swap if sync(place.step) && sync(place.step + 1) => Some(Why::AlikeSyncs),
        Change::Swap if independent(program, place.lane, place.step) => Some(Why::Independent),
        _ => None,
    }
}

/// The programs with one run per step, as mutants have them.
fn unrolled(programs: &[Arc<Program>]) -> Vec<Arc<Program>> {
    programs.iter().map(|p| Arc::new(unroll(p))).collect()
}

/// What became of many mutants.
#[derive(Debug)]
struct Summary {
    effort: Effort,
    calls: usize,
    mutants: usize,
    survivors: BTreeMap<Why, usize>,
    /// What should not be.
    wrong: Vec<String>,
    /// Survivors that were executed, but for what does not show on numbers.
    executed: HashSet<Vec<Program>>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let survivors: usize = self.survivors.values().sum();
        let Summary { calls, mutants, .. } = self;
        writeln!(
            f,
            "{mutants} mutants of {calls} calls, {survivors} of them right:"
        )?;
        for (why, count) in &self.survivors {
            writeln!(f, "{count:6} {why:?}")?;
        }
        Ok(())
    }
}

impl Summary {
    fn of(worlds: impl IntoIterator<Item = Rank>, effort: Effort) -> Summary {
        let mut summary = Summary {
            effort,
            calls: 0,
            mutants: 0,
            survivors: BTreeMap::new(),
            wrong: Vec::new(),
            executed: HashSet::new(),
        };
        for p in worlds {
            calls(p).iter().for_each(|call| summary.add(call));
        }
        summary
    }

    /// Judges all mutants of one call.
    fn add(&mut self, call: &Call) {
        let programs = call.programs();
        verify(&programs).unwrap_or_else(|flaw| panic!("{call}: {flaw}"));
        let unrolled = unrolled(&programs);
        let before = self.mutants;
        for mutant in mutants(&programs) {
            self.mutants += 1;
            let judged = match verify(&mutant.programs) {
                Ok(_) => self.survivor(&mutant, &unrolled),
                Err(flaw) => refused(&mutant, &unrolled, &flaw),
            };
            if let Err(what) = judged {
                self.wrong.push(format!("{call}, {mutant}: {what}"));
            }
        }
        self.calls += 1;
        assert!(self.mutants > before, "{call} has no mutants");
    }

    /// Counts a mutant that is verified; `Err` if it is wrong all the same, or nobody knows why it is right.
    fn survivor(&mut self, mutant: &Mutant, unrolled: &[Arc<Program>]) -> Result<(), String> {
        let why = explain(mutant, unrolled).ok_or("verified, and nobody knows why")?;
        *self.survivors.entry(why).or_default() += 1;
        if unrolled[0].collective == Collective::Barrier {
            return match leaves_early(&mutant.programs) {
                Some((rank, absent)) => Err(format!(
                    "verified, but rank {rank} leaves without rank {absent}"
                )),
                None => Ok(()),
            };
        }
        // Many calls have the programs of another one.
        let numbers = |p: &Arc<Program>| Program {
            algorithm: String::new(),
            commutative: true,
            ..(**p).clone()
        };
        if self
            .executed
            .insert(mutant.programs.iter().map(numbers).collect())
        {
            let seeds = match why {
                Why::ImpliedWait => self.effort.waits,
                _ => self.effort.others,
            };
            if let Some((way, end)) = attack(&mutant.programs, seeds) {
                return Err(format!("verified, but {end:?} with {way:?}"));
            }
        }
        Ok(())
    }

    /// Prints the summary, and fails if a mutant was not as it should be.
    fn conclude(&self) {
        println!("{self}");
        let few: Vec<&str> = self.wrong.iter().take(10).map(String::as_str).collect();
        assert!(
            few.is_empty(),
            "{} mutants:\n{}",
            self.wrong.len(),
            few.join("\n")
        );
    }
}

/// `Err` unless a mutant is refused as it should be.
fn refused(mutant: &Mutant, unrolled: &[Arc<Program>], flaw: &Flaw) -> Result<(), String> {
    if flaw.place().is_none() || flaw.rank().is_none() {
        return Err(format!("refused without a step: {flaw}"));
    }
    // The step that should have waited is to blame (in a barrier: whoever leaves early).
    let barrier = unrolled[0].collective == Collective::Barrier;
    let waits = matches!(mutant.change, Change::DropWait(_) | Change::WeakenWait(_));
    if waits && !barrier && flaw.rank() != Some(mutant.place.rank) {
        return Err(format!("the blame is on another rank: {flaw}"));
    }
    // No false alarm: these reasons hold both ways.
    if matches!(flaw, Flaw::LeavesEarly { .. }) && leaves_early(&mutant.programs).is_none() {
        return Err(format!("refused, but nobody can leave early: {flaw}"));
    }
    match explain(mutant, unrolled) {
        Some(why @ (Why::ImpliedWait | Why::DoneTwice)) => {
            Err(format!("refused in spite of {why:?}: {flaw}"))
        }
        _ => Ok(()),
    }
}

#[test]
fn mutants_of_2_to_4_ranks_are_refused_or_right_for_a_known_reason() {
    let summary = Summary::of(2..=4, QUICK);
    summary.conclude();
    let survivors: usize = summary.survivors.values().sum();
    assert!(summary.mutants > 20_000, "{summary}");
    assert!(survivors * 20 < summary.mutants, "{summary}");
}

#[test]
#[ignore = "minutes; cargo test --release -p unisono-select --test mutants -- --ignored --nocapture"]
fn mutants_of_2_to_6_ranks_withstand_many_orders_of_events() {
    Summary::of(2..=6, THOROUGH).conclude();
}

/// Whether the step copies blocks onto themselves: from the input to the output, in place nothing at all.
fn copies_onto_itself(mutant: &Mutant, unrolled: &[Arc<Program>]) -> bool {
    let place = &mutant.place;
    let lane = &unrolled[place.rank as usize].lanes[place.lane as usize];
    let run = lane.find(place.step).map(|(run, _)| run);
    run.is_some_and(|r| r.kind == Kind::Copy && r.sources[0].span == r.target.span)
}

#[test]
fn a_refused_missing_wait_gives_a_wrong_result_for_some_order_of_events() {
    let (mut wrong, mut spared) = (0, 0);
    for call in calls(3) {
        let programs = call.programs();
        let unrolled = unrolled(&programs);
        for mutant in mutants(&programs) {
            if let Change::DropWait(_) = mutant.change
                && let Err(Flaw::Race { .. }) = verify(&mutant.programs)
            {
                // A block that is overwritten by what it holds: a race, but on numbers none that shows.
                if copies_onto_itself(&mutant, &unrolled) {
                    spared += 1;
                    continue;
                }
                wrong += 1;
                assert_ne!(
                    attack(&mutant.programs, THOROUGH.waits),
                    None,
                    "{call}, {mutant}"
                );
            }
        }
    }
    println!("{wrong} missing waits give wrong results, {spared} rewrite what is there");
    assert!(wrong > 500 && spared * 5 < wrong, "{wrong}, {spared}");
}
