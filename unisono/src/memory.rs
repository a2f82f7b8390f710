//! What may be given to a call: anything that holds elements side by side.

use bytes::Bytes;
use unisono_contract::memory::{lend, lend_shared};
use unisono_contract::{Buffer, Piece};
use unisono_core::Element;

mod sealed {
    pub trait Sealed {}
}

/// Memory that a blocking call reads: `[T]`, `Vec<T>`, `[T; N]`, [`Buffer<T>`], [`Bytes`].
///
/// For one value: `std::slice::from_ref(&x)`.
pub trait Source: sealed::Sealed {
    /// The element type.
    type Elem: Element;

    /// Number of elements.
    fn elements(&self) -> usize;

    /// Lends the memory for the time of `f`.
    #[doc(hidden)]
    fn lend<R>(&self, f: impl FnOnce(Piece) -> R) -> R;
}

/// Memory that a blocking call writes: `[T]`, `Vec<T>`, `[T; N]`, [`Buffer<T>`].
///
/// For one value: `std::slice::from_mut(&mut x)`.
pub trait Target: sealed::Sealed {
    /// The element type.
    type Elem: Element;

    /// Number of elements.
    fn elements(&self) -> usize;

    /// Lends the memory for the time of `f`.
    #[doc(hidden)]
    fn lend<R>(&mut self, f: impl FnOnce(Piece) -> R) -> R;
}

macro_rules! sources {
    ($([$($generics:tt)*] $t:ty, $elem:ty);* $(;)?) => {$(
        impl<$($generics)*> sealed::Sealed for $t {}
        impl<$($generics)*> Source for $t {
            type Elem = $elem;
            fn elements(&self) -> usize {
                self.len()
            }
            fn lend<R>(&self, f: impl FnOnce(Piece) -> R) -> R {
                lend_shared(&self[..], f)
            }
        }
    )*};
}

macro_rules! targets {
    ($([$($generics:tt)*] $t:ty);* $(;)?) => {$(
        impl<$($generics)*> Target for $t {
            type Elem = T;
            fn elements(&self) -> usize {
                self.len()
            }
            fn lend<R>(&mut self, f: impl FnOnce(Piece) -> R) -> R {
                lend(&mut self[..], f)
            }
        }
    )*};
}

sources! {
    [T: Element] [T], T;
    [T: Element] Vec<T>, T;
    [T: Element, const N: usize] [T; N], T;
    [T: Element] Buffer<T>, T;
    [] Bytes, u8;
}

targets! {
    [T: Element] [T];
    [T: Element] Vec<T>;
    [T: Element, const N: usize] [T; N];
    [T: Element] Buffer<T>;
}

/// Memory that an operation in flight owns: `Vec<T>`, `Box<[T]>`, [`Buffer<T>`], and [`Bytes`] to read from.
pub trait Owned: unisono_contract::memory::Stable + Send + 'static {
    /// The element type.
    type Elem: Element;

    /// Number of elements.
    fn elements(&self) -> usize;
}

/// Memory that an operation in flight owns and writes: any [`Owned`] but [`Bytes`].
pub trait OwnedTarget: Owned {}

impl<T: Element> OwnedTarget for Vec<T> {}
impl<T: Element> OwnedTarget for Box<[T]> {}
impl<T: Element> OwnedTarget for Buffer<T> {}

macro_rules! owned {
    ($([$($generics:tt)*] $t:ty, $elem:ty);* $(;)?) => {$(
        impl<$($generics)*> Owned for $t {
            type Elem = $elem;
            fn elements(&self) -> usize {
                self.len()
            }
        }
    )*};
}

owned! {
    [T: Element] Vec<T>, T;
    [T: Element] Box<[T]>, T;
    [T: Element] Buffer<T>, T;
    [] Bytes, u8;
}
