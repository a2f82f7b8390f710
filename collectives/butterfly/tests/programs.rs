//! Programs of the butterfly algorithms, against the closed forms.

#[path = "../../checks.rs"]
mod checks;

use std::sync::Arc;

use checks::{in_every_world, log2, messages_sent, runs};
use unisono_butterfly::{Circulant, Doubling, Halving};
use unisono_core::{Collective, Topology};
use unisono_program::{Algorithm, Context, Registry, Unsupported, build};

#[test]
fn doubling_takes_log_p_rounds_and_two_more_to_fold() {
    let offered = [Collective::AllReduce, Collective::Barrier];
    in_every_world(&Doubling, &offered, |world| {
        let fold = if world.p.is_power_of_two() { 0 } else { 2 };
        world.takes_rounds(u64::from(world.p.ilog2()) + fold);
    });
}

#[test]
fn halving_moves_the_minimum_bytes_in_log_p_rounds() {
    let halves = [Collective::ReduceScatter, Collective::AllGather];
    in_every_world(&Halving, &halves, |world| {
        world.each_sends(world.p - 1);
        world.takes_rounds(log2(world.p));
    });
    in_every_world(&Halving, &[Collective::AllReduce], |world| {
        world.each_sends(2 * (world.p - 1));
        world.takes_rounds(2 * log2(world.p));
    });
}

#[test]
fn circulant_moves_the_minimum_bytes_in_log_p_rounds_at_every_world_size() {
    let halves = [Collective::ReduceScatter, Collective::AllGather];
    in_every_world(&Circulant, &halves, |world| {
        world.each_sends(world.p - 1);
        world.takes_rounds(log2(world.p));
        assert!(
            world
                .programs
                .iter()
                .all(|x| messages_sent(x) == log2(world.p))
        );
    });
    in_every_world(&Circulant, &[Collective::AllReduce], |world| {
        world.each_sends(2 * (world.p - 1));
        world.takes_rounds(2 * log2(world.p));
        assert_eq!(world.proof.sent, world.proof.sent_bound);
    });
}

#[test]
fn a_butterfly_program_is_logarithmic() {
    for algorithm in [&Doubling as &dyn Algorithm, &Halving, &Circulant] {
        let program = build(algorithm, &Context::full(Collective::AllReduce, 5, 1024)).unwrap();
        assert!(
            runs(&program) <= 40,
            "{}: {}",
            algorithm.name(),
            runs(&program)
        );
    }
}

#[test]
fn every_rank_of_the_circulant_does_the_same_at_another_place() {
    for collective in [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
    ] {
        checks::assert_rotates(&Circulant, collective);
    }
}

#[test]
fn small_worlds_are_proved() {
    for algorithm in [&Doubling as &dyn Algorithm, &Halving, &Circulant] {
        checks::verify_small_worlds(algorithm, &Collective::ALL);
    }
}

#[test]
fn only_the_links_used_are_asked_for() {
    // A cube: every pair of ranks that differ in one bit.
    let edges = (0..8).flat_map(|r| [1, 2, 4].map(|d| (r, r ^ d)));
    let cube = Arc::new(Topology::from_links(8, edges));
    checks::verify_over(&Doubling, Collective::AllReduce, &cube);
    checks::verify_over(&Halving, Collective::AllReduce, &cube);
    let why = Circulant
        .supports(&Context::new(Collective::AllReduce, 0, cube))
        .unwrap_err();
    assert!(why.to_string().starts_with("no link 0-6, 0-7"), "{why}");

    let square = Arc::new(Topology::from_links(
        5,
        [(0, 1), (2, 3), (0, 2), (1, 3), (3, 4)],
    ));
    let why = Doubling
        .supports(&Context::new(Collective::AllReduce, 3, square))
        .unwrap_err();
    assert_eq!(why.to_string(), "no link 0-3, 2-4");
}

#[test]
fn the_wrong_world_and_the_wrong_operator_are_refused() {
    let cx = Context::full(Collective::AllReduce, 0, 6);
    let why = Halving.supports(&cx).unwrap_err();
    assert_eq!(
        why.to_string(),
        "needs a power of two, the world has 6 ranks"
    );
    let ordered = cx.with_commutative(false);
    assert_eq!(
        Circulant.supports(&ordered),
        Err(Unsupported::NotCommutative)
    );
    assert_eq!(
        Doubling.supports(&ordered),
        Err(Unsupported::NotCommutative)
    );
    let gather = Context::full(Collective::AllGather, 0, 6).with_commutative(false);
    assert_eq!(Circulant.supports(&gather), Ok(()));
}

#[test]
fn all_three_are_found_by_name() {
    let mut registry = Registry::new();
    unisono_butterfly::register(&mut registry);
    let names: Vec<_> = registry.names().collect();
    assert_eq!(
        names,
        [
            "butterfly-circulant",
            "butterfly-doubling",
            "butterfly-halving"
        ]
    );
}
