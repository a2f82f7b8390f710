//! Reduction kernels: how blocks of bytes become one block, for every element type and operator.
//!
//! A plan looks its kernels up once, with [`Kernels::new`], and then calls them through function
//! pointers. All operands are plain byte slices of **any alignment**: they come straight out of
//! staging buffers and streams.
//!
//! ```
//! use unisono_core::{DType, Op};
//! use unisono_reduce::{Kernels, Operand};
//!
//! let sum = Kernels::new(DType::I16, Op::Sum)?;
//! let mut target = 40i16.to_ne_bytes();
//! sum.accumulate(&mut target, &2i16.to_ne_bytes());
//! assert_eq!(i16::from_ne_bytes(target), 42);
//!
//! // Several sources in a fixed order; the target may be one of them, at any place.
//! let (a, b) = (1i16.to_ne_bytes(), 7i16.to_ne_bytes());
//! sum.many(&mut target, &[Operand::Bytes(&a), Operand::Target, Operand::Bytes(&b)], None);
//! assert_eq!(i16::from_ne_bytes(target), 50);
//! # Ok::<(), unisono_reduce::Unavailable>(())
//! ```
//!
//! # Which bits come out
//!
//! | types | rule |
//! |---|---|
//! | integers | sum and product wrap, in debug builds too |
//! | floats, min and max | NaN wins wherever it sits; -0 is smaller than +0 |
//! | `f16`, `bf16`, two operands | in `f32`, then rounded to nearest even: the bits of `half`'s arithmetic |
//! | `f16`, `bf16`, [`Kernels::many`] | accumulated in `f32` from left to right, rounded **once** |
//! | avg | sum, then a true division by the ranks: in `f64` for `f64`, else in `f32` |
//!
//! Payloads of NaN are not promised. Everything else is the same on every machine: the kernels
//! for AVX2 and the portable ones ([`Kernels::portable`]) agree bit for bit.
//!
//! # How it is built
//!
//! Lanes say how an element is read and written, operators how two become one; the loops are
//! generic over both, and compiled once for any machine and once with AVX2 and F16C.
//! This crate knows no ranks' blocks, no programs and no transports.

mod isa;
mod lane;
mod loops;
mod narrow;
mod number;
mod ordered;
mod table;
mod user;

use table::Table;
use unisono_core::{DType, Op, UserOp};

pub use user::UserOperator;

/// One source of [`Kernels::many`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand<'a> {
    /// What the destination holds before the call.
    Target,
    /// Bytes elsewhere, as many as the destination has.
    Bytes(&'a [u8]),
}

/// Why there are no kernels for an element type and operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The operator has no meaning for the element type: the average of integers.
    #[error("operator `{op}` does not exist for element type `{dtype}`")]
    NotDefined {
        /// The element type asked for.
        dtype: DType,
        /// The operator asked for.
        op: Op,
    },
    /// A user operator has no kernels but its own: see [`Kernels::user`].
    #[error("user operator {} is not registered", operator.number())]
    NotRegistered {
        /// The operator asked for.
        operator: UserOp,
    },
}

/// The kernels of one element type and operator.
///
/// Found once, cheap to clone, and without state: calls go through function pointers, or to the
/// function of a user operator.
///
/// All methods take whole elements: they panic when a slice does not hold a whole number of
/// elements, or when an operand is not as long as the target.
#[derive(Debug, Clone)]
pub struct Kernels {
    dtype: DType,
    op: Op,
    code: Code,
}

#[derive(Debug, Clone)]
enum Code {
    BuiltIn(Table),
    User(UserOperator),
}

impl Kernels {
    /// The fastest kernels that this machine can run.
    ///
    /// # Errors
    ///
    /// [`Unavailable::NotDefined`] for the average of integers, [`Unavailable::NotRegistered`]
    /// for a user operator.
    pub fn new(dtype: DType, op: Op) -> Result<Kernels, Unavailable> {
        Self::built_in(dtype, op, Table::fastest)
    }

    /// The kernels that every machine can run: what the fast ones are compared with.
    ///
    /// # Errors
    ///
    /// As [`Kernels::new`].
    pub fn portable(dtype: DType, op: Op) -> Result<Kernels, Unavailable> {
        Self::built_in(dtype, op, Table::portable)
    }

