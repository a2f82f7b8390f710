//! Programs of the ring algorithms, against the closed forms.

#[path = "../../checks.rs"]
mod checks;

use std::sync::Arc;

use checks::{in_every_world, messages_sent, runs};
use unisono_core::{Collective, Topology};
use unisono_program::{Algorithm, Context, Registry, Symmetry, Unsupported, build};
use unisono_ring::{Ring, RingBidir};

const BOTH: [&dyn Algorithm; 2] = [&Ring, &RingBidir];

#[test]
fn ring_all_reduce_moves_the_minimum_bytes() {
    in_every_world(&Ring, &[Collective::AllReduce], |world| {
        world.each_sends(2 * (world.p - 1)); // of m/p each
        world.takes_rounds(2 * (world.p - 1));
        assert_eq!(world.proof.sent, world.proof.sent_bound);
    });
    in_every_world(&RingBidir, &[Collective::AllReduce], |world| {
        world.each_sends(4 * (world.p - 1)); // of m/2p each, half of them each way
        world.is_deep(2 * (world.p - 1));
    });
}

#[test]
fn reduce_scatter_and_all_gather_take_one_pass() {
    let passes = [Collective::ReduceScatter, Collective::AllGather];
    in_every_world(&Ring, &passes, |world| {
        world.each_sends(world.p - 1);
        world.takes_rounds(world.p - 1);
    });
    in_every_world(&RingBidir, &passes, |world| {
        world.each_sends(2 * (world.p - 1));
        world.is_deep(world.p - 1);
    });
}

#[test]
fn chains_send_the_vector_once_over_each_of_p_minus_1_links() {
    let chains = [Collective::Broadcast, Collective::Reduce];
    in_every_world(&Ring, &chains, |world| {
        assert_eq!(world.blocks_sent(), world.p - 1);
        world.takes_rounds(world.p - 1);
    });
    in_every_world(&RingBidir, &chains, |world| {
        assert_eq!(world.blocks_sent(), 2 * (world.p - 1));
        world.is_deep(world.p - 1);
    });
}

#[test]
fn a_chain_relays_the_rows_of_gather_and_scatter_without_gaps() {
    let relays = [Collective::Gather, Collective::Scatter];
    in_every_world(&Ring, &relays, |world| {
        assert_eq!(world.blocks_sent(), world.p * (world.p - 1) / 2);
        world.takes_rounds(world.p - 1);
    });
    in_every_world(&RingBidir, &relays, |world| world.is_deep(world.p - 1));
}

#[test]
fn all_to_all_relays_half_the_table_one_way_and_about_an_eighth_each_way() {
    in_every_world(&Ring, &[Collective::AllToAll], |world| {
        world.each_sends(world.p * (world.p - 1) / 2);
        assert!(
            world
                .programs
                .iter()
                .all(|x| messages_sent(x) <= 2 * (world.p - 1))
        );
    });
    in_every_world(&RingBidir, &[Collective::AllToAll], |world| {
        let (near, far) = (world.p / 2, (world.p - 1) / 2);
        world.each_sends(near * (near + 1) / 2 + far * (far + 1) / 2);
    });
}

#[test]
fn a_barrier_hears_of_everyone_in_p_minus_1_rounds_or_half_as_many() {
    in_every_world(&Ring, &[Collective::Barrier], |world| {
        world.takes_rounds(world.p - 1)
    });
    in_every_world(&RingBidir, &[Collective::Barrier], |world| {
        world.is_deep(world.p / 2)
    });
}

#[test]
fn a_ring_program_does_not_grow_with_the_world() {
    for collective in Collective::ALL {
        for p in [2, 3, 17, 65, 1000] {
            let cx = Context::full(collective, 0, p);
            if collective == Collective::AllToAll {
                continue; // a row of the table wraps at a different place in each round
            }
            for r in [0, 1, p / 2, p - 1] {
                let ring = build(&Ring, &cx.at_rank(r)).unwrap();
                assert!(runs(&ring) <= 6, "{collective} {p} {r}: {ring:#?}");
                let bidir = build(&RingBidir, &cx.at_rank(r)).unwrap();
                assert!(
                    p == 2 || runs(&bidir) <= 12,
                    "{collective} {p} {r}: {bidir:#?}"
                );
            }
        }
    }
}

#[test]
fn every_rank_does_the_same_at_another_place() {
    for algorithm in BOTH {
        for collective in [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::Barrier,
        ] {
            checks::assert_rotates(algorithm, collective);
        }
        let rooted = Context::full(Collective::Broadcast, 0, 4);
        assert_eq!(algorithm.symmetry(&rooted), Symmetry::None);
    }
}

#[test]
fn small_worlds_are_proved() {
    for algorithm in BOTH {
        checks::verify_small_worlds(algorithm, &Collective::ALL);
    }
}

#[test]
fn a_ring_of_cables_that_is_not_rank_order_is_proved() {
    let order = [0, 3, 1, 4, 2, 5];
    let links = (0..6).map(|i| (order[i], order[(i + 1) % 6]));
    let topology = Arc::new(Topology::from_links(6, links));
    for algorithm in BOTH {
        for collective in Collective::ALL {
            checks::verify_over(algorithm, collective, &topology);
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let line = Arc::new(Topology::from_links(3, [(0, 1), (1, 2)]));
    let cx = Context::new(Collective::AllReduce, 0, line);
    let why = Ring.supports(&cx).unwrap_err();
    assert!(why.to_string().contains("no link 0-2"), "{why}");
    let ordered = Context::full(Collective::Reduce, 0, 4).with_commutative(false);
    assert_eq!(
        RingBidir.supports(&ordered),
        Err(Unsupported::NotCommutative)
    );
    let huge = Context::full(Collective::AllToAll, 0, 257);
    assert!(matches!(
        Ring.supports(&huge),
        Err(Unsupported::WorldSize { size: 257, .. })
    ));
}

#[test]
fn both_are_found_by_name() {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    assert_eq!(registry.names().collect::<Vec<_>>(), ["ring", "ring-bidir"]);
}
