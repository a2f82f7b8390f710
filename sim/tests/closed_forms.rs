//! Simple algorithms take exactly the time of their textbook formula, event by event and in the evaluator.

use std::sync::Arc;

use unisono::program::{Context, build_all};
use unisono_evaluator::{Call, evaluate};
use unisono_sim::{
    Ask, Cluster, Collective, DType, LinkCost, Network, Op, PieceCall, Topology, owned,
};

const LINK: LinkCost = LinkCost {
    alpha_ns: 7_000,
    beta: 3_000_000_000,
};

/// What a collective over so many u32 (in the vector, or in a row) takes: the same in both engines.
fn both(algorithm: &str, collective: Collective, p: u32, count: u64, network: Network) -> u64 {
    let registry = unisono::registry();
    let algorithm_of = registry.find(algorithm).unwrap();
    let cx = Context::new(collective, 0, Arc::new(Topology::full(p)));
    let programs = build_all(&**algorithm_of, &cx).unwrap();
    let priced = evaluate(&programs, &Call::new(count, DType::U32), network.links()).unwrap();
    let mut call = PieceCall::new(collective, count, DType::U32);
    if collective.reduces() {
        call = call.op(Op::Sum);
    }
    let ask = Ask::new(call).algorithm(algorithm).segments(1);
    let outcome = Cluster::mesh(p).network(network).collective(&ask);
    let (right, report) = outcome.into_result().unwrap();
    assert!(right.into_iter().all(|right| right.unwrap()));
    assert_eq!(
        report.total_ps, priced.total_ps,
        "{algorithm} {collective}, {p} ranks, {count}"
    );
    report.total_ps
}

fn time(algorithm: &str, p: u32, count: usize, network: Network) -> u64 {
    both(algorithm, Collective::AllReduce, p, count as u64, network)
}

fn plain() -> Network {
    Network::uniform(LINK.alpha_ns, LINK.beta)
}

/// `rounds` messages of `elements` one after the other.
fn rounds(rounds: u64, elements: u64) -> u64 {
    rounds * (LINK.latency_ps() + LINK.transfer_ps(elements * 4))
}

/// Worlds of 2 to 64 ranks with blocks of one element, of a few and of a megabyte (large worlds with one of them).
fn worlds() -> impl Iterator<Item = (u32, u64)> {
    const BLOCKS: [u64; 3] = [1, 30, 262_144];
    (2..=64).flat_map(|p| {
        let mine = |&(i, _): &(u32, u64)| p <= 17 || p % 3 == i;
        (0..)
            .zip(BLOCKS)
            .filter(mine)
            .map(move |(_, block)| (p, block))
            .collect::<Vec<_>>()
    })
}

#[test]
fn a_ring_costs_a_round_of_a_block_for_every_hop() {
    use Collective::{AllGather, AllReduce, ReduceScatter};
    for (p, block) in worlds() {
        let hops = u64::from(p - 1);
        let all = block * u64::from(p);
        let cases = [
            (AllReduce, all, 2 * hops),
            (ReduceScatter, block, hops),
            (AllGather, block, hops),
        ];
        for (collective, count, hops) in cases {
            let time = both("ring", collective, p, count, plain());
            assert_eq!(
                time,
                rounds(hops, block),
                "{collective}, {p} ranks, {block}"
            );
        }
    }
}

#[test]
fn a_ring_both_ways_costs_half_a_block_for_every_hop() {
    // Two ranks have one link each way, which both directions share.
    for (p, block) in worlds().filter(|&(p, _)| p > 2) {
        let (hops, halves) = (u64::from(p - 1), 2 * block);
        let count = halves * u64::from(p);
        let time = both("ring-bidir", Collective::AllReduce, p, count, plain());
        assert_eq!(time, rounds(2 * hops, block), "{p} ranks, {block}");
    }
}

#[test]
fn a_mesh_costs_one_or_two_rounds_whatever_its_size() {
    use Collective::{AllGather, AllReduce, AllToAll, Broadcast};
    for (p, block) in worlds() {
        let all = block * u64::from(p);
        let cases = [
            ("mesh-oneshot", AllReduce, block, 1),
            ("mesh-twoshot", AllReduce, all, 2),
            ("mesh-direct", AllGather, block, 1),
            ("mesh-direct", AllToAll, block, 1),
            ("mesh-direct", Broadcast, block, 1),
        ];
        for (name, collective, count, n) in cases {
            let time = both(name, collective, p, count, plain());
            assert_eq!(
                time,
                rounds(n, block),
                "{name} {collective}, {p} ranks, {block}"
            );
        }
    }
}

#[test]
fn half_the_bandwidth_doubles_the_bandwidth_term() {
    let count = 4 * 750_000; // a block takes a millisecond, without a rest
    let half = Network::uniform(LINK.alpha_ns, LINK.beta / 2);
    let latency = 6 * LINK.latency_ps();
    let (one, two) = (
        time("ring", 4, count, plain()),
        time("ring", 4, count, half),
    );
    assert_eq!(two - latency, 2 * (one - latency));
}

#[test]
fn a_link_at_a_tenth_becomes_the_bottleneck() {
    let slow = LinkCost {
        beta: LINK.beta / 10,
        ..LINK
    };
    let cluster = Cluster::mesh(4).network(plain().with_link(2, 3, slow));
    let outcome = cluster.run(|group| async move {
        let group = group.with_algorithm("ring").unwrap();
        let x = group.start(owned::all_reduce(vec![1u32; 40_000], Op::Sum));
        x.await.unwrap();
    });
    let (_, report) = outcome.into_result().unwrap();
    let link = report.bottleneck.unwrap();
    assert_eq!((link.from, link.to), (2, 3));
    assert_eq!(report.bytes(), 2 * 3 * 160_000);
}

#[test]
fn links_through_one_segment_take_turns() {
    // Two pairs exchange at the same time; a bus as fast as one link carries one message after the other.
    let exchange = |network: Network| {
        let outcome = Cluster::mesh(4).network(network).run(|group| async move {
            let peer = group.rank() ^ 1;
            let send = group.start(owned::send(vec![0u8; 3_000], peer));
            group
                .start(owned::recv(vec![0u8; 3_000], peer))
                .await
                .unwrap();
            send.await.unwrap();
        });
        outcome.into_result().unwrap().1.total_ps
    };
    let (alpha, transfer) = (LINK.latency_ps(), LINK.transfer_ps(3_000));
    assert_eq!(exchange(plain()), alpha + transfer);
    let bus = plain().with_segment(LINK.beta, []);
    assert_eq!(exchange(bus), alpha + 4 * transfer);
    let two = plain().with_segment(LINK.beta, [(0, 1), (1, 0)]);
    assert_eq!(exchange(two), alpha + 2 * transfer);
}

#[test]
fn eight_kilobytes_between_two_ranks_take_tens_of_microseconds() {
    let outcome = Cluster::mesh(2).run(|group| async move {
        let x = group.start(owned::all_reduce(vec![1f32; 2048], Op::Sum));
        x.await.unwrap();
    });
    let us = outcome.into_result().unwrap().1.virtual_us();
    assert!((10.0..40.0).contains(&us), "{us} us");
}
