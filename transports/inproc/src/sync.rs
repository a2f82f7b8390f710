//! The primitives of [`crate::ring`]: those of std, or those of loom when its
//! tests explore every interleaving (`--cfg loom`).
//!
//! [`Cell`] has loom's shape (access inside a closure), because that is the shape
//! in which loom can watch for two accesses that overlap.

#[cfg(not(loom))]
mod chosen {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32};
    pub(crate) use std::thread::yield_now;

    /// `std::cell::UnsafeCell` in loom's shape.
    #[derive(Debug)]
    pub(crate) struct Cell<T>(std::cell::UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(loom)]
mod chosen {
    pub(crate) use loom::cell::UnsafeCell as Cell;
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32};
    pub(crate) use loom::thread::yield_now;
}

pub(crate) use chosen::*;
pub(crate) use std::sync::atomic::Ordering;

/// Waits for another thread that is at work: a short spin, then yields, so that
/// a thread without a core of its own gets one.
#[derive(Debug, Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    const SPINS: u32 = if cfg!(loom) { 0 } else { 128 };

    pub(crate) fn pause(&mut self) {
        if self.0 < Self::SPINS {
            self.0 += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}
