//! Programs of the mesh algorithms, against the closed forms.

#[path = "../../checks.rs"]
mod checks;

use std::sync::Arc;

use checks::{blocks_sent, in_every_world, messages_sent};
use unisono_core::{Collective, Topology};
use unisono_mesh::{MeshDirect, MeshOneshot, MeshTwoshot};
use unisono_program::{Algorithm, Context, Kind, LaneKind, Registry, Symmetry, build};

#[test]
fn oneshot_takes_one_round_whatever_the_world() {
    let all = [Collective::AllReduce, Collective::ReduceScatter];
    in_every_world(&MeshOneshot, &all, |world| {
        world.each_sends(world.p - 1);
        world.is_deep(u64::from(world.p > 1));
    });
    in_every_world(&MeshOneshot, &[Collective::Reduce], |world| {
        assert_eq!(world.blocks_sent(), world.p - 1);
        world.is_deep(u64::from(world.p > 1));
    });
}

#[test]
fn oneshot_reduces_once_and_in_rank_order() {
    for (p, average) in [(3, false), (8, false), (2, true)] {
        for r in 0..p {
            let cx = Context::full(Collective::AllReduce, r, p).with_average(average);
            let program = build(&MeshOneshot, &cx).unwrap();
            let local = |l: &&unisono_program::Lane| matches!(l.kind, LaneKind::Local { .. });
            let locals: Vec<_> = program
                .lanes
                .iter()
                .filter(local)
                .flat_map(|l| &l.runs)
                .collect();
            let [reduce] = locals[..] else {
                panic!("{program:#?}")
            };
            assert_eq!(
                (reduce.kind, reduce.count),
                (Kind::Reduce { finish: average }, 1)
            );
            assert_eq!(reduce.sources.len(), p as usize);
            assert!(
                program.is_data(reduce.sources[r as usize].span.first),
                "the own block"
            );
        }
    }
}

#[test]
fn two_ranks_add_in_place() {
    let program = build(&MeshOneshot, &Context::full(Collective::AllReduce, 0, 2)).unwrap();
    assert_eq!(program.steps(), 2);
    assert!(program.slots.is_empty());
    let ordered = Context::full(Collective::AllReduce, 0, 2).with_commutative(false);
    assert_eq!(build(&MeshOneshot, &ordered).unwrap().slots.len(), 1);
}

#[test]
fn twoshot_all_reduce_moves_the_minimum_bytes_in_two_rounds() {
    in_every_world(&MeshTwoshot, &[Collective::AllReduce], |world| {
        world.each_sends(2 * (world.p - 1)); // of m/p each
        world.is_deep(if world.p > 1 { 2 } else { 0 });
        assert_eq!(world.proof.sent, world.proof.sent_bound);
    });
    let halves = [Collective::ReduceScatter, Collective::AllGather];
    in_every_world(&MeshTwoshot, &halves, |world| {
        world.each_sends(world.p - 1);
        world.is_deep(u64::from(world.p > 1));
    });
}

#[test]
fn twoshot_broadcast_sends_the_vector_out_of_the_root_once() {
    in_every_world(&MeshTwoshot, &[Collective::Broadcast], |world| {
        let p = world.p;
        for program in world.programs {
            let root = program.rank == world.root;
            let blocks = if root { p - 1 } else { p.saturating_sub(2) };
            assert_eq!(blocks_sent(program), blocks, "of m/(p-1) each");
        }
        world.is_deep([0, 0, 1, 2][p.min(3) as usize]);
        assert_eq!(world.proof.sent, world.proof.sent_bound);
    });
}

#[test]
fn twoshot_reduce_hands_every_block_to_the_root() {
    in_every_world(&MeshTwoshot, &[Collective::Reduce], |world| {
        for program in world.programs {
            let handed = u64::from(program.rank != world.root);
            assert_eq!(blocks_sent(program), world.p - 1 + handed, "of m/p each");
        }
        world.is_deep(if world.p > 1 { 2 } else { 0 });
    });
}

#[test]
fn direct_exchanges_take_one_round_and_no_relay() {
    let all = [
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Barrier,
    ];
    in_every_world(&MeshDirect, &all, |world| {
        assert!(
            world
                .programs
                .iter()
                .all(|x| messages_sent(x) == world.p - 1)
        );
        world.is_deep(u64::from(world.p > 1));
        world.takes_rounds(world.p - 1); // with one port; rotation leaves no gap
    });
    let rooted = [
        Collective::Broadcast,
        Collective::Gather,
        Collective::Scatter,
    ];
    in_every_world(&MeshDirect, &rooted, |world| {
        assert_eq!(world.blocks_sent(), world.p - 1);
        world.is_deep(u64::from(world.p > 1));
    });
}

#[test]
fn peers_are_visited_in_rotation() {
    let program = build(&MeshDirect, &Context::full(Collective::AllToAll, 2, 4)).unwrap();
    let to = |l: &unisono_program::Lane| match l.kind {
        LaneKind::Send { peer, .. } => Some(peer),
        _ => None,
    };
    assert_eq!(
        program.lanes.iter().filter_map(to).collect::<Vec<_>>(),
        [3, 0, 1]
    );
}

#[test]
fn a_star_of_links_is_enough_around_the_root() {
    let star = Arc::new(Topology::from_links(4, [(1, 0), (1, 2), (1, 3)]));
    for collective in [
        Collective::Broadcast,
        Collective::Gather,
        Collective::Scatter,
    ] {
        let cx = Context::new(collective, 0, star.clone());
        checks::verified(&MeshDirect, &cx.clone().with_root(1));
        let why = MeshDirect.supports(&cx).unwrap_err();
        assert_eq!(why.to_string(), "no link 0-2, 0-3");
    }
    let cx = Context::new(Collective::Reduce, 0, star.clone()).with_root(1);
    checks::verified(&MeshOneshot, &cx);
    let why = MeshTwoshot.supports(&cx).unwrap_err();
    assert_eq!(why.to_string(), "no link 0-2, 0-3, 2-3");
}

#[test]
fn every_rank_does_the_same_at_another_place() {
    checks::assert_rotates(&MeshDirect, Collective::AllGather);
    checks::assert_rotates(&MeshDirect, Collective::Barrier);
    checks::assert_rotates(&MeshTwoshot, Collective::AllGather);
    let ordered = Context::full(Collective::AllReduce, 0, 4);
    assert_eq!(
        MeshTwoshot.symmetry(&ordered),
        Symmetry::None,
        "operands are in rank order"
    );
}

#[test]
fn small_worlds_are_proved_whether_or_not_operands_commute() {
    for algorithm in [&MeshOneshot as &dyn Algorithm, &MeshTwoshot, &MeshDirect] {
        checks::verify_small_worlds(algorithm, &Collective::ALL);
    }
}

#[test]
fn all_three_are_found_by_name() {
    let mut registry = Registry::new();
    unisono_mesh::register(&mut registry);
    let names: Vec<_> = registry.names().collect();
    assert_eq!(names, ["mesh-direct", "mesh-oneshot", "mesh-twoshot"]);
}
