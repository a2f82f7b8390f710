//! What every element type and operator promises.

mod common;

use common::{both, bytes, two, values};
use proptest::prelude::*;
use unisono_core::{DType, Element, Op};
use unisono_reduce::{Kernels, Operand, Unavailable};

#[test]
fn avg_of_integers_is_a_typed_error() {
    for dtype in DType::ALL {
        let found = Kernels::new(dtype, Op::Avg);
        if dtype.is_float() {
            assert_eq!(found.expect("floats have an average").dtype(), dtype);
        } else {
            let error = found.expect_err("integers have none");
            assert_eq!(error, Unavailable::NotDefined { dtype, op: Op::Avg });
            assert_eq!(
                error.to_string(),
                format!("operator `avg` does not exist for element type `{dtype}`")
            );
        }
    }
}

macro_rules! float_rules {
    ($t:ty, $min:expr, $max:expr) => {{
        let dtype = <$t as Element>::DTYPE;
        let same = |a: &$t, b: &$t| a.to_bits() == b.to_bits();
        for (min, max) in both(dtype, Op::Min).iter().zip(&both(dtype, Op::Max)) {
            for n in [1, 67] {
                let row = |x: $t| vec![x; n];
                let (plus, minus, nan, one) =
                    (row(0.0), row(-0.0), row(<$t>::NAN), row(<$t>::INFINITY));
                for (a, b) in [(&plus, &minus), (&minus, &plus)] {
                    assert!(two(min, a, b).iter().all(|x| same(x, &-0.0)));
                    assert!(two(max, a, b).iter().all(|x| same(x, &0.0)));
                }
                for kernels in [min, max] {
                    assert!(two(kernels, &minus, &minus).iter().all(|x| same(x, &-0.0)));
                    for (a, b) in [(&nan, &one), (&one, &nan), (&nan, &nan), (&minus, &nan)] {
                        assert!(two(kernels, a, b).iter().all(|x| x.is_nan()));
                    }
                }
                assert_eq!(two(min, &row($min), &row($max)), row($min));
                assert_eq!(two(max, &row($min), &row($max)), row($max));
            }
        }
    }};
}

#[test]
fn nan_wins_and_minus_zero_is_smaller() {
    float_rules!(f32, -1.5, f32::INFINITY);
    float_rules!(f64, f64::NEG_INFINITY, 2.25);
}

#[test]
fn nan_wins_at_every_place_of_many() {
    for op in [Op::Sum, Op::Prod, Op::Min, Op::Max, Op::Avg] {
        for kernels in both(DType::F32, op) {
            for place in 0..4 {
                let rows: Vec<_> = (0..4)
                    .map(|i| bytes(&[if i == place { f32::NAN } else { i as f32 }; 19]))
                    .collect();
                let operands: Vec<_> = rows.iter().map(|row| Operand::Bytes(row)).collect();
                let mut target = vec![0; 19 * 4];
                kernels.many(&mut target, &operands, Some(4));
                assert!(
                    values::<f32>(&target).iter().all(|x| x.is_nan()),
                    "{op} at {place}"
                );
            }
        }
    }
}

#[test]
fn f32_and_f64_average_by_a_true_division() {
    // 1/3 has no exact reciprocal: 5 * (1/3) and 5 / 3 differ in the last bit of f32 for some.
    for kernels in both(DType::F32, Op::Avg) {
        let sums: Vec<f32> = (0..2000).map(|i| i as f32 * 0.37).collect();
        let mut target = bytes(&sums);
        kernels.finish(&mut target, 3);
        assert_eq!(
            values::<f32>(&target),
            sums.iter().map(|x| x / 3.0).collect::<Vec<_>>()
        );
    }
    for kernels in both(DType::F64, Op::Avg) {
        let mut target = bytes(&[1.0f64; 5]);
        let other = bytes(&[0.5f64; 5]);
        kernels.many(
            &mut target,
            &[Operand::Bytes(&other), Operand::Target],
            Some(7),
        );
        assert_eq!(values::<f64>(&target), [1.5f64 / 7.0; 5]);
    }
}

#[test]
fn finish_leaves_other_operators_alone() {
    for dtype in DType::ALL {
        for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
            for kernels in both(dtype, op) {
                let before: Vec<u8> = (0..48).collect();
                let mut target = before.clone();
                kernels.finish(&mut target, 3);
                assert_eq!(target, before);
                kernels.many(&mut target, &[Operand::Target], Some(3));
                assert_eq!(target, before);
            }
        }
    }
}

/// The result for bytes that are aligned by accident of `Vec`, from both functions.
fn expected(kernels: &Kernels, a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut target = a.to_vec();
    kernels.accumulate(&mut target, b);
    target
}

/// Bytes that are finite numbers in every float type.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i * 37 + seed * 11) % 61) as u8)
        .collect()
}

