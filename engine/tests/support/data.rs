//! Values of every element type, chosen so that every correct result is exact.

use half::{bf16, f16};
use unisono_core::{DType, Op, Rank};

/// Element `i` of rank `rank`: small integers that differ per rank and index; products stay small too.
pub(crate) fn value(dtype: DType, op: Op, size: Rank, rank: Rank, i: u64) -> f64 {
    let mixed = (u64::from(rank) * 7 + i * 3 + i / 5) % 11;
    match (op, dtype) {
        (Op::Prod, _) => {
            // At most two factors other than 1 per element.
            let special = (i % u64::from(size)) as Rank;
            match rank {
                r if r == special => 3.0,
                r if r == (special + 1) % size => 2.0,
                _ => 1.0,
            }
        }
        (_, DType::I8 | DType::U8 | DType::BF16) if size > 9 => (mixed % 3) as f64,
        (_, d) if d.is_float() || matches!(d, DType::I8 | DType::I16 | DType::I32 | DType::I64) => {
            mixed as f64 - 4.0
        }
        _ => mixed as f64,
    }
}

/// Relative error of one rounding, generously.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        DType::F32 => 1e-6,
        _ => 1e-14,
    }
}

macro_rules! each_type {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::I8 => {
                type $t = i8;
                $body
            }
            DType::I16 => {
                type $t = i16;
                $body
            }
            DType::I32 => {
                type $t = i32;
                $body
            }
            DType::I64 => {
                type $t = i64;
                $body
            }
            DType::U8 => {
                type $t = u8;
                $body
            }
            DType::U16 => {
                type $t = u16;
                $body
            }
            DType::U32 => {
                type $t = u32;
                $body
            }
            DType::U64 => {
                type $t = u64;
                $body
            }
            DType::F16 => {
                type $t = f16;
                $body
            }
            DType::BF16 => {
                type $t = bf16;
                $body
            }
            DType::F32 => {
                type $t = f32;
                $body
            }
            _ => {
                type $t = f64;
                $body
            }
        }
    };
}

pub(crate) trait Number: Copy {
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(b: &[u8]) -> Self;
}

macro_rules! number {
    ($($t:ty: $from:expr, $to:expr);* $(;)?) => {$(
        impl Number for $t {
            fn from_f64(x: f64) -> Self { ($from)(x) }
            fn to_f64(self) -> f64 { ($to)(self) }
            fn bytes(self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
            fn from_bytes(b: &[u8]) -> Self { Self::from_ne_bytes(b.try_into().expect("one element")) }
        }
    )*};
}

number! {
    i8: |x| x as i8, |x| x as f64;
    i16: |x| x as i16, |x| x as f64;
    i32: |x| x as i32, |x| x as f64;
    i64: |x| x as i64, |x| x as f64;
    u8: |x| x as u8, |x| x as f64;
    u16: |x| x as u16, |x| x as f64;
    u32: |x| x as u32, |x| x as f64;
    u64: |x| x as u64, |x| x as f64;
    f32: |x| x as f32, |x| x as f64;
    f64: |x| x, |x| x;
    f16: f16::from_f64, f16::to_f64;
    bf16: bf16::from_f64, bf16::to_f64;
}

pub(crate) fn encode(dtype: DType, values: &[f64]) -> Vec<u8> {
    each_type!(dtype, T => values.iter().flat_map(|v| T::from_f64(*v).bytes()).collect())
}

pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    each_type!(dtype, T => bytes.chunks_exact(dtype.size()).map(|b| T::from_bytes(b).to_f64()).collect())
}
