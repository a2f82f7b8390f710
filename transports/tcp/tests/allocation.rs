//! Warm posts and polls do not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use unisono_contract::{Completions, Endpoint, Frame, Lease, Token, WaitSet};
mod common;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's; counting touches no heap.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn warm_posts_and_polls_do_not_allocate() {
    let (mut zero, mut one) = common::pair();
    let (to, from) = (zero.port(1, 0).unwrap(), one.port(0, 0).unwrap());
    let (data, landed) = (Lease::new(vec![1u8; 40_000]), Lease::new(vec![0u8; 40_000]));
    let (mut sent, mut received) = (Completions::new(), Completions::new());
    let mut set = WaitSet::new();
    let mut round = |sequence: u64| {
        for length in [4, 4096, 40_000] {
            let frame = Frame {
                length: length as u64,
                sequence,
                ..Frame::default()
            };
            let (piece, into) = (
                data.piece().slice(0..length),
                landed.piece().slice(0..length),
            );
            for message in 0..zero.limits().depth as u64 {
                zero.post_send(to, &frame, &[piece], Token(message))
                    .unwrap();
                one.post_recv(from, &frame, &[into], Token(message))
                    .unwrap();
            }
            while sent.len() + received.len() < 2 * zero.limits().depth {
                set.clear();
                let _ = one.wait_on(&mut set).unwrap();
                one.poll(&mut received).unwrap();
                zero.poll(&mut sent).unwrap();
            }
            sent.clear();
            received.clear();
        }
    };
    (0..3).for_each(&mut round);
    let before = ALLOCATIONS.get();
    (3..100).for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert!(before > 0, "the counter counts");
}
