//! Element types as kernels see them: bytes of any alignment, and the number inside.
//!
//! Most types need no more than [`Lane::load`] and [`Lane::store`]: the loops of [`plain`] become
//! vector code. `bf16` goes in pairs; `f16` in steps around conversions in hardware, where there are
//! such.

use crate::isa::{Isa, STEP};
use crate::narrow::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, on_bf16_pairs};
use crate::number::{Number, Operator};

/// An element type.
pub(crate) trait Lane: 'static {
    /// Its bytes: an array, aligned to 1.
    type Raw: bytemuck::Pod;
    /// What it is accumulated in.
    type Acc: Number;

    fn load(raw: Self::Raw) -> Self::Acc;
    fn store(value: Self::Acc) -> Self::Raw;

    /// `target = target (+) source`
    #[inline(always)]
    fn accumulate<I: Isa, O: Operator>(_isa: I, target: &mut [Self::Raw], source: &[Self::Raw]) {
        plain::accumulate::<Self, O>(target, source);
    }

    /// `target = a (+) b`
    #[inline(always)]
    fn combine<I: Isa, O: Operator>(
        _isa: I,
        target: &mut [Self::Raw],
        a: &[Self::Raw],
        b: &[Self::Raw],
    ) {
        plain::combine::<Self, O>(target, a, b);
    }

    /// `acc = source`
    #[inline(always)]
    fn widen<I: Isa>(_isa: I, acc: &mut [Self::Acc], source: &[Self::Raw]) {
        plain::widen::<Self>(acc, source);
    }

    /// `acc = acc (+) source`
    #[inline(always)]
    fn fold<I: Isa, O: Operator>(_isa: I, acc: &mut [Self::Acc], source: &[Self::Raw]) {
        plain::fold::<Self, O>(acc, source);
    }

    /// `target = acc`, rounded
    #[inline(always)]
    fn narrow<I: Isa>(_isa: I, target: &mut [Self::Raw], acc: &[Self::Acc]) {
        plain::narrow::<Self>(target, acc);
    }
}

mod plain {
    //! Element by element, as one writes it down.

    use super::{Lane, Operator};

    #[inline(always)]
    pub(super) fn accumulate<T: Lane + ?Sized, O: Operator>(
        target: &mut [T::Raw],
        source: &[T::Raw],
    ) {
        for (t, s) in target.iter_mut().zip(source) {
            *t = T::store(O::apply(T::load(*t), T::load(*s)));
        }
    }

    #[inline(always)]
    pub(super) fn combine<T: Lane + ?Sized, O: Operator>(
        target: &mut [T::Raw],
        a: &[T::Raw],
        b: &[T::Raw],
    ) {
        for ((t, a), b) in target.iter_mut().zip(a).zip(b) {
            *t = T::store(O::apply(T::load(*a), T::load(*b)));
        }
    }

    #[inline(always)]
    pub(super) fn widen<T: Lane + ?Sized>(acc: &mut [T::Acc], source: &[T::Raw]) {
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = T::load(*s);
        }
    }

    #[inline(always)]
    pub(super) fn fold<T: Lane + ?Sized, O: Operator>(acc: &mut [T::Acc], source: &[T::Raw]) {
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = O::apply(*acc, T::load(*s));
        }
    }

    #[inline(always)]
    pub(super) fn narrow<T: Lane + ?Sized>(target: &mut [T::Raw], acc: &[T::Acc]) {
        for (t, acc) in target.iter_mut().zip(acc) {
            *t = T::store(*acc);
        }
    }
}

macro_rules! own_accumulator {
    ($($t:ty),*) => {$(
        impl Lane for $t {
            type Raw = [u8; size_of::<$t>()];
            type Acc = $t;
            #[inline(always)]
            fn load(raw: Self::Raw) -> $t { <$t>::from_ne_bytes(raw) }
            #[inline(always)]
            fn store(value: $t) -> Self::Raw { value.to_ne_bytes() }
        }
    )*};
}

own_accumulator!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// Two `bf16` combined as one word.
#[inline(always)]
fn pair<O: Operator>(a: [[u8; 2]; 2], b: [[u8; 2]; 2]) -> [[u8; 2]; 2] {
    let word = |pair| u32::from_ne_bytes(bytemuck::cast(pair));
    bytemuck::cast(on_bf16_pairs(word(a), word(b), O::apply).to_ne_bytes())
}

impl Lane for half::bf16 {
    type Raw = [u8; 2];
    type Acc = f32;

    #[inline(always)]
    fn load(raw: [u8; 2]) -> f32 {
        bf16_to_f32(u16::from_ne_bytes(raw))
    }

    #[inline(always)]
    fn store(value: f32) -> [u8; 2] {
        f32_to_bf16(value).to_ne_bytes()
    }

