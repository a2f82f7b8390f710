//! Simple algorithms take exactly the time of their textbook formula, event by event.

use unisono_sim::{Cluster, LinkCost, Network, Op, owned};

const LINK: LinkCost = LinkCost {
    alpha_ns: 7_000,
    beta: 3_000_000_000,
};

fn time(algorithm: &str, p: u32, count: usize, network: Network) -> u64 {
    let outcome = Cluster::mesh(p).network(network).run(|group| async move {
        let group = group.with_algorithm(algorithm)?.with_segments(1);
        group
            .start(owned::all_reduce(vec![1u32; count], Op::Sum))
            .await?;
        Ok::<_, unisono_sim::Error>(())
    });
    let (results, report) = outcome.into_result().unwrap();
    results.into_iter().for_each(|r| r.unwrap());
    report.total_ps
}

fn plain() -> Network {
    Network::uniform(LINK.alpha_ns, LINK.beta)
}

#[test]
fn a_ring_costs_two_p_minus_two_rounds_of_a_block() {
    for p in (2..=17).chain([32, 64]) {
        for block in [1, 1000] {
            let expected =
                2 * u64::from(p - 1) * (LINK.latency_ps() + LINK.transfer_ps(block as u64 * 4));
            assert_eq!(
                time("ring", p, block * p as usize, plain()),
                expected,
                "{p} ranks"
            );
        }
    }
}

#[test]
fn a_mesh_costs_two_rounds_of_a_block_whatever_its_size() {
    for p in (2..=17).chain([32, 64]) {
        let expected = 2 * (LINK.latency_ps() + LINK.transfer_ps(4000));
        let count = 1000 * p as usize;
        assert_eq!(
            time("mesh-twoshot", p, count, plain()),
            expected,
            "{p} ranks"
        );
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
