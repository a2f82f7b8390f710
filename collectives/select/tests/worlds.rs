//! Every algorithm that is registered, for every call that it supports, is proved in worlds of many sizes.
//!
//! The tests of each algorithm crate compare its programs with closed forms; here nothing is left out: a collective, an
//! operator or a root that an algorithm says it supports is proved, and so is one that it learns to support later.

mod registered;

use std::collections::BTreeSet;

use registered::{Operator, calls, registry};
use unisono_core::{Collective, Rank};
use unisono_program::verify::verify;

fn proved(worlds: impl Iterator<Item = Rank>) {
    for p in worlds {
        for call in calls(p) {
            verify(&call.programs()).unwrap_or_else(|flaw| panic!("{call}: {flaw}"));
        }
    }
}

#[test]
fn every_call_of_every_algorithm_is_proved_up_to_17_ranks() {
    proved(1..=17);
}

#[test]
#[ignore = "minutes; cargo test --release -p unisono-select --test worlds -- --ignored"]
fn every_call_of_every_algorithm_is_proved_up_to_65_ranks() {
    proved(18..=65);
}

#[test]
fn every_algorithm_is_called_and_every_collective_has_one_for_each_operator() {
    for p in 2..=17 {
        let calls = calls(p);
        let called: BTreeSet<&str> = calls.iter().map(|c| c.algorithm.name()).collect();
        for name in registry().names() {
            let halves = name != "butterfly-halving" || p.is_power_of_two();
            assert_eq!(called.contains(name), halves, "{name} p={p}");
        }
        for collective in Collective::ALL {
            let offered: BTreeSet<Operator> = calls
                .iter()
                .filter(|c| c.context.collective() == collective)
                .map(|c| c.operator)
                .collect();
            let wanted = if collective.reduces() { 3 } else { 1 };
            assert_eq!(offered.len(), wanted, "{collective} p={p}: {offered:?}");
        }
    }
}
