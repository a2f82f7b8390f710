//! Operators that users bring along.

mod common;

use common::{bytes, values};
use unisono_core::{DType, Op, UserOp};
use unisono_reduce::{Kernels, Operand, Unavailable, UserOperator};

/// 2 x 2 upper unitriangular matrices would do as well; this one is smaller and does not commute:
/// affine maps `x -> s x + t` over u8, packed in a u16, composed from left to right.
fn compose(acc: &mut [u16], x: &[u16]) {
    assert_eq!(acc.len(), x.len());
    for (acc, x) in acc.iter_mut().zip(x) {
        let ([s, t], [u, v]) = (acc.to_ne_bytes(), x.to_ne_bytes());
        let scaled = t.wrapping_mul(u).wrapping_add(v);
        *acc = u16::from_ne_bytes([s.wrapping_mul(u), scaled]);
    }
}

fn operator() -> UserOperator {
    UserOperator::new::<u16>(7, false, compose).expect("number 7 fits")
}

fn composed(mut rows: impl Iterator<Item = Vec<u16>>) -> Vec<u16> {
    let mut acc = rows.next().unwrap();
    rows.for_each(|row| compose(&mut acc, &row));
    acc
}

/// More than one block of 4096 bytes, and no multiple of it.
const N: usize = 5001;

fn row(seed: u16) -> Vec<u16> {
    (0..N as u16)
        .map(|i| i.wrapping_mul(2531).wrapping_add(seed * 17))
        .collect()
}

#[test]
fn a_user_operator_says_what_it_is() {
    let operator = operator();
    assert_eq!(operator.op(), Op::User(UserOp::new(7, false).unwrap()));
    assert_eq!(operator.dtype(), DType::U16);
    let kernels = Kernels::user(&operator);
    assert_eq!((kernels.dtype(), kernels.op()), (DType::U16, operator.op()));
    assert!(!kernels.op().commutative());
    assert!(UserOperator::new::<u16>(0x8000, true, compose).is_none());
}

#[test]
fn an_unregistered_operator_is_a_typed_error() {
    let user = UserOp::new(3, true).unwrap();
    let error = Kernels::new(DType::F32, Op::User(user)).unwrap_err();
    assert_eq!(error, Unavailable::NotRegistered { operator: user });
    assert_eq!(error.to_string(), "user operator 3 is not registered");
}

#[test]
fn order_is_kept_with_the_target_at_any_place() {
    let kernels = Kernels::user(&operator());
    let rows: Vec<_> = (1..=4).map(|seed| bytes(&row(seed))).collect();
    for len in 1..=4 {
        let expected = composed((1..=len as u16).map(row));
        for place in 0..len {
            let mut operands: Vec<_> = rows[..len].iter().map(|row| Operand::Bytes(row)).collect();
            operands[place] = Operand::Target;
            let mut target = rows[place].clone();
            kernels.many(&mut target, &operands, Some(4));
            assert!(values::<u16>(&target) == expected, "{place} of {len}");
        }
    }
}

#[test]
fn functions_see_aligned_slices_whatever_the_bytes() {
    let kernels = Kernels::user(&operator());
    let (a, b) = (bytes(&row(1)), bytes(&row(2)));
    let expected = composed([1, 2].into_iter().map(row));
    for left in 0..8 {
        for right in 0..8 {
            let mut target = vec![0xa5; a.len() + 8];
            let mut source = vec![0; b.len() + 8];
            target[left..left + a.len()].copy_from_slice(&a);
            source[right..right + b.len()].copy_from_slice(&b);
            let source = &source[right..right + b.len()];
            let inside = left..left + a.len();
            kernels.accumulate(&mut target[inside.clone()], source);
            assert!(values::<u16>(&target[inside.clone()]) == expected);
            let outside = target[..left].iter().chain(&target[inside.end..]);
            assert!(outside.copied().all(|x| x == 0xa5));

            target[inside.clone()].fill(0);
            kernels.combine(&mut target[inside.clone()], &a, source);
            assert!(values::<u16>(&target[inside]) == expected);
        }
    }
}

#[test]
fn finish_leaves_user_operators_alone() {
    let kernels = Kernels::user(&operator());
    let mut target = bytes(&row(1));
    kernels.finish(&mut target, 2);
    assert_eq!(values::<u16>(&target), row(1));
}
