//! Lending: of borrowed memory for a scope, and of owned memory for as long as wanted.

use std::ptr::NonNull;

use bytemuck::Pod;
use bytes::Bytes;

use super::{Buffer, Piece, RegionKey, cell::Term};

/// Lends `memory` to `f` as a piece, for reading and writing, until `f` returns or panics.
///
/// Waits at the end until nobody is inside the memory any more.
pub fn lend<T: Pod, R>(memory: &mut [T], f: impl FnOnce(Piece) -> R) -> R {
    let len = size_of_val(memory);
    let start = NonNull::from(memory).cast();
    let term = Term::start();
    // SAFETY: `memory` stays mutably borrowed beyond the end of `term`, so the bytes are there and
    // nobody else's; `Pod` makes all bytes initialized and every pattern valid.
    f(unsafe { Piece::new(start, len, &term, None, false) })
}

/// Lends `memory` to `f` as a piece, for reading only, until `f` returns or panics.
pub fn lend_shared<T: Pod, R>(memory: &[T], f: impl FnOnce(Piece) -> R) -> R {
    let len = size_of_val(memory);
    let start = NonNull::from(memory).cast();
    let term = Term::start();
    // SAFETY: `memory` stays borrowed beyond the end of `term`; the piece is read-only.
    f(unsafe { Piece::new(start, len, &term, None, true) })
}

/// An owner of bytes, lent as a whole.
///
/// Engines keep it while an operation runs: the pieces can go anywhere, and the value comes back
/// with [`into_inner`](Self::into_inner).
///
/// ```
/// use unisono_contract::memory::Lease;
///
/// let lease = Lease::new(vec![1u16, 2]);
/// let piece = lease.piece();
/// assert_eq!(piece.read(|bytes| bytes.len()), Ok(4));
/// assert_eq!(lease.into_inner(), [1, 2]);
/// assert!(piece.read(|_| ()).is_err());
/// ```
pub struct Lease<V: Stable> {
    /// Before the value: fields drop in order, so the lease has ended before the memory goes.
    term: Term,
    held: V::Held,
    piece: Piece,
}

impl<V: Stable> Lease<V> {
    /// Takes `value` and lends its bytes.
    pub fn new(value: V) -> Self {
        let mut held = value.hold();
        let span = V::span(&mut held);
        let term = Term::start();
        // SAFETY: `Stable` promises that the bytes stay where they are while `held` lives, which is
        // longer than `term`, and that they may be written unless `read_only`.
        let piece = unsafe { Piece::new(span.start, span.len, &term, span.region, span.read_only) };
        Self { term, held, piece }
    }

    /// All bytes of the value.
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Ends the lease and gives the value back; waits until nobody is inside.
    pub fn into_inner(self) -> V {
        let Self { term, held, .. } = self;
        drop(term);
        V::release(held)
    }
}

impl<V: Stable> std::fmt::Debug for Lease<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lease").field(&self.piece).finish()
    }
}

/// Where the bytes of a held value are.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    start: NonNull<u8>,
    len: usize,
    region: Option<RegionKey>,
    read_only: bool,
}

/// An owner whose bytes do not move while it is held: `Vec<T>`, `Box<[T]>`, [`Buffer<T>`](Buffer),
/// and, for reading, [`Bytes`]. Sealed.
///
/// # Safety
/// Between [`hold`](Self::hold) and the drop or release of what it gave, the bytes of
/// [`span`](Self::span) stay where they are, initialized, and reached by nobody but the pieces
/// (unless `read_only`, when others may read).
pub unsafe trait Stable: sealed::Sealed {
    /// The value in a form that claims nothing about its bytes while it moves.
    type Held;
    /// Turns the value into its held form.
    fn hold(self) -> Self::Held;
    /// Where the bytes are.
    fn span(held: &mut Self::Held) -> Span;
    /// Turns the held form back into the value.
    fn release(held: Self::Held) -> Self;
}

mod sealed {
    /// Only this crate decides what is stable.
    pub trait Sealed {}
    impl<T: bytemuck::Pod> Sealed for Vec<T> {}
    impl<T: bytemuck::Pod> Sealed for Box<[T]> {}
    impl<T: bytemuck::Pod> Sealed for crate::memory::Buffer<T> {}
    impl Sealed for bytes::Bytes {}
}

fn span_of_vec<T: Pod>(held: &mut Vec<T>) -> Span {
    Span {
        len: size_of_val(held.as_slice()),
        // Never null: a vector's pointer is dangling at worst.
        start: NonNull::new(held.as_mut_ptr().cast()).unwrap_or(NonNull::dangling()),
        region: None,
        read_only: false,
    }
}

// SAFETY: a vector that is only moved does not touch its heap memory, and nobody else has it.
unsafe impl<T: Pod> Stable for Vec<T> {
    type Held = Self;

    fn hold(self) -> Self {
        self
    }

    fn span(held: &mut Self) -> Span {
        span_of_vec(held)
    }

    fn release(held: Self) -> Self {
        held
    }
}

// SAFETY: held as a vector, because moving a `Box` asserts that nobody else uses its memory.
unsafe impl<T: Pod> Stable for Box<[T]> {
    type Held = Vec<T>;

    fn hold(self) -> Vec<T> {
        self.into_vec()
    }

    fn span(held: &mut Vec<T>) -> Span {
        span_of_vec(held)
    }

    fn release(held: Vec<T>) -> Self {
        held.into_boxed_slice()
    }
}

// SAFETY: a buffer owns its region, whose memory does not move; a held buffer is not dereferenced.
unsafe impl<T: Pod> Stable for Buffer<T> {
    type Held = Self;

    fn hold(self) -> Self {
        self
    }

    fn span(held: &mut Self) -> Span {
        Span {
            start: held.region().start(),
            len: held.byte_len(),
            region: Some(held.region().key()),
            read_only: false,
        }
    }

    fn release(held: Self) -> Self {
        held
    }
}

// SAFETY: the bytes of a `Bytes` are immutable and live as long as any clone of it.
unsafe impl Stable for Bytes {
    type Held = Self;

    fn hold(self) -> Self {
        self
    }

    fn span(held: &mut Self) -> Span {
        Span {
            start: NonNull::from(held.as_ref()).cast(),
            len: held.len(),
            region: None,
            read_only: true,
        }
    }

    fn release(held: Self) -> Self {
        held
    }
}
