//! What a report says beside the total.

mod common;

use common::{all_reduce, chain, mesh, ring};
use unisono_core::{Collective, DType};
use unisono_evaluator::{Call, EvaluateError, LinkCost, Links, evaluate};
use unisono_program::{Context, Emit, Kind, block, build_all};

fn links() -> Links {
    Links::uniform(1_000, 1_000_000_000)
}

#[test]
fn a_ring_moves_the_minimum_of_bytes_over_every_link() {
    for p in 2..=33u64 {
        let count = 7919;
        for segments in [1, 3] {
            let call = Call::new(count, DType::BF16).with_segments(segments);
            let report = evaluate(&all_reduce(p as u32, ring), &call, &links()).unwrap();
            assert_eq!(report.links.len() as u64, p);
            assert_eq!(report.bytes(), 2 * (p - 1) * count * 2, "{p} ranks");
            let least = 2 * (p - 1) * (count / p) * 2;
            for link in &report.links {
                assert_eq!(u64::from(link.to), (u64::from(link.from) + 1) % p);
                assert!(
                    link.bytes >= least && link.bytes <= least + 4 * (p - 1),
                    "{link}"
                );
            }
            assert_eq!(report.steps, 2 * p * 2 * (p - 1) * segments);
        }
    }
}

#[test]
fn the_slower_link_is_the_bottleneck_and_the_path_goes_over_it() {
    let slow = LinkCost {
        alpha_ns: 1_000,
        beta: 100_000_000,
    };
    let call = Call::new(80_000, DType::F32);
    let fast = evaluate(&all_reduce(8, ring), &call, &links()).unwrap();
    let report = evaluate(&all_reduce(8, ring), &call, &links().with_link(5, 6, slow)).unwrap();
    let bottleneck = report.bottleneck.unwrap();
    assert_eq!((bottleneck.from, bottleneck.to), (5, 6));
    assert!(report.total_ps > fast.total_ps);
    assert!(bottleneck.busy_ps <= report.total_ps);
    // All 14 messages pass the slow link one after the other.
    let path = report.path.unwrap();
    let over = path.iter().filter(|h| h.rank == 5 && h.lane == 0).count();
    assert_eq!(over, 14, "{path:?}");
}

#[test]
fn the_path_of_a_ring_follows_a_block_around() {
    let report = evaluate(&all_reduce(5, ring), &Call::new(500, DType::F32), &links()).unwrap();
    let path = report.path.unwrap();
    assert_eq!(
        path.len(),
        2 * 8,
        "a send and a receive in each of 8 rounds"
    );
    assert!(path.is_sorted_by_key(|h| h.done_ps));
    assert_eq!(path.last().unwrap().done_ps, report.total_ps);
    for pair in path.chunks(2) {
        assert_eq!(pair[1].rank, (pair[0].rank + 1) % 5);
        assert_eq!(pair[0].step, pair[1].step);
    }
}

#[test]
fn the_path_of_a_narrow_window_goes_back_to_the_receiver() {
    let call = Call::new(200, DType::F32).with_window(1);
    let report = evaluate(&all_reduce(2, chain), &call, &links()).unwrap();
    let ranks: Vec<_> = report.path.unwrap().iter().map(|h| h.rank).collect();
    assert_eq!(ranks, [0, 1, 0, 1]);
}

#[test]
fn recording_the_path_changes_no_time() {
    for segments in [1, 2, 5] {
        for links in [
            links(),
            links().with_overhead_ns(300).with_reduce_rate(1 << 30),
        ] {
            for window in [None, Some(1), Some(3)] {
                for programs in [all_reduce(7, ring), all_reduce(7, mesh)] {
                    let mut call = Call::new(12_345, DType::F64).with_segments(segments);
                    call.window = window;
                    let with = evaluate(&programs, &call, &links).unwrap();
                    let without = evaluate(&programs, &call.with_path_limit(0), &links).unwrap();
                    assert!(with.path.is_some() && without.path.is_none());
                    let path = with.path.unwrap();
                    assert!(path.is_sorted_by_key(|h| h.done_ps));
                    assert_eq!(path.last().unwrap().done_ps, with.total_ps);
                    assert_eq!((with.time_ps, with.links), (without.time_ps, without.links));
                }
            }
        }
    }
}

#[test]
fn in_place_nothing_is_copied_from_the_input_to_the_output() {
    let copy: fn(&Context, &mut dyn Emit) = |_, b| b.copy(block(0), block(0));
    let links = links().with_reduce_rate(1_000_000_000);
    let price = |call: Call| evaluate(&all_reduce(1, copy), &call, &links).unwrap();
    let call = Call::new(1000, DType::U8);
    assert_eq!(price(call).total_ps, 1_000_000);
    assert_eq!(price(call.in_place()).total_ps, 0);
}

#[test]
fn empty_segments_are_skipped_except_the_first_of_each_fifo() {
    // 4 ranks, 2 elements: two blocks of each ring are empty.
    let report = evaluate(&all_reduce(4, ring), &Call::new(2, DType::U8), &links()).unwrap();
    assert_eq!(report.bytes(), 2 * 3 * 2);
    // 12 messages carry an element; of the 4 first messages two are empty.
    assert_eq!(report.messages, 12 + 2);
}

fn barrier(cx: &Context, b: &mut dyn Emit) {
    let p = cx.size();
    b.sync_to((cx.rank() + 1) % p);
    b.sync_from((cx.rank() + p - 1) % p);
    b.sync_to((cx.rank() + 1) % p);
    b.sync_from((cx.rank() + p - 1) % p);
}

#[test]
fn syncs_cost_a_latency_each() {
    let cx = Context::full(Collective::Barrier, 0, 3);
    let programs = build_all(&common::Of(barrier), &cx).unwrap();
    let report = evaluate(&programs, &Call::new(0, DType::U8), &links()).unwrap();
    assert_eq!((report.total_ps, report.messages), (2_000_000, 6));
}

fn crossed(cx: &Context, b: &mut dyn Emit) {
    b.recv(1 - cx.rank(), unisono_program::block(0));
    b.send(1 - cx.rank(), unisono_program::block(0));
}

#[test]
fn programs_without_an_end_are_named_with_their_lanes() {
    let error = evaluate(&all_reduce(2, crossed), &Call::new(2, DType::U8), &links()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("textbook has no end: stuck: rank 0 lane 0"),
        "{error}"
    );
    let EvaluateError::Stuck { stuck, .. } = error else {
        panic!()
    };
    assert_eq!(stuck.lanes.len(), 4);
    assert!(
        stuck
            .lanes
            .iter()
            .any(|l| l.rank == 1 && l.kind == Kind::Recv)
    );
}

#[test]
fn nothing_costs_nothing() {
    let report = evaluate(&[], &Call::new(5, DType::U8), &links()).unwrap();
    assert_eq!((report.total_ps, report.bottleneck), (0, None));
}
