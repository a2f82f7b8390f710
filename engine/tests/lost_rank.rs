//! A rank that dies ends every operation of every survivor: with its result or with an error, never by waiting.

mod support;

use support::ranks::Ranks;
use support::{Call, Memory, registry};
use unisono_contract::null::Policy;
use unisono_contract::{Drain, Endpoint};
use unisono_core::{Collective, Rank};
use unisono_engine::{Drive, EngineError};

/// Runs until rank `victim` dies after so many rounds; who fails closes its links, as a group does.
fn lose(call: &Call, algorithm: &str, policy: Policy, victim: Rank, after: usize) {
    let registry = registry();
    let algorithm = registry.find(algorithm).expect("it exists");
    let Some(programs) = call.programs(&**algorithm) else {
        return;
    };
    let mut ranks = Ranks::new(call.size, policy, |e| Box::new(e));
    let memory: Vec<Memory> = (0..call.size).map(|r| Memory::new(call, r)).collect();
    for program in &programs {
        let plan = ranks.plan(program, &call.request());
        let m = &memory[program.rank as usize];
        ranks.submit(program.rank, &plan, m.input, m.output);
    }
    let mut failed = vec![false; call.size as usize];
    let mut first = None;
    for round in 0..100_000 {
        if round == after {
            ranks.net.kill(victim);
            failed[victim as usize] = true;
        }
        let mut waiting = false;
        for (rank, failed) in failed.iter_mut().enumerate() {
            if *failed || ranks.engines[rank].running() == 0 {
                continue;
            }
            match ranks.drive(rank) {
                Ok(Drive::Progress | Drive::Idle) => waiting = true,
                Err(error) => {
                    first.get_or_insert(error);
                    assert_eq!(ranks.ends[rank][0].quiesce(), Drain::Quiet);
                    ranks.engines[rank].abandon();
                    assert_eq!(ranks.engines[rank].running(), 0);
                    ranks.net.kill(rank as Rank);
                    *failed = true;
                }
            }
        }
        if !waiting && round >= after {
            if let Some(first) = first {
                assert!(matches!(first, EngineError::Link(_)), "{first}");
            }
            return;
        }
    }
    panic!("{} {call:?}: somebody waits for ever", algorithm.name());
}

#[test]
fn survivors_of_a_lost_rank_never_wait_for_ever() {
    for algorithm in [
        "ring",
        "mesh-oneshot",
        "mesh-twoshot",
        "butterfly-circulant",
        "tree",
    ] {
        for collective in [
            Collective::AllReduce,
            Collective::Broadcast,
            Collective::AllGather,
        ] {
            for after in [0, 1, 2, 5, 20] {
                let call = Call {
                    segments: 2,
                    ..Call::new(collective, 4, 500)
                };
                lose(&call, algorithm, Policy::instant(), 2, after);
                lose(&call, algorithm, Policy::hostile(after as u64), 1, after);
            }
        }
    }
}

#[test]
fn an_operation_with_a_dead_rank_fails_and_fails_again() {
    let call = Call::new(Collective::AllReduce, 3, 10);
    let registry = registry();
    let ring = registry.find("ring").expect("it exists");
    let mut ranks = Ranks::new(3, Policy::instant(), |e| Box::new(e) as Box<dyn Endpoint>);
    let programs = call.programs(&**ring).expect("it is offered");
    let memory = Memory::new(&call, 0);
    let plan = ranks.plan(&programs[0], &call.request());
    ranks.net.kill(1);
    ranks.submit(0, &plan, memory.input, memory.output);
    for _ in 0..3 {
        let error = ranks.drive(0).expect_err("rank 1 is gone");
        assert!(error.to_string().contains("link to rank 1"), "{error}");
    }
}
