//! What the hand-over is built from. The test that tries its interleavings puts other things here.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};

pub(crate) use unisono_contract::Event;
