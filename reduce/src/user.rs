//! Operators that users bring along.
//!
//! The user writes a function on typed slices; blocks arrive as bytes of any alignment. Aligned
//! blocks are handed over as they are, others go through a small aligned buffer on the stack.

use std::fmt;
use std::sync::Arc;

use bytemuck::{bytes_of_mut, cast_slice_mut, try_cast_slice, try_cast_slice_mut};
use unisono_core::{DType, Element, Op, UserOp};

use crate::Operand;

/// Bytes that go through an aligned buffer at a time: a whole number of elements of any type.
const BLOCK: usize = 4096;

/// An aligned buffer of [`BLOCK`] bytes.
type Aligned = [u64; BLOCK / 8];

/// The function of the user, on bytes of any alignment.
type Apply = dyn Fn(&mut [u8], &[u8]) + Send + Sync;

/// An operator with the function that does it.
///
/// ```
/// use unisono_reduce::{Kernels, UserOperator};
///
/// let xor = UserOperator::new::<u32>(0, true, |acc, x| {
///     acc.iter_mut().zip(x).for_each(|(acc, x)| *acc ^= x);
/// })
/// .expect("number 0 fits");
/// let mut target = 6u32.to_ne_bytes();
/// Kernels::user(&xor).accumulate(&mut target, &3u32.to_ne_bytes());
/// assert_eq!(u32::from_ne_bytes(target), 5);
/// ```
#[derive(Clone)]
pub struct UserOperator {
    operator: UserOp,
    dtype: DType,
    apply: Arc<Apply>,
}

impl UserOperator {
    /// The operator with this number, which does `acc[i] = acc[i] (+) x[i]`.
    ///
    /// `f` must be associative and treat every element on its own: it sees blocks in pieces of
    /// any length, `acc` always as long as `x`. Where `commutative` is false, operands keep their
    /// order. `None` when the number does not fit: see [`UserOp::new`].
    pub fn new<T: Element>(
        number: u16,
        commutative: bool,
        f: impl Fn(&mut [T], &[T]) + Send + Sync + 'static,
    ) -> Option<UserOperator> {
        Some(UserOperator {
            operator: UserOp::new(number, commutative)?,
            dtype: T::DTYPE,
            apply: Arc::new(move |acc, x| on_bytes(&f, acc, x)),
        })
    }

    /// The operator as programs and frames see it.
    pub fn op(&self) -> Op {
        Op::User(self.operator)
    }

    /// The element type it works on.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// `target = target (+) source`
    pub(crate) fn accumulate(&self, target: &mut [u8], source: &[u8]) {
        (self.apply)(target, source);
    }

    /// `target` = all sources from left to right; lengths have been checked.
    pub(crate) fn many(&self, target: &mut [u8], sources: &[Operand<'_>]) {
        let mut block: Aligned = [0; BLOCK / 8];
        let block = bytes_of_mut(&mut block);
        for start in (0..target.len()).step_by(BLOCK) {
            let range = start..target.len().min(start + BLOCK);
            let acc = &mut block[..range.len()];
            for (place, source) in sources.iter().enumerate() {
                let source = match source {
                    Operand::Target => &target[range.clone()],
                    Operand::Bytes(bytes) => &bytes[range.clone()],
                };
                if place == 0 {
                    acc.copy_from_slice(source);
                } else {
                    (self.apply)(acc, source);
                }
            }
            target[range].copy_from_slice(acc);
        }
    }
}

impl fmt::Debug for UserOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserOperator")
            .field("operator", &self.operator)
            .field("dtype", &self.dtype)
            .finish_non_exhaustive()
    }
}

/// `f` on bytes of any alignment.
fn on_bytes<T: Element>(f: &impl Fn(&mut [T], &[T]), acc: &mut [u8], x: &[u8]) {
    if let (Ok(acc), Ok(x)) = (try_cast_slice_mut(acc), try_cast_slice(x)) {
        return f(acc, x);
    }
    let (mut left, mut right): (Aligned, Aligned) = ([0; BLOCK / 8], [0; BLOCK / 8]);
    for (acc, x) in acc.chunks_mut(BLOCK).zip(x.chunks(BLOCK)) {
        let left = &mut bytes_of_mut(&mut left)[..acc.len()];
        let right = &mut bytes_of_mut(&mut right)[..x.len()];
        left.copy_from_slice(acc);
        right.copy_from_slice(x);
        f(cast_slice_mut(left), cast_slice_mut(right));
        acc.copy_from_slice(left);
    }
}
