//! What the builder makes of textbook loops.

use unisono_core::Collective;
use unisono_program::{
    Algorithm, Context, Emit, Kind, LaneKind, Location, Program, Unsupported, block, build,
    build_all, scratch,
};

struct Ring;

impl Algorithm for Ring {
    fn name(&self) -> &str {
        "ring"
    }
    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::AllReduce])
    }
    fn symmetry(&self, _: &Context) -> unisono_program::Symmetry {
        unisono_program::Symmetry::Rotation
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (ring, p) = (cx.ring(), i64::from(cx.size()));
        let (me, left, right) = (ring.position(), ring.left(), ring.right());
        for k in 0..p - 1 {
            b.send(right, block(me - k));
            b.recv_reduce(left, block(me - k - 1));
        }
        for k in 0..p - 1 {
            b.send(right, block(me + 1 - k));
            b.recv(left, block(me - k));
        }
    }
}

fn ring(p: u32, average: bool) -> Program {
    build(
        &Ring,
        &Context::full(Collective::AllReduce, 0, p).with_average(average),
    )
    .unwrap()
}

#[test]
fn a_ring_is_four_runs_whatever_the_world() {
    for p in [5, 50, 500] {
        let program = ring(p, false);
        let runs: Vec<_> = program.lanes.iter().map(|l| l.runs.len()).collect();
        assert_eq!(runs, [2, 2], "{p}: {program:#?}");
    }
}

#[test]
fn the_first_send_reads_the_input_and_the_rest_wait_for_one_receive_each() {
    let program = ring(4, false);
    let send = &program.lanes[0];
    assert!(matches!(
        send.kind,
        LaneKind::Send {
            peer: 1,
            channel: 0
        }
    ));
    assert_eq!(send.runs[0].target.location, Location::Input);
    assert!(send.runs[0].waits.is_empty());
    let rest = &send.runs[1];
    assert_eq!((rest.count, rest.target.stride), (5, -1));
    let [wait] = rest.waits[..] else {
        panic!("{rest:?}")
    };
    assert_eq!(
        (wait.lane, wait.step, wait.stride, wait.whole),
        (1, 0, 1, false)
    );
}

#[test]
fn a_second_receive_into_a_block_waits_for_the_send_that_still_reads_it() {
    let program = ring(4, false);
    let gather = &program.lanes[1].runs[1];
    assert_eq!(gather.kind, Kind::Recv);
    // Block me - k was sent at step k.
    let [wait] = gather.waits[..] else {
        panic!("{gather:?}")
    };
    assert_eq!((wait.lane, wait.step, wait.stride), (0, 0, 1));
}

#[test]
fn an_average_divides_each_output_block_once_and_last() {
    let program = ring(4, true);
    let local = program
        .lanes
        .iter()
        .find(|l| matches!(l.kind, LaneKind::Local { .. }))
        .unwrap();
    assert_eq!(local.steps, 4);
    assert!(
        local
            .runs
            .iter()
            .all(|r| r.kind == Kind::Reduce { finish: true })
    );
}

#[test]
fn a_rotated_program_is_the_emitted_one() {
    for p in [2, 3, 7] {
        let cx = Context::full(Collective::AllReduce, 0, p);
        let first = build(&Ring, &cx).unwrap();
        for r in 0..p {
            let emitted = build(&Ring, &cx.at_rank(r)).unwrap();
            assert_eq!(
                unisono_program::build::rotate(&first, r),
                emitted,
                "{p} {r}"
            );
        }
    }
    assert_eq!(
        build_all(&Ring, &Context::full(Collective::AllReduce, 0, 300))
            .unwrap()
            .len(),
        300
    );
}

struct Forgetful;

impl Algorithm for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        if cx.collective() == Collective::AllReduce {
            b.reduce(block(0), &[block(0), scratch(0)]);
        }
    }
}

#[test]
fn reading_an_empty_scratch_block_and_forgetting_an_output_are_errors() {
    let error = build(&Forgetful, &Context::full(Collective::AllReduce, 0, 2)).unwrap_err();
    assert!(
        error.to_string().contains("reduce reads block 2"),
        "{error}"
    );
    let error = build(&Forgetful, &Context::full(Collective::AllGather, 0, 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 0: block 1 of the output is never written"
    );
}
