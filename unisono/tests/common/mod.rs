//! What several tests need.
#![allow(dead_code, unreachable_pub)] // each test uses its part

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

use unisono::Group;

/// Long for any call of a test, short for a person.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Runs `f` on every rank of a group of threads; gives what each returned.
pub fn ranks<R: Send>(size: u32, f: impl Fn(Group) -> R + Sync) -> Vec<R> {
    thread::scope(|s| {
        let f = &f;
        let threads: Vec<_> = unisono::inproc(size)
            .into_iter()
            .map(|group| s.spawn(move || f(group.with_timeout(LIMIT))))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a rank"))
            .collect()
    })
}

/// The plainest executor: polls, parks, polls again when woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(out) => return out,
            Poll::Pending => thread::park(),
        }
    }
}

/// Vector `k` of rank `r` and what all of `size` ranks sum up to.
pub fn contribution(r: u32, k: usize, n: usize) -> Vec<u64> {
    (0..n as u64)
        .map(|i| i * 3 + k as u64 + u64::from(r))
        .collect()
}

/// The sum of [`contribution`] over ranks `0..size`.
pub fn sum_of(size: u32, k: usize, n: usize) -> Vec<u64> {
    let (p, r) = (u64::from(size), u64::from(size * (size - 1) / 2));
    (0..n as u64).map(|i| p * (i * 3 + k as u64) + r).collect()
}
