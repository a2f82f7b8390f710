//! Several operations at once on one group, and messages between two ranks beside them.

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use support::{Call, Memory, registry};
use unisono_contract::Lease;
use unisono_contract::null::Policy;
use unisono_core::{Collective, DType, Rank};
use unisono_engine::{Request, World};
use unisono_program::{Context, point_to_point};

/// What every rank starts, in this order.
#[derive(Debug, Clone)]
struct Exchange {
    collective: usize,
    algorithm: usize,
    count: u64,
    segments: u64,
    in_place: bool,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    (0..9usize, 0..16usize, 0..300u64, 1..4u64, any::<bool>()).prop_map(
        |(collective, algorithm, count, segments, in_place)| Exchange {
            collective,
            algorithm,
            count,
            segments,
            in_place,
        },
    )
}

/// A message from one rank to another, submitted after so many collectives at either end.
#[derive(Debug, Clone)]
struct Message {
    from: Rank,
    to: Rank,
    count: u64,
    send_after: usize,
    recv_after: usize,
}

fn messages(size: Rank) -> impl Strategy<Value = Vec<Message>> {
    let message = (0..size, 1..size, 0..200u64, 0..6usize, 0..6usize).prop_map(
        move |(from, hop, count, send_after, recv_after)| Message {
            from,
            to: (from + hop) % size,
            count,
            send_after,
            recv_after,
        },
    );
    proptest::collection::vec(message, 0..6).prop_map(|mut messages| {
        // Both ends of a pair give them in the same order.
        messages.sort_by_key(|m| m.send_after);
        let mut late = std::collections::HashMap::new();
        for m in &mut messages {
            let last: &mut usize = late.entry((m.from, m.to)).or_default();
            m.recv_after = m.recv_after.max(*last);
            *last = m.recv_after;
        }
        messages
    })
}

fn request(count: u64) -> Request {
    Request {
        count,
        dtype: DType::U8,
        op: None,
        kernels: None,
        segments: 1,
    }
}

fn run(size: Rank, seed: u64, list: &[Exchange], messages: &[Message]) {
    let registry = registry();
    let mut world = World::new(size, Policy::hostile(seed));
    let mut calls = Vec::new();
    for one in list {
        let collective = Collective::ALL[one.collective];
        let call = Call {
            in_place: one.in_place && collective != Collective::AllToAll,
            segments: one.segments,
            root: one.count as Rank % size,
            ..Call::new(collective, size, one.count)
        };
        let offers: Vec<_> = registry
            .iter()
            .filter_map(|a| call.programs(&**a))
            .collect();
        let programs = offers[one.algorithm % offers.len()].clone();
        let plans = world.plans(&programs, &call.request()).expect("plans");
        let memory: Vec<Memory> = (0..size).map(|r| Memory::new(&call, r)).collect();
        calls.push((call, plans, memory));
    }
    let letters: Vec<[Lease<Vec<u8>>; 2]> = messages
        .iter()
        .enumerate()
        .map(|(i, m)| {
            let bytes = (0..m.count).map(|b| (b * 7 + i as u64) as u8).collect();
            [Lease::new(bytes), Lease::new(vec![0; m.count as usize])]
        })
        .collect();
    for rank in 0..size {
        for after in 0..=list.len().max(6) {
            for (m, [sent, received]) in messages.iter().zip(&letters) {
                let ends = [
                    (Collective::Send, m.from, m.to, m.send_after, sent),
                    (Collective::Recv, m.to, m.from, m.recv_after, received),
                ];
                for (collective, me, peer, when, lease) in ends {
                    if me == rank && when == after {
                        let cx = Context::full(collective, me, size);
                        let program = point_to_point::message(&cx, peer).expect("a message");
                        let plan = world.plan(Arc::new(program), &request(m.count));
                        let (plan, piece) = (plan.expect("a plan"), lease.piece());
                        world.submit(rank, &plan, piece, piece).expect("submitted");
                    }
                }
            }
            if let Some((_, plans, memory)) = calls.get(after) {
                let m = &memory[rank as usize];
                world
                    .submit(rank, &plans[rank as usize], m.input, m.output)
                    .expect("submitted");
            }
        }
    }
    world.run().expect("done");
    for (call, plans, memory) in calls {
        let name = &plans[0].program().algorithm;
        for (rank, m) in memory.into_iter().enumerate() {
            m.check(&call, name, rank as Rank);
        }
    }
    for [sent, received] in letters {
        assert_eq!(sent.into_inner(), received.into_inner());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_in_flight_at_once_do_not_disturb_each_other(
        size in 2..6 as Rank,
        seed in any::<u64>(),
        list in proptest::collection::vec(exchange(), 1..7),
    ) {
        run(size, seed, &list, &[]);
    }

    #[test]
    fn messages_pass_beside_collectives(
        (size, messages) in (2..5 as Rank).prop_flat_map(|p| (Just(p), messages(p))),
        seed in any::<u64>(),
        list in proptest::collection::vec(exchange(), 0..5),
    ) {
        run(size, seed, &list, &messages);
    }
}
