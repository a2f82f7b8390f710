//! What `verify` proves, what it says, and what it finds.

mod local;

use std::sync::Arc;

use local::*;
use unisono_core::Collective;
use unisono_program::verify::{Flaw, Share, Spoil, verify};
use unisono_program::{Emit, LaneKind, Program, block, build_all};

fn proven(local: &Local, p: u32) -> unisono_program::verify::Proof {
    verify(&local.programs(p)).unwrap_or_else(|flaw| panic!("{} at {p}: {flaw}", local.name))
}

#[test]
fn textbook_algorithms_are_proved_at_every_world_size() {
    for p in 1..=17 {
        for local in [
            RING,
            ONESHOT,
            CIRCULANT,
            CHAIN,
            WAVES,
            INTERLEAVED,
            DIRECT,
            BARRIER,
            REDUCE,
        ] {
            proven(&local, p);
        }
        if p.is_power_of_two() {
            proven(&DOUBLING, p);
            proven(&HALVING, p);
        }
    }
}

#[test]
fn channels_and_rings_in_another_order_are_proved_too() {
    let order = unisono_core::RingOrder::from_order(vec![0, 3, 1, 4, 2]);
    let params = unisono_program::Params::default().with_channels(3);
    for local in [RING, CIRCULANT, ONESHOT] {
        for average in [false, true] {
            let cx = local.context(5).with_params(params).with_average(average);
            let proof = verify(&build_all(&local, &cx.with_ring(order.clone())).unwrap()).unwrap();
            assert_eq!(proof.sent, proven(&local, 5).sent);
        }
    }
}

#[test]
fn strands_of_one_fifo_are_merged_alike_on_both_ends() {
    let programs = INTERLEAVED.programs(3);
    assert_eq!(programs[1].lanes.iter().filter(|l| l.steps > 0).count(), 4);
    // One end swaps the two: at one segment per step the order is the same, at two it is not.
    let mut one_sided = programs;
    let lanes = &mut Arc::make_mut(&mut one_sided[2]).lanes;
    for (lane, stage) in lanes.iter_mut().zip([7, 9]) {
        lane.runs[0].stage.as_mut().unwrap().0.offset = stage;
    }
    let flaw = verify(&one_sided).unwrap_err();
    assert!(
        flaw.to_string()
            .contains("depends on the number of segments"),
        "{flaw}"
    );
}

#[test]
fn a_ring_moves_the_least_and_takes_two_rounds_per_neighbour() {
    for p in [2, 5, 16] {
        let proof = proven(&RING, p);
        assert_eq!(proof.sent, proof.sent_bound);
        assert_eq!(proof.received, Share::new(2 * (u64::from(p) - 1), p.into()));
        assert_eq!(
            (proof.rounds, proof.depth),
            (2 * (u64::from(p) - 1), 2 * (u64::from(p) - 1))
        );
    }
}

#[test]
fn logarithmic_algorithms_meet_the_bound_of_one_port() {
    for p in [2, 4, 8, 16] {
        let proof = proven(&DOUBLING, p);
        assert_eq!(
            (proof.rounds, proof.depth),
            (proof.rounds_bound, proof.rounds_bound)
        );
        assert_eq!(proof.sent, Share::new(proof.rounds, 1));
        assert_eq!(proven(&HALVING, p).sent, proof.sent_bound);
    }
    for p in 2..=17 {
        assert_eq!(proven(&BARRIER, p).rounds, proven(&BARRIER, p).rounds_bound);
        let proof = proven(&CIRCULANT, p);
        assert_eq!(
            (proof.rounds, proof.sent),
            (2 * proof.rounds_bound, proof.sent_bound)
        );
    }
}

#[test]
fn a_mesh_needs_one_round_of_all_ports_or_one_round_per_peer() {
    let proof = proven(&ONESHOT, 6);
    assert_eq!((proof.depth, proof.depth_bound, proof.rounds), (1, 1, 5));
    assert_eq!(
        proof.to_string(),
        "\
all_reduce oneshot on 6 ranks: verified
  sent, in vectors       5 (bound 5/3)
  received, in vectors   5 (bound 5/3)
  busiest link           1 on 0 -> 1
  rounds, one port       5 (bound 3)
  rounds, all ports      1 (bound 1)
  messages               30 in 66 steps"
    );
}

#[test]
fn rank_order_is_proved_where_the_operator_does_not_commute() {
    let ordered = |local: &Local| {
        let cx = local.context(4).with_commutative(false);
        verify(&build_all(local, &cx).unwrap())
    };
    ordered(&ONESHOT).unwrap();
    let Err(Flaw::Spoiled {
        place,
        why: Spoil::OutOfOrder { left, right },
        ..
    }) = ordered(&RING)
    else {
        panic!("a ring changes the order of operands")
    };
    assert_eq!((left, right, place.step), (1, 0, 0));
}

#[test]
fn an_average_is_divided_once() {
    for local in [RING, ONESHOT, CIRCULANT] {
        let average = build_all(&local, &local.context(5).with_average(true)).unwrap();
        verify(&average).unwrap();
        // Divided programs for an undivided call, and the other way round.
        let flip = |programs: Vec<Arc<Program>>| -> Vec<Arc<Program>> {
            programs
                .into_iter()
                .map(|p| {
                    Arc::new(Program {
                        average: !p.average,
                        ..(*p).clone()
                    })
                })
                .collect()
        };
        for wrong in [flip(average), flip(local.programs(5))] {
            assert!(matches!(
                verify(&wrong),
                Err(Flaw::WrongResult { rank: 0, .. })
            ));
        }
    }
}

