//! Operators of the user, operators whose operands must keep their order, and results given by name.

mod support;

use half::{bf16, f16};
use support::registry;
use unisono_contract::Lease;
use unisono_contract::null::Policy;
use unisono_core::{Collective, DType, Op, Rank};
use unisono_engine::{Request, World};
use unisono_program::{Algorithm, Context, build_all};
use unisono_reduce::{Kernels, UserOperator};

/// All_reduce, in place and not, with the same bits: every rank's vector in, every rank's result out; `None` where it is
/// not offered.
fn all_reduce<T: bytemuck::Pod>(
    algorithm: &dyn Algorithm,
    inputs: &[Vec<T>],
    (dtype, op, kernels): (DType, Op, Option<Kernels>),
    segments: u64,
) -> Option<Vec<Vec<T>>> {
    let size = inputs.len() as Rank;
    let cx = Context::full(Collective::AllReduce, 0, size)
        .with_commutative(op.commutative())
        .with_average(op == Op::Avg);
    algorithm.supports(&cx).ok()?;
    let programs = build_all(algorithm, &cx).expect("a program");
    let request = Request {
        count: inputs[0].len() as u64,
        dtype,
        op: Some(op),
        kernels,
        segments,
    };
    let run = |in_place: bool| -> Vec<Vec<T>> {
        let mut world = World::new(size, Policy::hostile(segments));
        let plans = world.plans(&programs, &request).expect("plans");
        let sources: Vec<_> = inputs.iter().cloned().map(Lease::new).collect();
        let targets: Vec<_> = inputs
            .iter()
            .map(|v| {
                Lease::new(if in_place {
                    v.clone()
                } else {
                    vec![T::zeroed(); v.len()]
                })
            })
            .collect();
        for (rank, plan) in plans.iter().enumerate() {
            let output = targets[rank].piece();
            let input = if in_place {
                output
            } else {
                sources[rank].piece()
            };
            world
                .submit(rank as Rank, plan, input, output)
                .expect("submitted");
        }
        world.run().expect("done");
        targets.into_iter().map(Lease::into_inner).collect()
    };
    let (outputs, others) = (run(true), run(false));
    for (output, other) in outputs.iter().zip(&others) {
        let (output, other): (&[u8], &[u8]) =
            (bytemuck::cast_slice(output), bytemuck::cast_slice(other));
        assert!(output == other, "{}: in place differs", algorithm.name());
    }
    Some(outputs)
}

/// One element per rank, with a built-in operator; all ranks must agree in the bits.
fn named<T: bytemuck::Pod>(algorithm: &str, dtype: DType, op: Op, values: &[T]) -> T {
    let registry = registry();
    let algorithm = registry.find(algorithm).expect("it exists");
    let inputs: Vec<Vec<T>> = values.iter().map(|v| vec![*v]).collect();
    let outputs = all_reduce(&**algorithm, &inputs, (dtype, op, None), 1).expect("it is offered");
    for output in &outputs {
        assert_eq!(
            bytemuck::bytes_of(&output[0]),
            bytemuck::bytes_of(&outputs[0][0])
        );
    }
    outputs[0][0]
}

/// The names of all algorithms that offer all_reduce among so many ranks.
fn offering(size: Rank) -> Vec<String> {
    let cx = Context::full(Collective::AllReduce, 0, size);
    let registry = registry();
    let offering = registry.iter().filter(|a| a.supports(&cx).is_ok());
    offering.map(|a| a.name().to_string()).collect()
}

#[test]
fn f16_is_rounded_once_in_the_one_shot_mesh() {
    let values = [2048.0, 1.0, 1.0, 1.0].map(f16::from_f32);
    let sum = named("mesh-oneshot", DType::F16, Op::Sum, &values);
    assert_eq!(sum.to_f32(), 2052.0);
}

#[test]
fn bf16_is_rounded_once_in_the_one_shot_mesh() {
    let values = [256.0, 1.0, 1.0, 1.0].map(bf16::from_f32);
    let sum = named("mesh-oneshot", DType::BF16, Op::Sum, &values);
    assert_eq!(sum.to_f32(), 260.0);
}

#[test]
fn the_average_of_the_largest_f16_does_not_overflow() {
    let values = [65504.0; 2].map(f16::from_f32);
    let average = named("mesh-oneshot", DType::F16, Op::Avg, &values);
    assert_eq!(average.to_f32(), 65504.0);
}

