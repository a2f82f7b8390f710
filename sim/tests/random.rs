//! Runs drawn at random: right, or a typed error where a fault was injected; never wrong, never stuck.

mod common;

use common::{COLLECTIVES, checked};
use unisono_sim::{Cable, Cluster, Error, Fault, LinkCost, Mishap, Network, Part, Unposted};

/// A generator for tests (SplitMix64).
struct Draw(u64);

impl Draw {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

fn fault(draw: &mut Draw, p: u32) -> Fault {
    let rank = draw.below(p.into()) as u32;
    let other = (rank + 1 + draw.below(u64::from(p) - 1) as u32) % p;
    let link = Cable {
        a: rank,
        b: other,
        one_way: draw.below(2) == 0,
    };
    let at_ps = draw.below(200_000_000);
    let delay = 1 + draw.below(100_000_000);
    let what = draw.one(&[
        Mishap::Drop,
        Mishap::Duplicate,
        Mishap::Corrupt(Part::Payload),
        Mishap::Corrupt(Part::Frame),
        Mishap::Delay(delay),
    ]);
    match draw.below(7) {
        0 => Fault::Crash { rank, at_ps },
        1 => Fault::Stall {
            rank,
            at_ps,
            for_ps: draw.below(1_000_000_000),
        },
        2 => Fault::Down {
            link,
            at_ps,
            up_ps: (draw.below(2) == 0).then(|| at_ps + 1 + draw.below(300_000_000)),
        },
        3 => Fault::Slow {
            link,
            factor: draw.one(&[0.01, 0.5, 3.0]),
            at_ps,
        },
        4 => Fault::OneWay {
            from: rank,
            to: other,
            at_ps,
        },
        5 => Fault::Loss {
            link,
            rate: draw.one(&[0.01, 0.2]),
        },
        _ => Fault::Message {
            link,
            nth: 1 + draw.below(12),
            what,
        },
    }
}

/// One run; says whether it had a fault and whether it ended in an error.
fn one(seed: u64) -> (bool, bool) {
    let draw = &mut Draw(seed);
    let p = 1 + draw.below(17) as u32;
    let beta = draw.one(&[0, 1_000_000, 1_000_000_000]);
    let mut network = Network::uniform(draw.below(20_000), beta);
    if draw.below(2) == 0 {
        network = network.with_overhead_ns(draw.below(5_000));
    }
    if draw.below(2) == 0 {
        network = network.with_reduce_rate(1_000_000_000);
    }
    if draw.below(3) == 0 {
        network = network.with_segment(1_000_000_000, []);
    }
    if p > 1 {
        let cost = LinkCost {
            alpha_ns: draw.below(50_000),
            beta: 10_000_000,
        };
        network = network.with_link(0, 1, cost);
    }
    let mut cluster = Cluster::mesh(p)
        .network(network)
        .seed(seed)
        .jitter(draw.one(&[0.0, 0.1, 2.0]))
        .unposted(draw.one(&[Unposted::Buffer, Unposted::Buffer, Unposted::Block]));
    let mut faults = Vec::new();
    if p > 1 && draw.below(2) == 0 {
        for _ in 0..=draw.below(2) {
            faults.push(fault(draw, p));
        }
    }
    for fault in &faults {
        cluster = cluster.fault(*fault);
    }
    let registry = unisono::registry();
    let names: Vec<String> = registry.names().map(str::to_owned).collect();
    let calls: Vec<_> = (0..=draw.below(3))
        .map(|_| {
            let name = (draw.below(3) > 0).then(|| draw.one(&names));
            let n = draw.one(&[0, 1, 3, 64, 1000]) + draw.below(5);
            let segments = 1 + draw.below(4);
            let root = draw.below(p.into()) as u32;
            (name, draw.one(&COLLECTIVES), n as usize, segments, root)
        })
        .collect();
    let outcome = cluster.run(|group| {
        let calls = calls.clone();
        async move {
            for (name, collective, n, segments, root) in calls {
                let mut group = group.with_segments(segments);
                if let Some(name) = name {
                    group = group.with_algorithm(&name)?;
                }
                match checked(&group, collective, n, root).await {
                    Ok(right) => assert!(right, "{collective} of {n} is wrong"),
                    Err(Error::Select(_)) => {} // an algorithm that cannot: nobody has sent anything
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    });
    let failed = outcome.report.error.is_some();
    let what = format!("seed {seed}, {p} ranks, {faults:?}, {calls:?}");
    if let Some(unisono_sim::SimError::Panicked { .. }) = outcome.report.error {
        panic!("{what}: {:?}", outcome.report.error);
    }
    if faults.is_empty() {
        assert_eq!(outcome.report.error, None, "{what}");
    }
    for result in outcome.results.iter().flatten() {
        match result {
            Ok(()) => {}
            Err(Error::Failed { .. }) => assert!(!faults.is_empty(), "{what}"),
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let lost = outcome.results.iter().filter(|r| r.is_none()).count();
    let crashes = outcome
        .report
        .ranks
        .iter()
        .filter(|r| r.crashed_ps.is_some());
    assert_eq!(lost, crashes.count(), "{what}");
    (!faults.is_empty(), failed)
}

fn many(seeds: std::ops::Range<u64>) {
    let (mut faulty, mut failed) = (0, 0);
    for seed in seeds {
        let (had, did) = one(seed);
        faulty += u64::from(had);
        failed += u64::from(did);
    }
    println!("{faulty} runs with faults, {failed} ended in an error");
    assert!(failed * 10 > faulty && failed < faulty);
}

#[test]
fn a_thousand_worlds_end_right_or_with_an_error() {
    many(0..1000);
}

#[test]
#[ignore = "minutes in a release build"]
fn a_hundred_thousand_worlds_end_right_or_with_an_error() {
    many(1000..101_000);
}
