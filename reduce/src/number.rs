//! Arithmetic on what kernels accumulate in, and the operators made of it.
//!
//! Everything is free of branches, so that the loops around it become vector code.

/// A type that elements are accumulated in: every integer, `f32` and `f64`.
pub(crate) trait Number: Copy {
    const ZERO: Self;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    /// Divided by a number of ranks. Integers have no average: they stay what they are.
    fn over(self, ranks: u32) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0;
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { if self < other { self } else { other } }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { if self > other { self } else { other } }
            #[inline(always)]
            fn over(self, _ranks: u32) -> Self { self }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                // A NaN in `other` is taken by the first choice, one in `self` by the last.
                let strict = if self < other { self } else { other };
                // Equal numbers have equal bits, but for the zeros: minus wins.
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let ordered = if self == other { equal } else { strict };
                if self.is_nan() { self } else { ordered }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                let strict = if self > other { self } else { other };
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let ordered = if self == other { equal } else { strict };
                if self.is_nan() { self } else { ordered }
            }
            #[inline(always)]
            fn over(self, ranks: u32) -> Self { self / ranks as $t }
        }
    )*};
}

floats!(f32, f64);

/// How two numbers become one.
pub(crate) trait Operator: 'static {
    fn apply<N: Number>(a: N, b: N) -> N;
}

macro_rules! operators {
    ($($name:ident => $method:ident),* $(,)?) => {$(
        pub(crate) enum $name {}
        impl Operator for $name {
            #[inline(always)]
            fn apply<N: Number>(a: N, b: N) -> N { a.$method(b) }
        }
    )*};
}

operators! { Sum => sum, Prod => product, Min => smaller, Max => larger }
