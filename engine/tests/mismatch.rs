//! Ranks that call different things get an error that names the difference, and keep their memory.

mod support;

use support::{Call, MARK, Memory, registry};
use unisono_contract::null::Policy;
use unisono_contract::{Field, LinkCause, LinkError};
use unisono_core::{Collective, DType, Op};
use unisono_engine::{EngineError, World, WorldError};

/// Rank r makes call r with the algorithm r; gives what they disagree in. Nobody's memory is touched.
fn disagree(calls: &[Call], algorithms: &[&str]) -> Field {
    disagree_with(calls, algorithms, &(0..calls.len()).collect::<Vec<_>>())
}

/// The same, where the memory of the ranks `clean` is not touched.
fn disagree_with(calls: &[Call], algorithms: &[&str], clean: &[usize]) -> Field {
    let mut fields = Vec::new();
    for policy in [Policy::instant(), Policy::hostile(3), Policy::hostile(8)] {
        let mut world = World::new(calls.len() as u32, policy);
        let memory: Vec<Memory> = (0..)
            .zip(calls)
            .map(|(rank, call)| Memory::new(call, rank))
            .collect();
        for (rank, call) in calls.iter().enumerate() {
            let registry = registry();
            let algorithm = registry.find(algorithms[rank % algorithms.len()]);
            let programs = call.programs(&**algorithm.expect("it exists"));
            let program = programs.expect("it is offered")[rank].clone();
            let plan = world.plan(program, &call.request()).expect("a plan");
            let m = &memory[rank];
            world
                .submit(rank as u32, &plan, m.input, m.output)
                .expect("submitted");
        }
        match world.run() {
            Err(WorldError::Rank {
                error:
                    EngineError::Link(LinkError {
                        cause: LinkCause::Mismatch(mismatch),
                        ..
                    }),
                ..
            }) => fields.push(mismatch.field),
            other => panic!("{other:?}"),
        }
        for m in clean.iter().map(|rank| &memory[*rank]) {
            let clean = m.output.read(|bytes| bytes.iter().all(|b| *b == MARK));
            assert!(clean.expect("lent"), "user memory was touched");
        }
    }
    assert!(fields.iter().all(|f| *f == fields[0]), "{fields:?}");
    fields[0]
}

fn call() -> Call {
    Call {
        dtype: DType::F32,
        ..Call::new(Collective::AllReduce, 2, 100)
    }
}

#[test]
fn another_collective_is_named() {
    let other = Call {
        collective: Collective::AllGather,
        ..call()
    };
    assert_eq!(disagree(&[call(), other], &["ring"]), Field::Collective);
}

#[test]
fn another_dtype_is_named_even_when_it_is_as_large() {
    let other = Call {
        dtype: DType::I32,
        ..call()
    };
    assert_eq!(disagree(&[call(), other], &["ring"]), Field::Dtype);
}

#[test]
fn another_operator_is_named() {
    let other = Call {
        op: Op::Max,
        ..call()
    };
    assert_eq!(disagree(&[call(), other], &["ring"]), Field::Op);
}

#[test]
fn another_count_is_named() {
    for count in [1, 99, 101, 100_000] {
        let other = Call { count, ..call() };
        assert_eq!(disagree(&[call(), other], &["ring"]), Field::Count);
    }
}

#[test]
fn another_root_is_named() {
    let root = |root| Call {
        root,
        ..Call::new(Collective::Broadcast, 3, 100)
    };
    // Rank 2 hears rank 1, which believes to be the root.
    assert_eq!(
        disagree(&[root(0), root(1), root(0)], &["ring"]),
        Field::Root
    );
}

#[test]
fn another_root_is_named_when_its_messages_go_where_nobody_expects_one() {
    let root = |root| Call {
        root,
        ..Call::new(Collective::Broadcast, 3, 100)
    };
    // Rank 0 sends to rank 1, which waits for rank 2, which hears what it expects from rank 0.
    let field = disagree_with(&[root(0), root(2), root(0)], &["tree"], &[1]);
    assert_eq!(field, Field::Root);
}

#[test]
fn another_algorithm_is_named() {
    let algorithms = ["ring", "mesh-twoshot"];
    assert_eq!(disagree(&[call(), call()], &algorithms), Field::Plan);
}

#[test]
fn another_number_of_segments_is_named() {
    let other = Call {
        segments: 2,
        ..call()
    };
    assert_eq!(disagree(&[call(), other], &["ring"]), Field::Plan);
}

#[test]
fn one_operation_more_is_named() {
    // Rank 0 runs a barrier first; rank 1 does not.
    let mut world = World::new(2, Policy::instant());
    let (barrier, reduce) = (Call::new(Collective::Barrier, 2, 0), call());
    let memory: Vec<Memory> = (0..2).map(|r| Memory::new(&reduce, r)).collect();
    for (rank, list) in [(0u32, vec![barrier, reduce]), (1, vec![reduce])] {
        for call in list {
            let ring = registry().find("ring").expect("it exists").clone();
            let program = call.programs(&*ring).expect("it is offered")[rank as usize].clone();
            let plan = world.plan(program, &call.request()).expect("a plan");
            let m = &memory[rank as usize];
            world
                .submit(rank, &plan, m.input, m.output)
                .expect("submitted");
        }
    }
    let error = world.run().expect_err("they disagree").to_string();
    assert!(error.contains("mismatch: collective"), "{error}");
}
