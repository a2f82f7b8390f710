//! Element types as kernels see them: bytes of any alignment, and the number inside.
//!
//! Most types need no more than [`Lane::load`] and [`Lane::store`]: the plain loops below become
//! vector code. `f16` replaces them by loops in steps, around conversions in hardware.

use crate::isa::{Isa, STEP};
use crate::narrow::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
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
    fn accumulate<O: Operator>(_isa: impl Isa, target: &mut [Self::Raw], source: &[Self::Raw]) {
        for (t, s) in target.iter_mut().zip(source) {
            *t = Self::store(O::apply(Self::load(*t), Self::load(*s)));
        }
    }

    /// `target = a (+) b`
    #[inline(always)]
    fn combine<O: Operator>(
        _isa: impl Isa,
        target: &mut [Self::Raw],
        a: &[Self::Raw],
        b: &[Self::Raw],
    ) {
        for ((t, a), b) in target.iter_mut().zip(a).zip(b) {
            *t = Self::store(O::apply(Self::load(*a), Self::load(*b)));
        }
    }

    /// `acc = source`
    #[inline(always)]
    fn widen(_isa: impl Isa, acc: &mut [Self::Acc], source: &[Self::Raw]) {
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = Self::load(*s);
        }
    }

    /// `acc = acc (+) source`
    #[inline(always)]
    fn fold<O: Operator>(_isa: impl Isa, acc: &mut [Self::Acc], source: &[Self::Raw]) {
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = O::apply(*acc, Self::load(*s));
        }
    }

    /// `target = acc`, rounded
    #[inline(always)]
    fn narrow(_isa: impl Isa, target: &mut [Self::Raw], acc: &[Self::Acc]) {
        for (t, acc) in target.iter_mut().zip(acc) {
            *t = Self::store(*acc);
        }
    }
}

macro_rules! plain {
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

plain!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

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
}

/// `a (+) b` for one step.
#[inline(always)]
fn step<O: Operator>(a: &[f32; STEP], b: &[f32; STEP]) -> [f32; STEP] {
    std::array::from_fn(|i| O::apply(a[i], b[i]))
}

// Full steps first; the rest, shorter than a step, element by element as all other types.
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
    fn accumulate<O: Operator>(isa: impl Isa, target: &mut [[u8; 2]], source: &[[u8; 2]]) {
        let (targets, target) = target.as_chunks_mut::<STEP>();
        let (sources, source) = source.as_chunks::<STEP>();
        for (t, s) in targets.iter_mut().zip(sources) {
            *t = isa.narrow_f16(&step::<O>(&isa.widen_f16(t), &isa.widen_f16(s)));
        }
        for (t, s) in target.iter_mut().zip(source) {
            *t = Self::store(O::apply(Self::load(*t), Self::load(*s)));
        }
    }

    #[inline(always)]
    fn combine<O: Operator>(
        isa: impl Isa,
        target: &mut [[u8; 2]],
        a: &[[u8; 2]],
        b: &[[u8; 2]],
    ) {
        let (targets, target) = target.as_chunks_mut::<STEP>();
        let (many_a, a) = a.as_chunks::<STEP>();
        let (many_b, b) = b.as_chunks::<STEP>();
        for ((t, a), b) in targets.iter_mut().zip(many_a).zip(many_b) {
            *t = isa.narrow_f16(&step::<O>(&isa.widen_f16(a), &isa.widen_f16(b)));
        }
        for ((t, a), b) in target.iter_mut().zip(a).zip(b) {
            *t = Self::store(O::apply(Self::load(*a), Self::load(*b)));
        }
    }

    #[inline(always)]
    fn widen(isa: impl Isa, acc: &mut [f32], source: &[[u8; 2]]) {
        let (accs, acc) = acc.as_chunks_mut::<STEP>();
        let (sources, source) = source.as_chunks::<STEP>();
        for (acc, s) in accs.iter_mut().zip(sources) {
            *acc = isa.widen_f16(s);
        }
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = Self::load(*s);
        }
    }

    #[inline(always)]
    fn fold<O: Operator>(isa: impl Isa, acc: &mut [f32], source: &[[u8; 2]]) {
        let (accs, acc) = acc.as_chunks_mut::<STEP>();
        let (sources, source) = source.as_chunks::<STEP>();
        for (acc, s) in accs.iter_mut().zip(sources) {
            *acc = step::<O>(acc, &isa.widen_f16(s));
        }
        for (acc, s) in acc.iter_mut().zip(source) {
            *acc = O::apply(*acc, Self::load(*s));
        }
    }

    #[inline(always)]
    fn narrow(isa: impl Isa, target: &mut [[u8; 2]], acc: &[f32]) {
        let (targets, target) = target.as_chunks_mut::<STEP>();
        let (accs, acc) = acc.as_chunks::<STEP>();
        for (t, acc) in targets.iter_mut().zip(accs) {
            *t = isa.narrow_f16(acc);
        }
        for (t, acc) in target.iter_mut().zip(acc) {
            *t = Self::store(*acc);
        }
    }
}