/// The flaw of an algorithm given as a function.
fn flaw(
    collective: Collective,
    p: u32,
    emit: fn(&unisono_program::Context, &mut dyn Emit),
) -> Flaw {
    let local = Local {
        name: "wrong",
        collective,
        blocks: |p| p,
        emit,
    };
    verify(&local.programs(p)).unwrap_err()
}

#[test]
fn a_message_nobody_receives_is_named() {
    let flaw = flaw(Collective::Broadcast, 2, |cx, b| {
        if cx.rank() == 0 {
            b.send(1, block(0));
            b.send(1, block(1));
            b.send(1, block(0));
        } else {
            b.recv(0, block(0));
            b.recv(0, block(1));
        }
    });
    assert_eq!(
        flaw.to_string(),
        "0 sends 3 messages to 1 on channel 0, but 2 are received; without its other end: rank 0 lane 0 (to 1) step 2: send [0]"
    );
}

#[test]
fn blocks_that_differ_in_size_for_some_count_do_not_match() {
    let flaw = flaw(Collective::Broadcast, 2, |cx, b| {
        for i in 0..2 {
            if cx.rank() == 0 {
                b.send(1, block(i));
            } else {
                b.recv(0, block(1 - i));
            }
        }
    });
    let Flaw::Mismatch {
        number: 0,
        send,
        recv,
        ..
    } = flaw
    else {
        panic!("{flaw}")
    };
    assert_eq!(
        (send.what.as_str(), recv.what.as_str()),
        ("send [0]", "recv [1]")
    );
}

#[test]
fn a_contribution_counted_twice_is_named_where_it_happens() {
    let flaw = flaw(Collective::AllReduce, 2, |cx, b| {
        let peer = 1 - cx.rank();
        for i in 0..2 {
            b.send(peer, block(i));
            b.recv_reduce(peer, block(i));
            b.send(peer, block(i));
            b.recv_reduce(peer, block(i));
        }
    });
    let Flaw::Spoiled {
        place,
        why: Spoil::Twice { rank: 0 },
        rank: 0,
        ..
    } = flaw
    else {
        panic!("{flaw}")
    };
    assert_eq!((place.rank, place.step), (0, 1));
}

#[test]
fn a_missing_contribution_is_named() {
    let flaw = flaw(Collective::Reduce, 3, |cx, b| match cx.rank() {
        0 => b.recv_reduce(1, block(0)),
        1 => b.send(0, block(0)),
        _ => {}
    });
    assert_eq!(
        flaw.to_string(),
        "rank 0: block 0 of the output holds block 0 of rank(s) 0..2 instead of block 0 of rank(s) 0..3; last written by rank 0 lane 0 (from 1) step 0: recv_reduce [0]"
    );
}

#[test]
fn a_rank_that_leaves_a_barrier_early_is_named() {
    let flaw = flaw(Collective::Barrier, 3, |cx, b| {
        b.sync_to((cx.rank() + 1) % 3);
        b.sync_from((cx.rank() + 2) % 3);
    });
    assert!(
        matches!(
            flaw,
            Flaw::LeavesEarly {
                rank: 0,
                absent: 1,
                ..
            }
        ),
        "{flaw}"
    );
}

#[test]
fn steps_in_a_circle_are_named() {
    let flaw = flaw(Collective::AllReduce, 2, |cx, b| {
        b.recv_reduce(1 - cx.rank(), block(0));
        b.send(1 - cx.rank(), block(0));
    });
    let Flaw::Cycle { places } = flaw else {
        panic!("{flaw}")
    };
    let ranks: std::collections::BTreeSet<_> = places.iter().map(|p| p.rank).collect();
    assert_eq!((places.len(), ranks.len()), (4, 2));
}

#[test]
fn lanes_that_no_executor_could_use_are_refused() {
    let broken = |change: fn(&mut Program)| {
        let mut programs = RING.programs(3);
        change(Arc::make_mut(&mut programs[1]));
        verify(&programs).unwrap_err()
    };
    let flaw = broken(|p| p.lanes[0].runs[1].waits[0].step = 40);
    assert!(
        matches!(
            flaw,
            Flaw::WaitOutOfRange {
                lane: 1,
                step: 40,
                ..
            }
        ),
        "{flaw}"
    );
    let flaw = broken(|p| {
        let wait = p.lanes[0].runs[1].waits[0];
        p.lanes[0].runs[1].waits.push(wait);
    });
    assert!(matches!(flaw, Flaw::TwoWaits { lane: 1, .. }), "{flaw}");
    let flaw = broken(|p| p.lanes[0].runs[0].target.span.first = 77);
    assert!(
        matches!(flaw, Flaw::OutOfBounds { first: 77, .. }),
        "{flaw}"
    );
    let flaw = broken(|p| {
        p.lanes[0].kind = LaneKind::Send {
            peer: 1,
            channel: 0,
        }
    });
    assert!(
        matches!(
            flaw,
            Flaw::Lane {
                rank: 1,
                lane: 0,
                ..
            }
        ),
        "{flaw}"
    );
    let flaw = broken(|p| p.blocks = 4);
    assert!(
        matches!(
            flaw,
            Flaw::Disagree {
                rank: 1,
                field: "blocks",
                ..
            }
        ),
        "{flaw}"
    );
}
