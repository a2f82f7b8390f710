//! A blocking operation that was done before allocates nothing.

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use common::ranks;
use unisono::{Error, Group, Op};

/// Buffers of one rank.
struct Memory {
    small: Vec<f32>,
    large: Vec<f32>,
    row: Vec<u8>,
    table: Vec<u8>,
}

type Call = fn(&Group, &mut Memory) -> Result<(), Error>;

const CALLS: [(&str, Call); 7] = [
    ("all_reduce of 4 bytes", |g, m| {
        g.all_reduce(&mut m.small, Op::Max)
    }),
    ("all_reduce of 64 KiB", |g, m| {
        g.all_reduce(&mut m.large, Op::Max)
    }),
    ("barrier", |g, _| g.barrier()),
    ("all_gather", |g, m| g.all_gather(&m.row, &mut m.table)),
    ("broadcast", |g, m| g.broadcast(&mut m.large, 2)),
    ("send_recv", |g, m| {
        let (right, left) = ((g.rank() + 1) % 4, (g.rank() + 3) % 4);
        g.send_recv(&m.row, right, &mut m.table[..5000], left)
    }),
    ("small send_recv", |g, m| {
        let peer = g.rank() ^ 1;
        g.send_recv(&m.row[..8], peer, &mut m.table[..8], peer)
    }),
];

#[test]
fn a_warm_operation_allocates_nothing() {
    let together = Barrier::new(4);
    let count = AtomicU64::new(0);
    assert_eq!(
        measure(|| drop(std::hint::black_box(vec![1u8; 9]))).count_total,
        1,
        "the counter counts"
    );
    ranks(4, |g| {
        let mut memory = Memory {
            small: vec![1.0],
            large: vec![1.0; 16 * 1024],
            row: vec![1; 5000],
            table: vec![0; 20_000],
        };
        let mut run = |call: Call, times: usize| {
            for _ in 0..times {
                call(&g, &mut memory).unwrap();
            }
        };
        for (name, call) in CALLS {
            run(call, 300);
            // How far ranks drift apart decides how long queues get, so the warm-up may not see it all.
            together.wait();
            let mine = measure(|| run(call, 1000)).count_total;
            count.fetch_add(mine, Ordering::Relaxed);
            together.wait();
            if g.rank() == 0 {
                let count = count.swap(0, Ordering::Relaxed);
                println!("{name}: {count} allocations in 4000 calls");
                // A queue may once have to become longer than it ever was.
                assert!(count <= 4, "{name}: {count} allocations in 4000 calls");
            }
            together.wait();
        }
    });
}
