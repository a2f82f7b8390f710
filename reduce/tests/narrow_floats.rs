//! `f16` and `bf16`: bit for bit what `half` does, but for the payload of NaN.

mod common;

use common::{both, bytes, two, values};
use half::{bf16, f16};
use unisono_core::{DType, Op};
use unisono_reduce::{Kernels, Operand};

/// Second operands: all special values, the edges of rounding and range, and a scatter.
fn sample(special: &[u16]) -> Vec<u16> {
    let scatter = (0..24u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 16) as u16);
    let signed = special.iter().flat_map(|&bits| [bits, bits | 0x8000]);
    signed.chain(scatter).collect()
}

const F16_EDGES: &[u16] = &[
    0x0000, 0x0001, 0x0002, 0x03ff, 0x0400, 0x0401, 0x1000, 0x3555, 0x3bff, 0x3c00, 0x3c01, 0x6400,
    0x6801, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff,
];
const BF16_EDGES: &[u16] = &[
    0x0000, 0x0001, 0x0002, 0x007f, 0x0080, 0x0081, 0x3eab, 0x3f7f, 0x3f80, 0x3f81, 0x4300, 0x4381,
    0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff,
];

/// The rule of the contract, on `f32`, in plain words.
fn least(a: f32, b: f32) -> f32 {
    match a.partial_cmp(&b) {
        None => f32::NAN,
        Some(std::cmp::Ordering::Less) => a,
        Some(std::cmp::Ordering::Greater) => b,
        Some(std::cmp::Ordering::Equal) if a.is_sign_negative() => a,
        Some(std::cmp::Ordering::Equal) => b,
    }
}

/// All 65536 first operands against every second one.
macro_rules! exhaustive {
    ($t:ident, $edges:expr) => {{
        let most = |a: $t, b: $t| -$t::from_f32(least(-a.to_f32(), -b.to_f32()));
        let min = |a: $t, b: $t| $t::from_f32(least(a.to_f32(), b.to_f32()));
        let all: Vec<$t> = (0..=u16::MAX).map($t::from_bits).collect();
        let reference: [(Op, &dyn Fn($t, $t) -> $t); 4] = [
            (Op::Sum, &|a, b| a + b),
            (Op::Prod, &|a, b| a * b),
            (Op::Min, &min),
            (Op::Max, &most),
        ];
        for (op, expected) in reference {
            for kernels in both(<$t as unisono_core::Element>::DTYPE, op) {
                for second in sample($edges).into_iter().map($t::from_bits) {
                    let results = two(&kernels, &all, &vec![second; all.len()]);
                    for (&first, result) in all.iter().zip(results) {
                        let expected = expected(first, second);
                        assert!(
                            result.to_bits() == expected.to_bits()
                                || result.is_nan() && expected.is_nan(),
                            "{op} {first:?} {second:?}: {result:?} instead of {expected:?}",
                        );
                    }
                }
            }
        }
    }};
}

#[test]
fn f16_has_the_bits_of_half_for_every_first_operand() {
    exhaustive!(f16, F16_EDGES);
}

#[test]
fn bf16_has_the_bits_of_half_for_every_first_operand() {
    exhaustive!(bf16, BF16_EDGES);
}

/// `target (+) sources...`, 67 times over, so that steps and rest are both in use.
fn many_f16(kernels: &Kernels, sources: &[f32], finish: Option<u32>) -> Vec<f16> {
    let rows: Vec<_> = sources
        .iter()
        .map(|&x| bytes(&[f16::from_f32(x); 67]))
        .collect();
    let operands: Vec<_> = rows.iter().map(|row| Operand::Bytes(row)).collect();
    let mut target = vec![0; 67 * 2];
    kernels.many(&mut target, &operands, finish);
    values(&target)
}

#[test]
fn many_rounds_f16_once() {
    // In f16 every step would round 2049 down to 2048; in f32 2051 is exact, and then ties to even.
    for kernels in both(DType::F16, Op::Sum) {
        let result = many_f16(&kernels, &[2048.0, 1.0, 1.0, 1.0], None);
        assert_eq!(result, [f16::from_f32(2052.0); 67]);
    }
}

#[test]
fn many_rounds_bf16_once() {
    for kernels in both(DType::BF16, Op::Sum) {
        let rows = [256.0, 1.0, 1.0, 1.0].map(|x| bytes(&[bf16::from_f32(x); 67]));
        let mut target = vec![0; 67 * 2];
        kernels.many(
            &mut target,
            &rows.each_ref().map(|row| Operand::Bytes(row)),
            None,
        );
        assert_eq!(values::<bf16>(&target), [bf16::from_f32(260.0); 67]);
    }
}

#[test]
fn many_divides_before_it_rounds() {
    for kernels in both(DType::F16, Op::Avg) {
        let result = many_f16(&kernels, &[65504.0, 65504.0], Some(2));
        assert_eq!(result, [f16::MAX; 67], "the sum alone is infinite");
        let result = many_f16(&kernels, &[65504.0, 65504.0], None);
        assert_eq!(result, [f16::INFINITY; 67]);
    }
}

#[test]
fn many_is_a_left_fold_in_f32() {
    // 1e4 + (2^-14 + -1e4) differs from the fold from the left.
    let sources = [1.0e4, 6.0e-5, -1.0e4, 0.3, 65504.0, -3.0];
    let exact: Vec<f32> = sources.iter().map(|&x| f16::from_f32(x).to_f32()).collect();
    for (op, fold) in [
        (Op::Sum, (|a, b| a + b) as fn(f32, f32) -> f32),
        (Op::Prod, |a, b| a * b),
    ] {
        let expected = f16::from_f32(exact.iter().copied().reduce(fold).unwrap());
        for kernels in both(DType::F16, op) {
            let result = many_f16(&kernels, &sources, None);
            assert!(
                result.iter().all(|x| x.to_bits() == expected.to_bits()),
                "{op}"
            );
        }
    }
}

#[test]
fn finish_divides_in_f32_and_rounds_to_nearest() {
    for kernels in both(DType::F16, Op::Avg) {
        for ranks in [1, 2, 3, 7, 1000] {
            let sums: Vec<f16> = (0..0x7c00).map(f16::from_bits).collect();
            let mut target = bytes(&sums);
            kernels.finish(&mut target, ranks);
            for (sum, avg) in sums.iter().zip(values::<f16>(&target)) {
                assert_eq!(
                    avg,
                    f16::from_f32(sum.to_f32() / ranks as f32),
                    "{sum} / {ranks}"
                );
            }
        }
    }
}
