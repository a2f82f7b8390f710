//! Every operation with every algorithm on real data.

mod support;

use support::{Call, assert_identical, registry, roots, with_every_algorithm};
use unisono_contract::null::Policy;
use unisono_core::{Collective, DType, Op, Rank};

fn counts(n: u64) -> Vec<u64> {
    let mut counts = vec![0, 1, n.saturating_sub(1), n, n + 1, 2 * n + 1, 127, 4097];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// (operation, algorithm, world, count, in or out of place) with i32 and f32 sums.
fn every_world_and_count(sizes: std::ops::RangeInclusive<Rank>, dtype: DType) {
    let registry = registry();
    for collective in Collective::ALL {
        for size in sizes.clone() {
            let mut ran = 0;
            for root in roots(collective, size) {
                for count in counts(size.into()) {
                    for in_place in [false, true] {
                        if in_place && collective == Collective::AllToAll {
                            continue;
                        }
                        let call = Call {
                            root,
                            dtype,
                            in_place,
                            segments: 1 + count % 3,
                            ..Call::new(collective, size, count)
                        };
                        ran += with_every_algorithm(&registry, &call, Policy::instant());
                    }
                }
            }
            assert!(ran > 0, "nobody offers {collective}");
        }
    }
}

#[test]
fn every_operation_is_right_in_i32() {
    every_world_and_count(1..=9, DType::I32);
}

#[test]
fn every_operation_is_right_in_f32() {
    every_world_and_count(1..=9, DType::F32);
}

#[test]
fn every_dtype_and_operator_is_right() {
    let registry = registry();
    let reducing = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::Reduce,
    ];
    for collective in reducing {
        for size in [2, 3, 5] {
            for count in [1, u64::from(size) + 1, 4097] {
                for dtype in DType::ALL {
                    for op in Op::BUILT_IN.into_iter().filter(|op| op.accepts(dtype)) {
                        let call = Call {
                            dtype,
                            op,
                            segments: 2,
                            in_place: count % 2 == 0,
                            ..Call::new(collective, size, count)
                        };
                        with_every_algorithm(&registry, &call, Policy::instant());
                    }
                }
            }
        }
    }
}

#[test]
fn channels_cut_every_block_and_stay_right() {
    let registry = registry();
    for collective in Collective::ALL {
        for (size, channels) in [(2, 2), (3, 2), (4, 3), (5, 4)] {
            for count in [0, 1, 7, 129, 1000] {
                for in_place in [false, collective != Collective::AllToAll] {
                    let call = Call {
                        channels,
                        in_place,
                        segments: 2,
                        op: Op::Avg,
                        dtype: DType::F32,
                        ..Call::new(collective, size, count)
                    };
                    with_every_algorithm(&registry, &call, Policy::instant());
                }
            }
        }
    }
}

#[test]
fn hostile_byte_pipes_change_no_bit() {
    let registry = registry();
    for seed in 0..40 {
        let size = 2 + (seed % 6) as Rank;
        for collective in Collective::ALL {
            let call = Call {
                dtype: DType::F32,
                root: size - 1,
                segments: 1 + seed % 4,
                in_place: collective != Collective::AllToAll && seed % 2 == 0,
                ..Call::new(collective, size, 1 + seed * 37 % 700)
            };
            for algorithm in registry.iter() {
                if let Some(programs) = call.programs(&**algorithm) {
                    let calm = call.run(&programs, Policy::instant());
                    let hostile = call.run(&programs, Policy::hostile(seed));
                    assert_identical(&call, algorithm.name(), &hostile);
                    assert!(
                        calm == hostile,
                        "{} {call:?}: timing changed bits",
                        algorithm.name()
                    );
                }
            }
        }
    }
}

/// The full product, cut by world size so that its parts run side by side and one can be repeated alone.
mod full_product {
    use super::*;

    fn both_dtypes(sizes: std::ops::RangeInclusive<Rank>) {
        for size in sizes {
            for dtype in [DType::I32, DType::F32] {
                every_world_and_count(size..=size, dtype);
            }
            eprintln!("world of {size}: right");
        }
    }

    macro_rules! parts {
        ($($name:ident: $sizes:expr;)*) => {$(
            #[test]
            #[ignore = "the full product takes an hour: run in release before a release"]
            fn $name() {
                both_dtypes($sizes);
            }
        )*};
    }

    parts! {
        worlds_1_to_24: 1..=24;
        worlds_25_to_36: 25..=36;
        worlds_37_to_44: 37..=44;
        worlds_45_to_51: 45..=51;
        worlds_52_to_57: 52..=57;
        worlds_58_to_62: 58..=62;
        worlds_63_to_65: 63..=65;
    }
}
