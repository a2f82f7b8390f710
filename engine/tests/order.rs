//! What stands between the messages of a FIFO: empty segments that are skipped, and strands that are merged.

mod support;

use std::collections::HashMap;

use support::ranks::Ranks;
use support::{Call, Memory, registry};
use unisono_contract::null::Policy;
use unisono_core::{Collective, Rank};
use unisono_program::{Algorithm, Context, Emit, Stage, Unsupported, block};

fn messages(call: &Call, algorithm: &dyn Algorithm) -> Option<u64> {
    let programs = call.programs(algorithm)?;
    let mut ranks = Ranks::new(call.size, Policy::instant(), |e| Box::new(e));
    let memory: Vec<Memory> = (0..call.size).map(|r| Memory::new(call, r)).collect();
    for program in &programs {
        let plan = ranks.plan(program, &call.request());
        let m = &memory[program.rank as usize];
        ranks.submit(program.rank, &plan, m.input, m.output);
    }
    ranks.run();
    for (rank, m) in memory.into_iter().enumerate() {
        m.check(call, algorithm.name(), rank as Rank);
    }
    Some(ranks.net.messages())
}

#[test]
fn empty_segments_stay_off_the_wire_and_message_0_does_not() {
    let registry = registry();
    let ring = registry.find("ring").expect("it exists");
    // One element among 8 ranks: all blocks but one are empty. Per FIFO: message 0, and the two passes of that block
    // over the links it takes.
    let one = Call::new(Collective::AllReduce, 8, 1);
    let sent = messages(&one, &**ring).expect("it is offered");
    assert!((8 + 6..=8 + 14).contains(&sent), "{sent} messages");
    // 16 elements in 4 segments of at least 64 bytes: three of four are empty.
    let cut = Call {
        segments: 4,
        ..Call::new(Collective::Broadcast, 2, 16)
    };
    assert_eq!(messages(&cut, &**ring), Some(1));
    let whole = Call {
        segments: 4,
        ..Call::new(Collective::Broadcast, 2, 64)
    };
    assert_eq!(messages(&whole, &**ring), Some(4));
}

#[test]
fn a_barrier_sends_its_empty_messages() {
    for algorithm in registry().iter() {
        let call = Call::new(Collective::Barrier, 5, 0);
        if let Some(sent) = messages(&call, &**algorithm) {
            assert!(sent >= 8, "{}: {sent} messages", algorithm.name());
        }
    }
}

/// A chain of broadcasts whose blocks start out of order, so that each FIFO needs several strands.
struct Waves(Vec<i64>);

impl Algorithm for Waves {
    fn name(&self) -> &str {
        "waves"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::Broadcast])
    }

    fn blocks(&self, _: &Context) -> u64 {
        self.0.len() as u64
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let me = cx.rank();
        for (i, &hops) in self.0.iter().enumerate() {
            let stage = |at: Rank| Stage {
                hops: hops + i64::from(at),
                offset: 0,
            };
            if me > 0 {
                b.stage(stage(me - 1));
                b.recv(me - 1, block(i as i64));
            }
            if me + 1 < cx.size() {
                b.stage(stage(me));
                b.send(me + 1, block(i as i64));
            }
        }
    }
}

#[test]
fn both_ends_merge_the_strands_of_a_fifo_alike() {
    for order in [
        vec![0, 2, 1, 3],
        vec![5, 4, 3, 2, 1, 0],
        vec![3, 0, 3, 1, 7, 1, 0],
    ] {
        let waves = Waves(order);
        for size in [2, 3, 5] {
            for segments in 1..=4 {
                for count in [0, 3, 100, 1000] {
                    let call = Call {
                        segments,
                        ..Call::new(Collective::Broadcast, size, count)
                    };
                    let programs = call.programs(&waves).expect("it is offered");
                    let mut lanes = HashMap::new();
                    for lane in &programs[0].lanes {
                        *lanes.entry(lane.kind).or_insert(0) += 1;
                    }
                    assert!(lanes.values().any(|n| *n > 1), "no strands");
                    for seed in 0..3 {
                        call.run(&programs, Policy::hostile(seed));
                    }
                }
            }
        }
    }
}
