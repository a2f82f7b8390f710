//! Shared by the tests of kernels.
#![allow(dead_code, unreachable_pub)] // every test file uses its own part

use unisono_core::{DType, Element, Op};
use unisono_reduce::Kernels;

/// The fast kernels of this machine, and the portable ones.
pub fn both(dtype: DType, op: Op) -> [Kernels; 2] {
    [
        Kernels::new(dtype, op).expect("built in"),
        Kernels::portable(dtype, op).expect("built in"),
    ]
}

pub fn bytes<T: Element>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

pub fn values<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// `a (+) b` by both functions of two operands, which must agree.
pub fn two<T: Element>(kernels: &Kernels, a: &[T], b: &[T]) -> Vec<T> {
    let (a, b) = (bytes(a), bytes(b));
    let mut accumulated = a.clone();
    kernels.accumulate(&mut accumulated, &b);
    let mut combined = vec![0xee; a.len()];
    kernels.combine(&mut combined, &a, &b);
    assert!(accumulated == combined);
    values(&combined)
}
