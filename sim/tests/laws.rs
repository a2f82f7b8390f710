//! What holds whatever the algorithm: nothing is faster than links, bytes add up, and cables matter the way they should.

use unisono_sim::{
    Ask, Cluster, Collective, DType, LinkCost, Network, Op, Outcome, PieceCall, Report, Topology,
};

const BETA: u64 = 5_000_000_000;

fn network() -> Network {
    Network::uniform(5_000, BETA)
}

fn ring(p: u32) -> Topology {
    Topology::from_links(p, (0..p).map(move |r| (r, (r + 1) % p)))
}

fn line(p: u32) -> Topology {
    Topology::from_links(p, (1..p).map(|r| (r - 1, r)))
}

fn star(p: u32) -> Topology {
    Topology::from_links(p, (1..p).map(|r| (0, r)))
}

/// One collective; `None` where the algorithm cannot.
fn run(
    cluster: &Cluster,
    name: Option<&str>,
    collective: Collective,
    count: u64,
) -> Option<Report> {
    let mut call = PieceCall::new(collective, count, DType::F32);
    if collective.reduces() {
        call = call.op(Op::Sum);
    }
    let mut ask = Ask::new(call);
    if let Some(name) = name {
        ask = ask.algorithm(name);
    }
    let Outcome { results, report } = cluster.collective(&ask);
    let mut right = results.into_iter().flatten();
    right
        .all(|right| right.is_ok_and(|right| right))
        .then_some(report)
}

/// Bytes per second that the busiest rank would have to send, by the usual convention.
fn busbw(collective: Collective, p: u32, count: u64, report: &Report) -> f64 {
    let p = f64::from(p);
    let factor = match collective {
        Collective::AllReduce => 2.0 * (p - 1.0) / p,
        _ => p - 1.0, // of a row
    };
    count as f64 * 4.0 * factor / (report.total_ps as f64 * 1e-12)
}

