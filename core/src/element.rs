//! Rust types whose values can be moved and reduced.

use crate::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type with a [`DType`]: the integers of 8 to 64 bits, `half::f16`, `half::bf16`, `f32`, `f64`.
pub trait Element:
    bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug + sealed::Sealed
{
    /// Its element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}

elements! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64,
}
