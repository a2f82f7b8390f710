//! Mutants of correct programs must fail `verify`, and those that do not must be right all the same.
//!
//! Survivors are attacked by executing them on numbers in random order (`local::machine`), so that a survivor that is
//! wrong is seen; and those refused for a missing wait are attacked too, to see that the refusal is no false alarm.

mod local;

use std::collections::BTreeMap;
use std::sync::Arc;

use local::machine::attack;
use local::*;
use unisono_core::Collective;
use unisono_program::verify::mutate::{Change, Mutant, mutants};
use unisono_program::verify::{Flaw, verify};
use unisono_program::{Kind, Program, build_all};

/// Why a mutant that verifies does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// A copy of the input, done twice, is the same copy.
    CopiesTwice,
    /// The wait is implied by another wait of the step, or by what had to happen on other ranks in between.
    ImpliedWait,
    /// Neighbouring local steps of one lane on different blocks.
    Independent,
}

fn explain(mutant: &Mutant, programs: &[Arc<Program>]) -> Option<Why> {
    let place = &mutant.place;
    let lane = &programs[place.rank as usize].lanes[place.lane as usize];
    let kind = |step| lane.find(step).map(|(run, _)| run.kind);
    let local = |step| matches!(kind(step), Some(Kind::Reduce { .. } | Kind::Copy));
    match mutant.change {
        Change::Duplicate if kind(place.step) == Some(Kind::Copy) => Some(Why::CopiesTwice),
        Change::DropWait(_) | Change::WeakenWait(_) => Some(Why::ImpliedWait),
        Change::Swap if local(place.step) && local(place.step + 1) => Some(Why::Independent),
        _ => None,
    }
}

/// Verifies all mutants: how many there are, and how many survive for which reason.
fn survivors(programs: &[Arc<Program>]) -> (usize, BTreeMap<Why, usize>) {
    verify(programs).unwrap();
    let barrier = programs[0].collective == Collective::Barrier;
    let (mut all, mut survivors) = (0, BTreeMap::new());
    for mutant in mutants(programs) {
        all += 1;
        let flaw = match verify(&mutant.programs) {
            Err(flaw) => flaw,
            Ok(_) => {
                let wrong = if barrier {
                    None
                } else {
                    attack(&mutant.programs, 12)
                };
                assert_eq!(wrong, None, "{mutant} is wrong but verified");
                let why = explain(&mutant, programs);
                let why = why.unwrap_or_else(|| panic!("{mutant} survives without a reason"));
                *survivors.entry(why).or_default() += 1;
                continue;
            }
        };
        assert!(flaw.place().is_some(), "{mutant}: {flaw} names no step");
        // A missing wait is the fault of the step that should have waited (a barrier fails where it is left).
        if let (Change::DropWait(_) | Change::WeakenWait(_), false) = (mutant.change, barrier) {
            assert_eq!(flaw.rank(), Some(mutant.place.rank), "{mutant}: {flaw}");
        }
    }
    (all, survivors)
}

/// No mutant of these survives.
fn all_fail(local: &Local, worlds: &[u32]) {
    for &p in worlds {
        let (all, survivors) = survivors(&local.programs(p));
        assert!(
            survivors.is_empty() && all >= 5,
            "{} at {p}: {survivors:?}",
            local.name
        );
    }
}

#[test]
fn every_mutant_of_a_ring_fails() {
    all_fail(&RING, &[2, 3, 4, 5]);
}

#[test]
fn every_mutant_of_a_one_shot_mesh_fails() {
    all_fail(&ONESHOT, &[2, 3, 4, 5]);
}

#[test]
fn every_mutant_of_halving_and_doubling_fails() {
    all_fail(&HALVING, &[2, 4]);
}

#[test]
fn every_mutant_of_a_linear_reduction_fails() {
    all_fail(&REDUCE, &[2, 3, 4, 5]);
}

#[test]
fn of_a_chain_and_a_direct_exchange_only_a_second_copy_survives() {
    for p in 2..=5 {
        for (local, copies) in [
            (CHAIN, 1),
            (WAVES, 1),
            (INTERLEAVED, 1),
            (DIRECT, p as usize),
        ] {
            let (_, survivors) = survivors(&local.programs(p));
            assert_eq!(
                survivors,
                [(Why::CopiesTwice, copies)].into(),
                "{} at {p}",
                local.name
            );
        }
    }
}

#[test]
fn of_circulant_and_recursive_doubling_only_implied_waits_survive() {
    for p in [2, 3, 4, 5, 6] {
        let (all, survivors) = survivors(&CIRCULANT.programs(p));
        assert!(
            survivors.keys().all(|&why| why == Why::ImpliedWait),
            "{p}: {survivors:?}"
        );
        assert!(
            survivors.values().sum::<usize>() * 10 < all,
            "{p}: {survivors:?} of {all}"
        );
    }
    // The second reduction waits for the first, but the send that it also waits for has done so.
    let (_, survivors) = survivors(&DOUBLING.programs(4));
    assert_eq!(survivors, [(Why::ImpliedWait, 4)].into());
}

#[test]
fn of_a_barrier_only_waits_survive_that_all_are_heard_without() {
    let (_, two) = survivors(&BARRIER.programs(2));
    assert!(two.is_empty());
    // Two rounds among three: everyone hears both others directly, and no wait is needed.
    let (_, three) = survivors(&BARRIER.programs(3));
    assert_eq!(three, [(Why::ImpliedWait, 6)].into());
    let (_, five) = survivors(&BARRIER.programs(5));
    assert!(five.keys().all(|&why| why == Why::ImpliedWait), "{five:?}");
}

#[test]
fn of_an_average_the_divisions_may_change_places() {
    let average = |local: &Local| {
        survivors(&build_all(local, &local.context(4).with_average(true)).unwrap()).1
    };
    assert!(average(&ONESHOT).is_empty());
    assert_eq!(
        average(&RING),
        [(Why::ImpliedWait, 12), (Why::Independent, 12)].into()
    );
}

#[test]
fn a_refused_missing_wait_gives_a_wrong_sum_for_some_order_of_events() {
    for programs in [
        RING.programs(3),
        ONESHOT.programs(3),
        CIRCULANT.programs(4),
        HALVING.programs(4),
    ] {
        let mut refused = 0;
        for mutant in mutants(&programs) {
            if matches!(mutant.change, Change::DropWait(_))
                && let Err(Flaw::Race { .. }) = verify(&mutant.programs)
            {
                refused += 1;
                assert_ne!(attack(&mutant.programs, 400), None, "{mutant}");
            }
        }
        assert!(refused > 0);
    }
}