    /// The kernels of a registered operator.
    pub fn user(operator: &UserOperator) -> Kernels {
        Kernels {
            dtype: operator.dtype(),
            op: operator.op(),
            code: Code::User(operator.clone()),
        }
    }

    fn built_in(
        dtype: DType,
        op: Op,
        find: fn(DType, Op) -> Option<Table>,
    ) -> Result<Kernels, Unavailable> {
        if let Op::User(operator) = op {
            return Err(Unavailable::NotRegistered { operator });
        }
        match find(dtype, op) {
            Some(table) if op.accepts(dtype) => Ok(Kernels {
                dtype,
                op,
                code: Code::BuiltIn(table),
            }),
            _ => Err(Unavailable::NotDefined { dtype, op }),
        }
    }

    /// The element type of all operands.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The operator.
    pub fn op(&self) -> Op {
        self.op
    }

    /// `target = target (+) source`, element by element. For avg this is the sum.
    pub fn accumulate(&self, target: &mut [u8], source: &[u8]) {
        self.check(target, source);
        match &self.code {
            Code::BuiltIn(table) => table.accumulate(target, source),
            Code::User(operator) => operator.accumulate(target, source),
        }
    }

    /// `target = a (+) b`, element by element. For avg this is the sum.
    pub fn combine(&self, target: &mut [u8], a: &[u8], b: &[u8]) {
        self.check(target, a);
        self.check(target, b);
        match &self.code {
            Code::BuiltIn(table) => table.combine(target, a, b),
            Code::User(operator) => {
                target.copy_from_slice(a);
                operator.accumulate(target, b);
            }
        }
    }

    /// `target = sources[0] (+) sources[1] (+) ...`, from left to right.
    ///
    /// All sources of an element are read before it is written, so [`Operand::Target`] may stand
    /// at any place, or nowhere. One source is a copy. `f16` and `bf16` are accumulated in `f32`
    /// and rounded once. With `finish = Some(ranks)` avg divides by `ranks` before it rounds;
    /// other operators have nothing to finish and ignore it.
    ///
    /// # Panics
    ///
    /// Without a source, besides the panics common to all methods.
    pub fn many(&self, target: &mut [u8], sources: &[Operand<'_>], finish: Option<u32>) {
        assert!(!sources.is_empty(), "a reduction needs a source");
        for source in sources {
            match source {
                Operand::Target => self.check(target, target),
                Operand::Bytes(bytes) => self.check(target, bytes),
            }
        }
        let finish = finish.filter(|_| self.op == Op::Avg);
        match (&self.code, sources, finish) {
            // One pass without a buffer gives the same bits in these cases.
            (_, [Operand::Target], None) => {}
            (_, [Operand::Bytes(bytes)], None) => target.copy_from_slice(bytes),
            (_, [Operand::Target, Operand::Bytes(b)], None) => self.accumulate(target, b),
            (_, [Operand::Bytes(a), Operand::Bytes(b)], None) => self.combine(target, a, b),
            (Code::BuiltIn(table), [Operand::Bytes(a), Operand::Target], None) => {
                table.accumulate(target, a);
            }
            (Code::BuiltIn(table), [Operand::Target], Some(ranks)) => table.finish(target, ranks),
            (Code::BuiltIn(table), _, _) => table.many(target, sources, finish),
            (Code::User(operator), _, _) => operator.many(target, sources),
        }
    }

    /// `target = target / ranks` for avg; nothing for other operators.
    pub fn finish(&self, target: &mut [u8], ranks: u32) {
        self.check(target, target);
        match &self.code {
            Code::BuiltIn(table) if self.op == Op::Avg => table.finish(target, ranks),
            _ => {}
        }
    }

    /// Panics with both lengths unless `operand` fits `target`.
    #[track_caller]
    fn check(&self, target: &[u8], operand: &[u8]) {
        assert!(
            target.len() == operand.len() && target.len().is_multiple_of(self.dtype.size()),
            "operand of {} bytes for a target of {} bytes of {}",
            operand.len(),
            target.len(),
            self.dtype,
        );
    }
}
