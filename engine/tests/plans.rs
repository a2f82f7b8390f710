//! Plans are kept, and their private memory is used again.

mod support;

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use support::ranks::Ranks;
use support::{Call, Memory, registry};
use unisono_contract::null::Policy;
use unisono_contract::{Completions, Direction, RegionKey};
use unisono_core::Collective;
use unisono_engine::{Lru, Plan};

fn ring(call: &Call) -> Vec<Arc<unisono_program::Program>> {
    let registry = registry();
    let ring = registry.find("ring").expect("it exists");
    call.programs(&**ring).expect("it is offered")
}

/// Runs both ranks to the end; rank 0 by hand, as the call contract says. Gives the regions rank 0 received into.
fn watched(ranks: &mut Ranks) -> HashSet<RegionKey> {
    let mut regions = HashSet::new();
    let mut done = Completions::new();
    while ranks.engines.iter().any(|e| e.running() > 0) {
        let (engine, end) = (&mut ranks.engines[0], &mut ranks.ends[0][0]);
        while let Some(post) = engine.next().expect("no fault") {
            let (port, frame, pieces) = (post.port, &post.frame, &post.pieces);
            if post.direction == Direction::Send {
                end.post_send(port, frame, pieces, post.token)
                    .expect("room");
            } else {
                regions.extend(pieces.iter().filter_map(|p| p.region()));
                end.post_recv(port, frame, pieces, post.token)
                    .expect("room");
            }
            engine.posted();
        }
        done.clear();
        end.poll(&mut done).expect("no fault");
        for completion in &done {
            engine
                .complete(completion.port, completion.token)
                .expect("no fault");
        }
        ranks.drive(1).expect("no fault");
    }
    regions
}

#[test]
fn operations_one_after_the_other_use_the_same_private_memory() {
    let call = Call::new(Collective::AllReduce, 2, 64);
    let mut ranks = Ranks::new(2, Policy::hostile(2), |e| Box::new(e));
    let memory: Vec<Memory> = (0..2).map(|r| Memory::new(&call, r)).collect();
    let plans: Vec<_> = ring(&call)
        .iter()
        .map(|p| ranks.plan(p, &call.request()))
        .collect();
    assert!(plans[0].workspace_bytes() >= 128, "half a vector of i32");
    let submit = |ranks: &mut Ranks| {
        for (rank, m) in (0..).zip(&memory) {
            ranks.submit(rank, &plans[rank as usize], m.input, m.output);
        }
    };
    let mut regions = HashSet::new();
    for _ in 0..3 {
        submit(&mut ranks);
        regions.extend(watched(&mut ranks));
    }
    assert_eq!(regions.len(), 1, "one operation at a time");
    submit(&mut ranks);
    submit(&mut ranks);
    regions.extend(watched(&mut ranks));
    assert_eq!(regions.len(), 2, "two at once");
    submit(&mut ranks);
    ranks.engines[0].abandon();
    submit(&mut ranks);
    assert_eq!(ranks.engines[0].running(), 1, "what was abandoned is gone");
}

#[test]
fn the_plan_used_least_recently_is_forgotten() {
    let mut ranks = Ranks::new(2, Policy::instant(), |e| Box::new(e));
    let mut cache: Lru<u64, Arc<Plan>> = Lru::new(64);
    let mut kept: Vec<Weak<Plan>> = Vec::new();
    for count in 0..100 {
        let call = Call::new(Collective::AllReduce, 2, count);
        let plan = ranks.plan(&ring(&call)[0], &call.request());
        kept.push(Arc::downgrade(&plan));
        cache.insert(count, plan);
        assert!(cache.find(&0).is_some(), "used all the time");
    }
    assert_eq!(cache.len(), 64);
    let alive = |count: usize| kept[count].upgrade().is_some();
    assert!(alive(0) && (37..100).all(alive) && !(1..37).any(alive));
}
