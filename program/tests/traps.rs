//! Tempting shortcuts that give wrong sums or hangs, each by name, and that `verify` sees them.

mod local;

use std::sync::Arc;

use local::machine::{End, Way, attack, execute};
use local::*;
use unisono_core::Collective;
use unisono_program::verify::mutate::unroll;
use unisono_program::verify::{Flaw, verify};
use unisono_program::{Context, Emit, Program, Run, Stage, block, build_all, scratch};

/// The programs with every run changed.
fn changed(programs: &[Arc<Program>], change: impl Fn(&Program, &mut Run)) -> Vec<Arc<Program>> {
    let all = |p: &Arc<Program>| {
        let mut out = (**p).clone();
        out.lanes
            .iter_mut()
            .flat_map(|l| &mut l.runs)
            .for_each(|run| change(p, run));
        Arc::new(out)
    };
    programs.iter().map(all).collect()
}

#[test]
fn waiting_for_the_same_segment_everywhere_gives_wrong_sums() {
    let per_segment = |local: &Local, p| {
        changed(&local.programs(p), |_, run| {
            run.waits.iter_mut().for_each(|w| w.whole = false)
        })
    };
    for (local, worlds) in [(CIRCULANT, 4..=9), (HALVING, 4..=8)] {
        for p in worlds.filter(|p: &u32| local.name != HALVING.name || p.is_power_of_two()) {
            assert_eq!(attack(&local.programs(p), 20), None);
            let programs = per_segment(&local, p);
            let wrong = attack(&programs, 200);
            assert!(
                matches!(wrong, Some((_, End::Wrong { .. }))),
                "{} at {p}: {wrong:?}",
                local.name
            );
            let flaw = verify(&programs).unwrap_err();
            assert!(matches!(flaw, Flaw::Race { segments: true, .. }), "{flaw}");
        }
    }
    // Where all steps name single blocks nothing is lost by it.
    verify(&per_segment(&RING, 5)).unwrap();
}

#[test]
fn counters_per_run_let_steps_pass_early_where_strides_mix() {
    // As if each run counted its own steps: a wait for step j of a lane means step j of the run that j is in.
    for p in [3, 5] {
        let programs = RING
            .programs(p)
            .iter()
            .map(|p| Arc::new(unroll(p)))
            .collect::<Vec<_>>();
        let runs = RING.programs(p);
        let per_run = changed(&programs, |p, run| {
            for wait in &mut run.waits {
                let lane = &runs[p.rank as usize].lanes[wait.lane as usize];
                let (counted, _) = lane.find(wait.step as u64).unwrap();
                wait.step -= counted.start as i64;
            }
        });
        assert!(matches!(
            attack(&per_run, 200),
            Some((_, End::Wrong { .. }))
        ));
        let flaw = verify(&per_run).unwrap_err();
        assert!(
            matches!(
                flaw,
                Flaw::Race {
                    segments: false,
                    ..
                }
            ),
            "{flaw}"
        );
    }
}

#[test]
fn stages_that_fall_along_a_dependency_are_seen() {
    // The waves of a chain, counted from its far end: each rank forwards before it receives.
    const REVERSED: Local = Local {
        name: "reversed",
        collective: Collective::Broadcast,
        blocks: |_| 2,
        emit: |cx, b| {
            let (me, p) = (cx.me(), i64::from(cx.size()));
            for wave in 0..2 {
                let stage = |hop: i64| Stage {
                    hops: wave,
                    offset: p - hop,
                };
                b.stage(stage(me - 1));
                if me > 0 {
                    b.recv((me - 1) as u32, block(wave));
                }
                b.stage(stage(me));
                if me + 1 < p {
                    b.send((me + 1) as u32, block(wave));
                }
            }
        },
    };
    let flaw = verify(&REVERSED.programs(4)).unwrap_err();
    let Flaw::StageFalls { place, earlier } = flaw else {
        panic!("{flaw}")
    };
    assert_eq!((place.rank, place.what.as_str()), (1, "send [0]"));
    assert_eq!(earlier.what, "recv [0]");
    verify(&WAVES.programs(4)).unwrap();
}

