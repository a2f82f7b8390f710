//! Simple programs cost what their textbook formula says, to the picosecond where blocks are equal.

mod common;

use common::{all_reduce, all_reduce_over, chain, mesh, ring};
use unisono_core::DType;
use unisono_evaluator::{Call, LinkCost, Links, evaluate};

const ALPHA_NS: u64 = 7_000;
const BETA: u64 = 3_000_000_000;

fn links() -> Links {
    Links::uniform(ALPHA_NS, BETA)
}

/// Latency, and the time of `elements` f32 on a link.
fn costs(elements: u64) -> (u64, u64) {
    let cost = LinkCost {
        alpha_ns: ALPHA_NS,
        beta: BETA,
    };
    (cost.latency_ps(), cost.transfer_ps(elements * 4))
}

#[test]
fn a_ring_costs_two_p_minus_two_rounds_of_a_block() {
    for p in 2..=64 {
        let programs = all_reduce(p, ring);
        for block in [1, 17, 4096] {
            let count = u64::from(p) * block;
            let report = evaluate(&programs, &Call::new(count, DType::F32), &links()).unwrap();
            let (alpha, transfer) = costs(block);
            let expected = 2 * u64::from(p - 1) * (alpha + transfer);
            assert_eq!(report.time_ps, vec![expected; p as usize], "{p} ranks");
        }
    }
}

#[test]
fn a_ring_of_unequal_blocks_lies_between_its_smallest_and_largest() {
    for p in 3..=64 {
        let programs = all_reduce(p, ring);
        let count = u64::from(p) * 1000 + u64::from(p) / 2;
        let report = evaluate(&programs, &Call::new(count, DType::F32), &links()).unwrap();
        let rounds = 2 * u64::from(p - 1);
        let (alpha, small) = costs(1000);
        let (_, large) = costs(1001);
        assert!(report.total_ps > rounds * (alpha + small), "{p} ranks");
        assert!(report.total_ps <= rounds * (alpha + large), "{p} ranks");
    }
}

#[test]
fn segments_hide_latency_until_the_link_is_full() {
    for p in 2..=16 {
        let programs = all_reduce(p, ring);
        for segments in 1..=6 {
            for block in [16 * 60, 16 * 60 * 100] {
                let call = Call::new(u64::from(p) * block, DType::F32).with_segments(segments);
                let report = evaluate(&programs, &call, &links()).unwrap();
                let (alpha, part) = costs(block / segments);
                let rounds = 2 * u64::from(p - 1);
                let latency_bound = rounds * (alpha + part) + (segments - 1) * part;
                let link_bound = rounds * segments * part + alpha;
                assert_eq!(
                    report.total_ps,
                    latency_bound.max(link_bound),
                    "{p} ranks, {segments} segments of {block}"
                );
            }
        }
    }
}

#[test]
fn a_mesh_costs_two_rounds_of_a_block_whatever_its_size() {
    for p in 2..=64 {
        let programs = all_reduce(p, mesh);
        let count = u64::from(p) * 5000;
        let report = evaluate(&programs, &Call::new(count, DType::F32), &links()).unwrap();
        let (alpha, transfer) = costs(5000);
        assert_eq!(report.total_ps, 2 * (alpha + transfer), "{p} ranks");
    }
}

#[test]
fn a_chain_costs_one_message_more_for_each_rank_it_passes() {
    for p in 2..=20 {
        let programs = all_reduce(p, chain);
        let count = u64::from(p) * 64;
        let report = evaluate(&programs, &Call::new(count, DType::F32), &links()).unwrap();
        let (alpha, transfer) = costs(64);
        let p = u64::from(p);
        let expected = p * transfer + (p - 2) * transfer + (p - 1) * alpha;
        assert_eq!(report.total_ps, expected, "{p} ranks");
    }
}

#[test]
fn a_window_of_one_pays_for_every_message_by_itself() {
    // Two ranks: the next message leaves when the last has arrived, so latency is not hidden.
    let programs = all_reduce(2, chain);
    let (alpha, transfer) = costs(64);
    for (window, expected) in [(1, 2 * (alpha + transfer)), (2, alpha + 2 * transfer)] {
        let call = Call::new(128, DType::F32).with_window(window);
        let report = evaluate(&programs, &call, &links()).unwrap();
        assert_eq!(report.total_ps, expected, "window {window}");
    }
    let unbounded = evaluate(&programs, &Call::new(128, DType::F32), &links()).unwrap();
    assert_eq!(unbounded.total_ps, alpha + 2 * transfer);
}

#[test]
fn two_channels_share_the_link_of_their_pair() {
    for p in 2..=9 {
        let block = 64 * 100;
        let call = Call::new(u64::from(p) * block, DType::F32);
        let report = evaluate(&all_reduce_over(p, 2, ring), &call, &links()).unwrap();
        // As two segments do: half a block of each channel in turn.
        let (alpha, half) = costs(block / 2);
        let rounds = 2 * u64::from(p - 1);
        let latency_bound = rounds * (alpha + half) + half;
        let link_bound = rounds * 2 * half + alpha;
        assert_eq!(report.total_ps, latency_bound.max(link_bound), "{p} ranks");
    }
}

#[test]
fn an_exchange_pays_overhead_at_both_ends_and_the_reduction_once() {
    let gamma = 1_000_000_000;
    let links = links().with_overhead_ns(500).with_reduce_rate(gamma);
    let programs = all_reduce(2, ring);
    let report = evaluate(&programs, &Call::new(2000, DType::F32), &links).unwrap();
    let (alpha, transfer) = costs(1000);
    let reduce = 4_000_000;
    assert_eq!(
        report.total_ps,
        2 * (500_000 + transfer + alpha + 500_000) + reduce
    );
}

#[test]
fn the_core_of_a_rank_takes_its_messages_one_by_one() {
    let overhead = 50_000_000;
    for p in 3..=9 {
        let links = Links::uniform(0, 0).with_overhead_ns(overhead / 1000);
        let report = evaluate(&all_reduce(p, mesh), &Call::new(999, DType::F32), &links).unwrap();
        // 2(p - 1) messages out and as many in; nothing else takes time, and no core is ever idle.
        assert_eq!(
            report.total_ps,
            4 * u64::from(p - 1) * overhead,
            "{p} ranks"
        );
    }
}