    #[inline(always)]
    fn accumulate<I: Isa, O: Operator>(_isa: I, target: &mut [[u8; 2]], source: &[[u8; 2]]) {
        let (targets, target) = target.as_chunks_mut();
        let (sources, source) = source.as_chunks();
        for (t, s) in targets.iter_mut().zip(sources) {
            *t = pair::<O>(*t, *s);
        }
        plain::accumulate::<Self, O>(target, source);
    }

    #[inline(always)]
    fn combine<I: Isa, O: Operator>(_isa: I, target: &mut [[u8; 2]], a: &[[u8; 2]], b: &[[u8; 2]]) {
        let (targets, target) = target.as_chunks_mut();
        let (pairs_a, a) = a.as_chunks();
        let (pairs_b, b) = b.as_chunks();
        for ((t, a), b) in targets.iter_mut().zip(pairs_a).zip(pairs_b) {
            *t = pair::<O>(*a, *b);
        }
        plain::combine::<Self, O>(target, a, b);
    }
}

/// The part of a slice in full steps and the rest. Without conversions in hardware all is rest.
#[inline(always)]
fn steps<I: Isa, T>(slice: &[T]) -> (&[[T; STEP]], &[T]) {
    if I::CONVERTS_F16 {
        slice.as_chunks()
    } else {
        (&[], slice)
    }
}

#[inline(always)]
fn steps_mut<I: Isa, T>(slice: &mut [T]) -> (&mut [[T; STEP]], &mut [T]) {
    if I::CONVERTS_F16 {
        slice.as_chunks_mut()
    } else {
        (&mut [], slice)
    }
}

/// `a = a (+) b` for one step.
#[inline(always)]
fn apply<O: Operator>(mut a: [f32; STEP], b: &[f32; STEP]) -> [f32; STEP] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = O::apply(*a, *b);
    }
    a
}

impl Lane for half::f16 {
    type Raw = [u8; 2];
    type Acc = f32;

    #[inline(always)]
    fn load(raw: [u8; 2]) -> f32 {
        f16_to_f32(u16::from_ne_bytes(raw))
    }

    #[inline(always)]
    fn store(value: f32) -> [u8; 2] {
        f32_to_f16(value).to_ne_bytes()
    }

    #[inline(always)]
    fn accumulate<I: Isa, O: Operator>(isa: I, target: &mut [[u8; 2]], source: &[[u8; 2]]) {
        let (targets, target) = steps_mut::<I, _>(target);
        let (sources, source) = steps::<I, _>(source);
        for (t, s) in targets.iter_mut().zip(sources) {
            *t = isa.narrow_f16(&apply::<O>(isa.widen_f16(t), &isa.widen_f16(s)));
        }
        plain::accumulate::<Self, O>(target, source);
    }

    #[inline(always)]
    fn combine<I: Isa, O: Operator>(isa: I, target: &mut [[u8; 2]], a: &[[u8; 2]], b: &[[u8; 2]]) {
        let (targets, target) = steps_mut::<I, _>(target);
        let (many_a, a) = steps::<I, _>(a);
        let (many_b, b) = steps::<I, _>(b);
        for ((t, a), b) in targets.iter_mut().zip(many_a).zip(many_b) {
            *t = isa.narrow_f16(&apply::<O>(isa.widen_f16(a), &isa.widen_f16(b)));
        }
        plain::combine::<Self, O>(target, a, b);
    }

    #[inline(always)]
    fn widen<I: Isa>(isa: I, acc: &mut [f32], source: &[[u8; 2]]) {
        let (accs, acc) = steps_mut::<I, _>(acc);
        let (sources, source) = steps::<I, _>(source);
        for (acc, s) in accs.iter_mut().zip(sources) {
            *acc = isa.widen_f16(s);
        }
        plain::widen::<Self>(acc, source);
    }

    #[inline(always)]
    fn fold<I: Isa, O: Operator>(isa: I, acc: &mut [f32], source: &[[u8; 2]]) {
        let (accs, acc) = steps_mut::<I, _>(acc);
        let (sources, source) = steps::<I, _>(source);
        for (acc, s) in accs.iter_mut().zip(sources) {
            *acc = apply::<O>(*acc, &isa.widen_f16(s));
        }
        plain::fold::<Self, O>(acc, source);
    }

    #[inline(always)]
    fn narrow<I: Isa>(isa: I, target: &mut [[u8; 2]], acc: &[f32]) {
        let (targets, target) = steps_mut::<I, _>(target);
        let (accs, acc) = steps::<I, _>(acc);
        for (t, acc) in targets.iter_mut().zip(accs) {
            *t = isa.narrow_f16(acc);
        }
        plain::narrow::<Self>(target, acc);
    }
}