#[test]
fn no_bus_is_faster_than_the_links_of_a_rank_together() {
    let mut seen = 0;
    let mut best = 0.0f64;
    for topology in [
        Topology::full(2),
        Topology::full(5),
        Topology::full(8),
        ring(6),
        line(4),
        star(5),
    ] {
        let p = topology.size();
        let most = (0..p)
            .map(|r| topology.neighbours(r).count())
            .max()
            .unwrap() as f64;
        let cluster = Cluster::from_topology(topology).network(network());
        for collective in [
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::AllToAll,
        ] {
            for name in unisono::registry().names() {
                for count in [1, 10_000, 4_000_000] {
                    let Some(report) = run(&cluster, Some(name), collective, count) else {
                        continue;
                    };
                    let share = busbw(collective, p, count, &report) / (most * BETA as f64);
                    assert!(
                        share <= 1.0,
                        "{name} {collective}, {p} ranks, {count}: {share}"
                    );
                    best = best.max(share);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 200, "{seen}");
    assert!(best > 0.95, "and some come close: {best}");
}

#[test]
fn what_links_carry_adds_up() {
    // Whatever the schedule, an all_reduce moves at least the minimum, and rings and meshes move no more.
    for (name, p) in [("ring", 6), ("mesh-twoshot", 6), ("butterfly-halving", 8)] {
        let count = 48_000;
        let cluster = Cluster::mesh(p).network(network());
        let report = run(&cluster, Some(name), Collective::AllReduce, count).unwrap();
        assert_eq!(report.bytes(), 2 * u64::from(p - 1) * count * 4, "{name}");
        for rank in 0..p {
            let sum = |of: fn(&unisono_sim::LinkLoad) -> u32| -> u64 {
                let mine = report.links.iter().filter(|l| of(l) == rank);
                mine.map(|l| l.bytes).sum()
            };
            // Every rank sends as much as it receives, and all the same.
            let share = report.bytes() / u64::from(p);
            assert_eq!((sum(|l| l.from), sum(|l| l.to)), (share, share), "{name}");
        }
        for link in &report.links {
            let time = LinkCost {
                alpha_ns: 0,
                beta: BETA,
            }
            .transfer_ps(link.bytes);
            assert!(link.busy_ps >= time && link.busy_ps <= time + link.messages);
            assert!(link.busy_ps <= report.total_ps);
        }
        assert_eq!(
            report.messages,
            report.links.iter().map(|l| l.messages).sum::<u64>()
        );
    }
}

#[test]
fn half_the_rate_doubles_what_bandwidth_takes() {
    for name in [
        "ring",
        "mesh-oneshot",
        "mesh-twoshot",
        "tree",
        "butterfly-halving",
    ] {
        // Without latency nothing but bandwidth is left.
        let time = |beta| {
            let cluster = Cluster::mesh(4).network(Network::uniform(0, beta));
            run(&cluster, Some(name), Collective::AllReduce, 4 * 65_536)
                .unwrap()
                .total_ps
        };
        assert_eq!(time(BETA / 2), 2 * time(BETA), "{name}");
    }
}

#[test]
fn a_link_at_a_tenth_is_named() {
    let slow = LinkCost {
        alpha_ns: 5_000,
        beta: BETA / 10,
    };
    for name in ["ring", "mesh-oneshot", "mesh-twoshot", "mesh-direct"] {
        let cluster = Cluster::mesh(4).network(network().with_link(2, 3, slow));
        let collective = match name {
            "mesh-direct" => Collective::AllGather,
            _ => Collective::AllReduce,
        };
        let report = run(&cluster, Some(name), collective, 400_000).unwrap();
        let link = report.bottleneck.unwrap();
        assert_eq!((link.from, link.to), (2, 3), "{name}");
    }
}

#[test]
fn cables_are_worth_what_they_should_be() {
    let p = 6;
    // By the best algorithm there is: what cables allow.
    let time = |topology: Topology, collective, count| {
        let cluster = Cluster::from_topology(topology).network(network());
        let registry = unisono::registry();
        let reports = registry
            .names()
            .map(|name| run(&cluster, Some(name), collective, count));
        reports
            .flatten()
            .map(|report| report.total_ps)
            .min()
            .unwrap()
    };
    for (collective, count) in [
        (Collective::AllReduce, 16_000_000),
        (Collective::AllGather, 2_000_000),
    ] {
        let mesh = time(Topology::full(p), collective, count);
        let [ring, line, star] = [ring(p), line(p), star(p)].map(|t| time(t, collective, count));
        assert!(
            mesh < ring,
            "{collective}: 5 links per rank against 2: {mesh} {ring}"
        );
        assert!(ring < line, "{collective}: a cable more: {ring} {line}");
        assert!(
            ring < star,
            "{collective}: all through one rank: {ring} {star}"
        );
    }
    // Few bytes: what counts is how far it is.
    let mesh = time(Topology::full(p), Collective::AllReduce, 1);
    let [ring, line, star] = [ring(p), line(p), star(p)].map(|t| time(t, Collective::AllReduce, 1));
    assert!(
        mesh < star && star < line && mesh < ring && ring <= line,
        "{mesh} {star} {ring} {line}"
    );
}

#[test]
fn a_seed_is_a_hash_however_many_threads_there_are() {
    let lossy = |seed: u64| {
        let cluster = Cluster::mesh(4)
            .network(Network::default())
            .seed(seed)
            .jitter(0.2);
        let cluster = cluster.fault("loss link=0-1 rate=0.05".parse().unwrap());
        move || {
            let ask =
                Ask::new(PieceCall::new(Collective::AllReduce, 50_000, DType::F32).op(Op::Sum))
                    .segments(4)
                    .algorithm("mesh-twoshot")
                    .rounds(5);
            let report = cluster.collective(&ask).report;
            (report.trace_hash, report.lost)
        }
    };
    let alone: Vec<_> = (0..8).map(|seed| lossy(seed)()).collect();
    let threads: Vec<_> = (0..8).map(|seed| std::thread::spawn(lossy(seed))).collect();
    let together: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(alone, together);
    let mut hashes: Vec<u64> = alone.iter().map(|(hash, _)| *hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 8, "another seed, another hash");
    assert!(alone.iter().any(|(_, lost)| *lost > 0));
}

/// The same in debug and release, on every machine.
#[test]
fn the_hash_of_a_collective_is_pinned() {
    let cluster = Cluster::mesh(5).seed(7).jitter(0.25);
    let ask = Ask::new(PieceCall::new(Collective::AllReduce, 100_003, DType::F32).op(Op::Sum))
        .algorithm("ring")
        .segments(3);
    let report = cluster.collective(&ask).report;
    assert_eq!(
        format!(
            "{} {:016x} {}",
            report.total_ps, report.trace_hash, report.messages
        ),
        "155312804 9208f316366959f8 120"
    );
}