#[test]
fn integers_wrap() {
    for algorithm in offering(2) {
        let sum = named(&algorithm, DType::I32, Op::Sum, &[i32::MAX, 1]);
        assert_eq!(sum, i32::MIN, "{algorithm}");
        let sum = named(&algorithm, DType::U8, Op::Sum, &[200u8, 100]);
        assert_eq!(sum, 44, "{algorithm}");
    }
}

#[test]
fn nan_wins_wherever_it_sits() {
    for algorithm in offering(4) {
        for op in [Op::Min, Op::Max] {
            for place in 0..4 {
                let mut values = [-1.0f32, 2.0, f32::NEG_INFINITY, f32::INFINITY];
                values[place] = f32::NAN;
                let got = named(&algorithm, DType::F32, op, &values);
                assert!(got.is_nan(), "{algorithm} {op} {place}: {got}");
                let halves = values.map(f16::from_f32);
                let got = named(&algorithm, DType::F16, op, &halves);
                assert!(got.is_nan(), "{algorithm} {op} {place}: {got}");
            }
        }
    }
}

#[test]
fn minus_zero_is_smaller_than_plus_zero() {
    for algorithm in offering(3) {
        for place in 0..3 {
            let mut values = [0.0f64; 3];
            values[place] = -0.0;
            let min = named(&algorithm, DType::F64, Op::Min, &values);
            assert!(min == 0.0 && min.is_sign_negative(), "{algorithm} {place}");
            let max = named(&algorithm, DType::F64, Op::Max, &values.map(|v| -v));
            assert!(max == 0.0 && max.is_sign_positive(), "{algorithm} {place}");
        }
    }
}

/// `x -> a x + b` modulo 2^32 as (a, b): first the left one, then the right one. Associative, and order matters.
fn then(left: u64, right: u64) -> u64 {
    let (a, b) = ((left >> 32) as u32, left as u32);
    let (c, d) = ((right >> 32) as u32, right as u32);
    let (e, f) = (c.wrapping_mul(a), c.wrapping_mul(b).wrapping_add(d));
    u64::from(e) << 32 | u64::from(f)
}

fn composition() -> UserOperator {
    UserOperator::new::<u64>(7, false, |acc, x| {
        acc.iter_mut()
            .zip(x)
            .for_each(|(acc, x)| *acc = then(*acc, *x));
    })
    .expect("number 7 fits")
}

#[test]
fn operands_that_must_keep_their_order_keep_it() {
    let operator = composition();
    for size in 1..=9u64 {
        for (count, segments) in [(1, 1), (50, 3), (700, 2)] {
            let inputs: Vec<Vec<u64>> = (0..size)
                .map(|r| {
                    (0..count)
                        .map(|i| (2 * r + 3) << 32 | (r * 91 + i))
                        .collect()
                })
                .collect();
            let expected: Vec<u64> = (0..count as usize)
                .map(|i| inputs.iter().map(|v| v[i]).reduce(then).expect("a rank"))
                .collect();
            let mut ran = Vec::new();
            for algorithm in registry().iter() {
                let kernels = Some(Kernels::user(&operator));
                let call = (DType::U64, operator.op(), kernels);
                if let Some(outputs) = all_reduce(&**algorithm, &inputs, call, segments) {
                    ran.push(algorithm.name().to_string());
                    for output in outputs {
                        assert!(output == expected, "{} of {size} ranks", algorithm.name());
                    }
                }
            }
            assert!(ran.iter().any(|n| n == "mesh-oneshot"), "{ran:?}");
            assert!(
                size < 3 || !ran.iter().any(|n| n == "ring"),
                "a ring changes the order"
            );
        }
    }
}

#[test]
fn an_operator_of_the_user_runs_with_every_algorithm() {
    let xor = UserOperator::new::<u32>(0, true, |acc, x| {
        acc.iter_mut().zip(x).for_each(|(acc, x)| *acc ^= x);
    })
    .expect("number 0 fits");
    let inputs: Vec<Vec<u32>> = (0..5u32)
        .map(|r| {
            (0..333)
                .map(|i| (r + 1).wrapping_mul(0x9e37_79b9) ^ i)
                .collect()
        })
        .collect();
    for name in offering(5) {
        let registry = registry();
        let algorithm = registry.find(&name).expect("it exists");
        let call = (DType::U32, xor.op(), Some(Kernels::user(&xor)));
        let outputs = all_reduce(&**algorithm, &inputs, call, 2).expect("it is offered");
        for (i, got) in outputs[3].iter().enumerate() {
            let want = inputs.iter().fold(0, |acc, v| acc ^ v[i]);
            assert_eq!(*got, want, "{name} element {i}");
        }
    }
}
