//! Any call, any algorithm, any timing: the same result.

mod support;

use proptest::prelude::*;
use support::{Call, assert_identical, registry};
use unisono_contract::null::Policy;
use unisono_core::{Collective, DType, Op, Rank};

fn call() -> impl Strategy<Value = Call> {
    let dtypes = prop::sample::select(DType::ALL.to_vec());
    let ops = prop::sample::select(Op::BUILT_IN.to_vec());
    let shape = (0..9usize, 1..10 as Rank, 0..9 as Rank, 0..1500u64, 1..6u64);
    (shape, 1..4u16, any::<bool>(), dtypes, ops).prop_map(
        |((collective, size, root, count, segments), channels, in_place, dtype, op)| {
            let collective = Collective::ALL[collective];
            Call {
                root: root % size,
                dtype,
                op: if op.accepts(dtype) { op } else { Op::Sum },
                in_place: in_place && collective != Collective::AllToAll,
                segments,
                channels,
                ..Call::new(collective, size, count)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_right_with_every_timing(
        call in call(),
        choice in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        let registry = registry();
        let offers: Vec<_> = registry.iter().filter_map(|a| call.programs(&**a)).collect();
        prop_assume!(!offers.is_empty());
        let programs = choice.get(&offers);
        let outputs = call.run(programs, Policy::hostile(seed));
        assert_identical(&call, &programs[0].algorithm, &outputs);
    }
}
