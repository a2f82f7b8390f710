//! The kernels themselves, generic over instruction set, element type and operator.
//!
//! All are `inline(always)`: they take on the features of the function they are inlined into.
//! Lengths have been checked by the caller.

use bytemuck::{cast_slice, cast_slice_mut};

use crate::Operand;
use crate::isa::Isa;
use crate::lane::Lane;
use crate::number::{Number, Operator};

/// Elements that [`many`] accumulates at a time: 4 KiB of `f32`, which stay in the first cache
/// together with the sources.
const BLOCK: usize = 1024;
/// Up to so many elements need no block.
const SHORT: usize = 16;

#[inline(always)]
pub(crate) fn accumulate<T: Lane, O: Operator>(isa: impl Isa, target: &mut [u8], source: &[u8]) {
    T::accumulate::<_, O>(isa, cast_slice_mut(target), cast_slice(source));
}

#[inline(always)]
pub(crate) fn combine<T: Lane, O: Operator>(isa: impl Isa, target: &mut [u8], a: &[u8], b: &[u8]) {
    T::combine::<_, O>(isa, cast_slice_mut(target), cast_slice(a), cast_slice(b));
}

#[inline(always)]
pub(crate) fn many<T: Lane, O: Operator>(
    isa: impl Isa,
    target: &mut [u8],
    sources: &[Operand<'_>],
    finish: Option<u32>,
) {
    let target: &mut [T::Raw] = cast_slice_mut(target);
    // Short targets are usual and need no block to be cleared for them.
    let mut short = [T::Acc::ZERO; SHORT];
    let mut long;
    let block: &mut [T::Acc] = if target.len() <= SHORT {
        &mut short
    } else {
        long = [T::Acc::ZERO; BLOCK];
        &mut long
    };
    for start in (0..target.len()).step_by(BLOCK) {
        let range = start..target.len().min(start + BLOCK);
        let acc = &mut block[..range.len()];
        for (place, source) in sources.iter().enumerate() {
            let source = match source {
                Operand::Target => &target[range.clone()],
                Operand::Bytes(bytes) => &cast_slice(bytes)[range.clone()],
            };
            if place == 0 {
                T::widen(isa, acc, source);
            } else {
                T::fold::<_, O>(isa, acc, source);
            }
        }
        if let Some(ranks) = finish {
            acc.iter_mut().for_each(|acc| *acc = acc.over(ranks));
        }
        T::narrow(isa, &mut target[range], acc);
    }
}

#[inline(always)]
pub(crate) fn finish<T: Lane, O: Operator>(isa: impl Isa, target: &mut [u8], ranks: u32) {
    many::<T, O>(isa, target, &[Operand::Target], Some(ranks));
}