#[test]
fn every_length_and_alignment_gives_the_same_and_spares_its_neighbours() {
    for dtype in DType::ALL {
        for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
            let [fast, portable] = both(dtype, op);
            for n in 0..=67 {
                let len = n * dtype.size();
                let (a, b) = (pattern(1, len), pattern(2, len));
                let result = expected(&portable, &a, &b);
                assert_eq!(expected(&fast, &a, &b), result, "{dtype} {op} {n}");
                let offset = n % 8;
                let shifted = |offset: usize, from: &[u8]| {
                    let mut bytes = vec![0xa5; len + 16];
                    bytes[offset..offset + len].copy_from_slice(from);
                    bytes
                };
                let source = shifted((offset + 3) % 8, &b);
                let source = &source[(offset + 3) % 8..][..len];
                for kernels in [&fast, &portable] {
                    let mut target = shifted(offset, &a);
                    kernels.accumulate(&mut target[offset..offset + len], source);
                    assert_eq!(target, shifted(offset, &result), "{dtype} {op} {n}");

                    let mut target = shifted(offset, &vec![0; len]);
                    kernels.combine(&mut target[offset..offset + len], &a, source);
                    assert_eq!(target, shifted(offset, &result), "{dtype} {op} {n}");

                    let mut target = shifted(offset, &a);
                    let operands = [Operand::Target, Operand::Bytes(source)];
                    kernels.many(&mut target[offset..offset + len], &operands, None);
                    assert_eq!(target, shifted(offset, &result), "{dtype} {op} {n}");
                }
            }
        }
    }
}

#[test]
fn offsets_one_to_seven_of_both_operands() {
    for dtype in DType::ALL {
        for kernels in both(dtype, Op::Sum) {
            let len = 67 * dtype.size();
            let (a, b) = (pattern(3, len), pattern(4, len));
            let result = expected(&kernels, &a, &b);
            for left in 0..8 {
                for right in 0..8 {
                    let mut target = vec![0xa5; len + 8];
                    target[left..left + len].copy_from_slice(&a);
                    let mut source = vec![0xa5; len + 8];
                    source[right..right + len].copy_from_slice(&b);
                    let source = &source[right..right + len];
                    kernels.accumulate(&mut target[left..left + len], source);
                    assert_eq!(target[left..left + len], result);
                    assert!(
                        target[..left]
                            .iter()
                            .chain(&target[left + len..])
                            .all(|&x| x == 0xa5)
                    );
                }
            }
        }
    }
}

#[test]
fn the_target_may_stand_at_any_place_of_many() {
    // Longer than one block of accumulators, and no multiple of it.
    let n = 2500;
    for dtype in DType::ALL {
        for op in [Op::Sum, Op::Max] {
            for kernels in both(dtype, op) {
                let rows: Vec<_> = (0..4).map(|i| pattern(i, n * dtype.size())).collect();
                let all: Vec<_> = rows.iter().map(|row| Operand::Bytes(row)).collect();
                for len in 1..=4 {
                    let mut elsewhere = vec![0x11; n * dtype.size()];
                    kernels.many(&mut elsewhere, &all[..len], None);
                    for place in 0..len {
                        let mut operands = all[..len].to_vec();
                        operands[place] = Operand::Target;
                        let mut target = rows[place].clone();
                        kernels.many(&mut target, &operands, None);
                        assert!(target == elsewhere, "{dtype} {op} {place} of {len}");
                    }
                }
            }
        }
    }
}

#[test]
fn one_source_is_a_copy() {
    for dtype in DType::ALL {
        for kernels in both(dtype, Op::Sum) {
            let source = pattern(5, 67 * dtype.size());
            let mut target = vec![0; source.len()];
            kernels.many(&mut target, &[Operand::Bytes(&source)], None);
            assert_eq!(target, source);
        }
    }
}

#[test]
#[should_panic(expected = "operand of 8 bytes for a target of 12 bytes of f32")]
fn operands_of_unequal_length_are_refused() {
    let kernels = Kernels::new(DType::F32, Op::Sum).unwrap();
    kernels.accumulate(&mut [0; 12], &[0; 8]);
}

#[test]
#[should_panic(expected = "a reduction needs a source")]
fn many_without_sources_is_refused() {
    let kernels = Kernels::new(DType::F32, Op::Sum).unwrap();
    kernels.many(&mut [0; 12], &[], None);
}

macro_rules! integers_match_plain_rust {
    ($($t:ident),*) => { proptest! {$(
        #[test]
        fn $t(pairs in prop::collection::vec(any::<($t, $t)>(), 0..200)) {
            let (a, b): (Vec<$t>, Vec<$t>) = pairs.iter().copied().unzip();
            for (op, f) in [
                (Op::Sum, $t::wrapping_add as fn($t, $t) -> $t),
                (Op::Prod, $t::wrapping_mul),
                (Op::Min, Ord::min),
                (Op::Max, Ord::max),
            ] {
                let expected: Vec<$t> = pairs.iter().map(|&(a, b)| f(a, b)).collect();
                for kernels in both(<$t as Element>::DTYPE, op) {
                    prop_assert_eq!(&two(&kernels, &a, &b), &expected);
                    // a (+) b (+) b: with the target in the middle.
                    let twice: Vec<$t> = pairs.iter().map(|&(a, b)| f(f(b, a), b)).collect();
                    let (mut target, other) = (bytes(&a), bytes(&b));
                    let other = Operand::Bytes(&other);
                    kernels.many(&mut target, &[other, Operand::Target, other], None);
                    prop_assert_eq!(values::<$t>(&target), twice);
                }
            }
        }
    )*}};
}

mod wrapping {
    use super::*;

    integers_match_plain_rust!(i8, i16, i32, i64, u8, u16, u32, u64);

    #[test]
    fn overflow_wraps() {
        for kernels in both(DType::I32, Op::Sum) {
            assert_eq!(two(&kernels, &[i32::MAX; 9], &[1; 9]), [i32::MIN; 9]);
        }
        for kernels in both(DType::U8, Op::Prod) {
            assert_eq!(two(&kernels, &[16u8; 40], &[17; 40]), [16; 40]);
        }
    }
}
