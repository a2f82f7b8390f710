//! Programs of the tree algorithms, against the closed forms.

#[path = "../../checks.rs"]
mod checks;

use std::sync::Arc;

use checks::{blocks_sent, in_every_world, log2, runs};
use unisono_core::{Collective, Rank, Topology};
use unisono_program::{Algorithm, Context, Registry, Unsupported, build};
use unisono_tree::{Tree, TreeCentre};

#[test]
fn the_binomial_tree_is_log_p_deep() {
    let one_way = [
        Collective::Broadcast,
        Collective::Reduce,
        Collective::Gather,
        Collective::Scatter,
    ];
    in_every_world(&Tree, &one_way, |world| {
        assert_eq!(world.proof.messages, world.p - 1, "one over each edge");
        world.takes_rounds(log2(world.p));
    });
    let both_ways = [Collective::AllReduce, Collective::Barrier];
    in_every_world(&Tree, &both_ways, |world| {
        assert_eq!(world.proof.messages, 2 * (world.p - 1));
        world.takes_rounds(2 * log2(world.p));
    });
}

#[test]
fn the_root_of_gather_and_scatter_moves_each_row_once() {
    in_every_world(&Tree, &[Collective::Scatter], |world| {
        assert_eq!(
            blocks_sent(&world.programs[world.root as usize]),
            world.p - 1
        );
    });
}

#[test]
fn a_tree_program_is_logarithmic() {
    for collective in [
        Collective::AllReduce,
        Collective::Gather,
        Collective::Barrier,
    ] {
        let program = build(&Tree, &Context::full(collective, 0, 1000)).unwrap();
        assert!(runs(&program) <= 30, "{collective}: {}", runs(&program));
    }
}

#[test]
fn an_ordered_reduction_goes_to_rank_0_first() {
    let cx = Context::full(Collective::Reduce, 0, 6).with_root(4);
    assert_eq!(checks::verified(&Tree, &cx).messages, 5);
    let ordered = cx.with_commutative(false);
    assert_eq!(checks::verified(&Tree, &ordered).messages, 6);
}

#[test]
fn small_worlds_are_proved() {
    checks::verify_small_worlds(&Tree, &Collective::ALL);
    checks::verify_small_worlds(&TreeCentre, &Collective::ALL);
}

fn shape(name: &str, p: Rank) -> Arc<Topology> {
    let links: Vec<(Rank, Rank)> = match name {
        "line" => (1..p).map(|r| (r - 1, r)).collect(),
        "shuffled line" => {
            let at = |i: Rank| {
                if i.is_multiple_of(2) {
                    i / 2
                } else {
                    p - 1 - i / 2
                }
            };
            (1..p).map(|i| (at(i - 1), at(i))).collect()
        }
        "star" => (0..p).filter(|&r| r != p / 2).map(|r| (p / 2, r)).collect(),
        "ring" => (0..p).map(|r| (r, (r + 1) % p)).collect(),
        "grid" => {
            let right = (0..p).filter(|r| r % 4 != 3).map(|r| (r, r + 1));
            right.chain((0..p).map(|r| (r, r + 4))).collect()
        }
        _ => (1..p).map(|r| (r, (r - 1) / 2)).collect(),
    };
    Arc::new(Topology::from_links(p, links))
}

#[test]
fn a_tree_is_found_in_any_connected_graph() {
    for name in [
        "line",
        "shuffled line",
        "star",
        "ring",
        "grid",
        "binary tree",
    ] {
        for p in [1, 2, 3, 5, 8, 13] {
            let topology = shape(name, p);
            for collective in Collective::ALL {
                checks::verify_over(&TreeCentre, collective, &topology);
            }
        }
    }
}

#[test]
fn any_connected_graph_reduces_in_rank_order() {
    for name in ["line", "shuffled line", "star", "grid"] {
        for p in [2, 3, 5, 8] {
            for collective in [
                Collective::AllReduce,
                Collective::Reduce,
                Collective::ReduceScatter,
            ] {
                for average in [false, true] {
                    let cx = Context::new(collective, 0, shape(name, p)).with_root(p / 2);
                    let cx = cx.with_commutative(false).with_average(average);
                    checks::verified(&TreeCentre, &cx);
                }
            }
        }
    }
}

#[test]
fn the_centre_halves_the_depth_of_a_line() {
    for p in 2..=33 {
        let cx = Context::new(Collective::AllReduce, 0, shape("shuffled line", p));
        let proof = checks::verified(&TreeCentre, &cx);
        assert_eq!(proof.depth, 2 * u64::from(p / 2), "{p}");
    }
}

#[test]
fn rows_flow_along_a_line_without_gaps() {
    for p in 2..=33 {
        for collective in [Collective::Gather, Collective::Scatter] {
            let cx = Context::new(collective, 0, shape("line", p));
            let proof = checks::verified(&TreeCentre, &cx);
            assert_eq!(proof.rounds, u64::from(p) - 1, "{collective} {p}");
        }
        // Each link carries every row once: those of one side forward, those of the other backward.
        for collective in [Collective::AllGather, Collective::ReduceScatter] {
            let cx = Context::new(collective, 0, shape("line", p));
            let proof = checks::verified(&TreeCentre, &cx);
            assert_eq!(proof.messages, u64::from(p) * (u64::from(p) - 1));
        }
    }
}

#[test]
fn every_world_has_a_star() {
    in_every_world(&TreeCentre, &Collective::ALL, |world| {
        if world.collective.is_rooted() {
            world.is_deep(u64::from(world.p > 1));
        } else if world.collective != Collective::AllToAll {
            let tables = [Collective::AllGather, Collective::ReduceScatter];
            let up_and_down = if tables.contains(&world.collective) {
                world.p - 1
            } else {
                2
            };
            world.is_deep(if world.p > 1 { up_and_down.min(2) } else { 0 });
        }
    });
}

#[test]
fn what_is_missing_is_named() {
    let two_pairs = Arc::new(Topology::from_links(5, [(0, 1), (2, 3)]));
    let cx = Context::new(Collective::Broadcast, 0, two_pairs);
    assert_eq!(
        TreeCentre.supports(&cx).unwrap_err().to_string(),
        "no link 0-2, 0-4"
    );
    assert_eq!(
        TreeCentre.supports(&cx.at_rank(3)),
        TreeCentre.supports(&cx)
    );
    assert_eq!(
        Tree.supports(&cx).unwrap_err().to_string(),
        "no link 0-2, 0-4"
    );
    let huge = Context::full(Collective::AllGather, 0, 257);
    assert!(matches!(
        TreeCentre.supports(&huge),
        Err(Unsupported::WorldSize { .. })
    ));
}

#[test]
fn both_are_found_by_name() {
    let mut registry = Registry::new();
    unisono_tree::register(&mut registry);
    assert_eq!(
        registry.names().collect::<Vec<_>>(),
        ["tree", "tree-centre"]
    );
}
