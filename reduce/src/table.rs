//! From (element type, operator, machine) to function pointers.

use half::{bf16, f16};
use unisono_core::{DType, Op};

use crate::Operand;
use crate::isa::Portable;
use crate::lane::Lane;
use crate::loops;
use crate::number::{Max, Min, Operator, Prod, Sum};
use crate::ordered::{MaxBf16, MaxF16, MinBf16, MinF16};

/// The functions of one element type and operator.
///
/// Invariant: this machine has the features that the functions were compiled for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    accumulate: unsafe fn(&mut [u8], &[u8]),
    combine: unsafe fn(&mut [u8], &[u8], &[u8]),
    many: unsafe fn(&mut [u8], &[Operand<'_>], Option<u32>),
    finish: unsafe fn(&mut [u8], u32),
}

/// Runs `$body` with `$t` and `$o` standing for the types of an element type and an operator.
///
/// A row: code, type, and what stands for the type in minimum and maximum.
macro_rules! typed {
    ($dtype:expr, $op:expr, |$t:ident, $o:ident| $body:expr) => {
        typed!(@rows $dtype, $op, $t, $o, $body,
            I8 i8 i8 i8, I16 i16 i16 i16, I32 i32 i32 i32, I64 i64 i64 i64,
            U8 u8 u8 u8, U16 u16 u16 u16, U32 u32 u32 u32, U64 u64 u64 u64,
            F16 f16 MinF16 MaxF16, BF16 bf16 MinBf16 MaxBf16, F32 f32 f32 f32, F64 f64 f64 f64)
    };
    (@rows $dtype:expr, $op:expr, $t:ident, $o:ident, $body:expr,
     $($code:ident $type:ident $min:ident $max:ident),*) => {
        match ($dtype, $op) {
            $(
                (DType::$code, Op::Sum | Op::Avg) => { type $t = $type; type $o = Sum; Some($body) }
                (DType::$code, Op::Prod) => { type $t = $type; type $o = Prod; Some($body) }
                (DType::$code, Op::Min) => { type $t = $min; type $o = Min; Some($body) }
                (DType::$code, Op::Max) => { type $t = $max; type $o = Max; Some($body) }
            )*
            _ => None,
        }
    };
}

impl Table {
    /// The functions for any machine; `None` when the operator is not built in.
    pub(crate) fn portable(dtype: DType, op: Op) -> Option<Table> {
        typed!(dtype, op, |T, O| portable::<T, O>())
    }

    /// The best functions for this machine.
    pub(crate) fn fastest(dtype: DType, op: Op) -> Option<Table> {
        #[cfg(target_arch = "x86_64")]
        if crate::isa::x86::Avx2::detected() {
            return typed!(dtype, op, |T, O| avx2::table::<T, O>());
        }
        Self::portable(dtype, op)
    }

    pub(crate) fn accumulate(&self, target: &mut [u8], source: &[u8]) {
        // SAFETY: by the invariant, this machine can run the function.
        unsafe { (self.accumulate)(target, source) }
    }

    pub(crate) fn combine(&self, target: &mut [u8], a: &[u8], b: &[u8]) {
        // SAFETY: by the invariant, this machine can run the function.
        unsafe { (self.combine)(target, a, b) }
    }

    pub(crate) fn many(&self, target: &mut [u8], sources: &[Operand<'_>], finish: Option<u32>) {
        // SAFETY: by the invariant, this machine can run the function.
        unsafe { (self.many)(target, sources, finish) }
    }

    pub(crate) fn finish(&self, target: &mut [u8], ranks: u32) {
        // SAFETY: by the invariant, this machine can run the function.
        unsafe { (self.finish)(target, ranks) }
    }
}

fn portable<T: Lane, O: Operator>() -> Table {
    Table {
        accumulate: |target, source| loops::accumulate::<T, O>(Portable, target, source),
        combine: |target, a, b| loops::combine::<T, O>(Portable, target, a, b),
        many: |target, sources, finish| loops::many::<T, O>(Portable, target, sources, finish),
        finish: |target, ranks| loops::finish::<T, O>(Portable, target, ranks),
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same loops, compiled for AVX2 and F16C.

    use super::{Lane, Operand, Operator, Table, loops};
    use crate::isa::x86::Avx2;

    /// Only for machines on which [`Avx2::detected`] is true.
    pub(super) fn table<T: Lane, O: Operator>() -> Table {
        Table {
            accumulate: accumulate::<T, O>,
            combine: combine::<T, O>,
            many: many::<T, O>,
            finish: finish::<T, O>,
        }
    }

    #[target_feature(enable = "avx2,f16c")]
    fn accumulate<T: Lane, O: Operator>(target: &mut [u8], source: &[u8]) {
        loops::accumulate::<T, O>(Avx2::new(), target, source);
    }

    #[target_feature(enable = "avx2,f16c")]
    fn combine<T: Lane, O: Operator>(target: &mut [u8], a: &[u8], b: &[u8]) {
        loops::combine::<T, O>(Avx2::new(), target, a, b);
    }

    #[target_feature(enable = "avx2,f16c")]
    fn many<T: Lane, O: Operator>(target: &mut [u8], sources: &[Operand<'_>], finish: Option<u32>) {
        loops::many::<T, O>(Avx2::new(), target, sources, finish);
    }

    #[target_feature(enable = "avx2,f16c")]
    fn finish<T: Lane, O: Operator>(target: &mut [u8], ranks: u32) {
        loops::finish::<T, O>(Avx2::new(), target, ranks);
    }
}
