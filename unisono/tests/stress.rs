//! Everything at once: two threads per rank, collectives and messages, sizes and pauses at random.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{contribution, ranks, sum_of};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use unisono::{Group, Op, owned};

const OPERATIONS: usize = 250;

/// Elements of eight bytes: up to 200 kB.
fn size(common: &mut StdRng) -> usize {
    match common.random_range(0..4) {
        0 => common.random_range(0..4),
        1 => common.random_range(0..1000),
        _ => common.random_range(0..25_000),
    }
}

fn pause(mine: &mut StdRng) {
    if mine.random_ratio(1, 10) {
        thread::sleep(Duration::from_micros(mine.random_range(0..1500)));
    }
}

/// `common` runs alike on all ranks, `mine` does not.
fn collectives(g: &Group, common: &mut StdRng, mine: &mut StdRng) {
    let (me, p) = (g.rank(), g.size());
    for k in 0..OPERATIONS {
        pause(mine);
        let (n, root) = (size(common), common.random_range(0..p));
        let x = contribution(me, k, n);
        match common.random_range(0..7) {
            0 => {
                let mut all = vec![0; n * p as usize];
                g.all_gather(&x, &mut all).unwrap();
                assert!((0..p).all(|r| all[n * r as usize..][..n] == contribution(r, k, n)));
            }
            1 => {
                let mut x = x;
                g.broadcast(&mut x, root).unwrap();
                assert!(x == contribution(root, k, n));
            }
            2 => g.barrier().unwrap(),
            3 => {
                let mut y = vec![0; n];
                let at_root = (me == root).then_some(&mut y[..]);
                g.reduce(&x, at_root, Op::Sum, root).unwrap();
                assert!(me != root || y == sum_of(p, k, n));
            }
            4 => {
                let x = g.start(owned::all_reduce(x, Op::Sum)).wait().unwrap();
                assert!(x == sum_of(p, k, n));
            }
            _ => {
                let mut x = x;
                g.all_reduce(&mut x, Op::Sum).unwrap();
                assert!(x == sum_of(p, k, n));
            }
        }
    }
}

fn messages(g: &Group, common: &mut StdRng, mine: &mut StdRng) {
    let me = g.rank();
    for k in 0..OPERATIONS {
        pause(mine);
        let (n, peer) = (size(common), me ^ common.random_range(1..4));
        let (x, mut y) = (contribution(me, k, n), vec![0; n]);
        match common.random_range(0..3) {
            0 if me < peer => {
                g.send(&x, peer).unwrap();
                g.recv(&mut y, peer).unwrap();
            }
            0 => {
                g.recv(&mut y, peer).unwrap();
                g.send(&x, peer).unwrap();
            }
            1 => g.send_recv(&x, peer, &mut y, peer).unwrap(),
            _ => {
                let sent = g.start(owned::send(x, peer));
                let came = g.start(owned::recv(y, peer));
                let (came, sent) = common::block_on(async { futures::join!(came, sent) });
                sent.unwrap();
                y = came.unwrap();
            }
        }
        assert!(y == contribution(peer, k, n), "message {k} from {peer}");
    }
}

#[test]
fn two_threads_share_each_rank_in_time() {
    let began = Instant::now();
    ranks(4, |g| {
        let rng = |seed: u64| StdRng::seed_from_u64(seed);
        let me = u64::from(g.rank());
        thread::scope(|s| {
            s.spawn(|| collectives(&g, &mut rng(1), &mut rng(100 + me)));
            s.spawn(|| messages(&g, &mut rng(2), &mut rng(200 + me)));
        });
        g.close().unwrap();
    });
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "took {took:?}");
}