#[test]
fn posting_a_receive_only_when_its_waits_are_met_hangs_in_place_exchanges() {
    let way = |room| Way {
        segments: 1,
        in_place: true,
        room,
        seed: 7,
    };
    for local in [RING, DOUBLING] {
        let programs = local.programs(4);
        verify(&programs).unwrap();
        assert_eq!(execute(&programs, 22, way(1)), End::Right);
    }
    // The receive waits for the own send, whose peer waits likewise.
    assert_eq!(execute(&DOUBLING.programs(4), 22, way(0)), End::Hang);
    let swap = Local {
        name: "exchange",
        blocks: |_| 1,
        ..DOUBLING
    };
    assert_eq!(execute(&swap.programs(2), 22, way(0)), End::Hang);
    // A ring has no such exchange, and a mesh receives into scratch.
    assert_eq!(execute(&RING.programs(4), 22, way(0)), End::Right);
    assert_eq!(execute(&ONESHOT.programs(4), 22, way(0)), End::Right);
}

/// A reduction to rank 1, which wants rank 2's blocks before rank 0's; rank 0 echoes one of them over a block it sent.
fn echo(
    cx: &Context,
    b: &mut dyn Emit,
    first: impl Fn(&mut dyn Emit),
    last: impl Fn(&mut dyn Emit),
) {
    match cx.rank() {
        0 => {
            b.send(1, block(0));
            b.send(1, block(1));
            b.recv(2, block(1));
            b.send(2, block(1));
        }
        1 => {
            first(b);
            b.recv_reduce(2, block(1));
            b.recv_reduce(2, block(0));
            last(b);
        }
        _ => {
            b.send(0, block(1));
            b.recv(0, block(1));
            b.send(1, block(1));
            b.send(1, block(0));
        }
    }
}

#[test]
fn a_program_that_needs_more_than_one_segment_of_room_is_refused_with_the_cure() {
    let verified = |emit: fn(&Context, &mut dyn Emit)| {
        let local = Local {
            name: "echo",
            collective: Collective::Reduce,
            blocks: |_| 2,
            emit,
        };
        let programs = build_all(&local, &local.context(3).with_root(1)).unwrap();
        let ends = [1, 2].map(|room| {
            let way = |segments| Way {
                segments,
                in_place: false,
                room,
                seed: 3,
            };
            [1, 2, 3].map(|s| execute(&programs, 8, way(s)))
        });
        (verify(&programs), ends)
    };
    let (flaw, ends) = verified(|cx, b| {
        echo(
            cx,
            b,
            |_| {},
            |b| {
                b.recv_reduce(0, block(0));
                b.recv_reduce(0, block(1));
            },
        );
    });
    let flaw = flaw.unwrap_err();
    let Flaw::Stuck {
        needs_room: true,
        segments: 1,
        place: Some(place),
        ..
    } = &flaw
    else {
        panic!("{flaw}")
    };
    assert_eq!((place.rank, place.what.as_str()), (1, "recv_reduce [0]"));
    assert!(
        flaw.to_string().contains("cure: receive into scratch"),
        "{flaw}"
    );
    // Room for two messages is only enough while each is one segment.
    assert_eq!(ends, [[End::Hang; 3], [End::Right, End::Hang, End::Hang]]);

    let (proof, ends) = verified(|cx, b| {
        echo(
            cx,
            b,
            |b| b.recv(0, scratch(0)),
            |b| {
                b.reduce(block(0), &[block(0), scratch(0)]);
                b.recv_reduce(0, block(1));
            },
        );
    });
    proof.unwrap();
    assert_eq!(ends, [[End::Right; 3]; 2]);
}
