//! What a group of two threads costs, beside the same movement of data written by hand.
//!
//! `cargo bench -p unisono-benches --bench inproc`

use std::thread;
use std::time::Instant;

use unisono::{Group, Op};
use unisono_benches::median;

/// Median time of one all_reduce of `n` f32 between two threads, in microseconds: `rounds` samples of `per` calls.
fn all_reduce(n: usize, rounds: usize, per: usize) -> f64 {
    let run = |g: Group| {
        let mut x = vec![0.0f32; n];
        let mut samples = Vec::new();
        for round in 0..rounds + 2 {
            g.barrier().expect("barrier");
            let start = Instant::now();
            for _ in 0..per {
                g.all_reduce(&mut x, Op::Sum).expect("all_reduce");
            }
            if round >= 2 {
                samples.push(start.elapsed().as_secs_f64() * 1e6 / per as f64);
            }
        }
        median(samples)
    };
    thread::scope(|s| {
        let threads: Vec<_> = unisono::inproc(2)
            .into_iter()
            .map(|g| s.spawn(move || run(g)))
            .collect();
        let medians = threads.into_iter().map(|t| t.join().expect("a rank"));
        medians.fold(0.0, f64::max)
    })
}

/// The same result by hand: each of two threads adds the other's half to its own, then copies the other half.
fn by_hand(n: usize, rounds: usize) -> f64 {
    let half = n / 2;
    let mut vectors = [vec![1.0f32; n], vec![2.0f32; n]];
    let mut samples = Vec::new();
    for round in 0..rounds + 2 {
        let [a, b] = &mut vectors;
        let (a0, a1) = a.split_at_mut(half);
        let (b0, b1) = b.split_at_mut(half);
        let start = Instant::now();
        thread::scope(|s| {
            // Two phases of two threads; halves change hands between them.
            s.spawn(|| add_into(a0, b0));
            add_into(b1, a1);
        });
        thread::scope(|s| {
            s.spawn(|| a1.copy_from_slice(b1));
            b0.copy_from_slice(a0);
        });
        if round >= 2 {
            samples.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    median(samples)
}

fn add_into(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += *b;
    }
}

fn main() {
    println!(
        "{:>12} {:>12} {:>12} {:>8}",
        "bytes", "us", "by hand us", "share"
    );
    for (n, rounds, per) in [
        (1, 21, 2000),
        (256, 21, 2000),
        (16 << 10, 21, 100),
        (256 << 10, 11, 10),
    ] {
        println!("{:>12} {:>12.2}", n * 4, all_reduce(n, rounds, per));
    }
    let n = 16 << 20;
    // In turn, so that both see the same minutes of a noisy machine.
    let pairs: Vec<(f64, f64)> = (0..5)
        .map(|_| (all_reduce(n, 5, 1), by_hand(n, 5)))
        .collect();
    let ours = median(pairs.iter().map(|p| p.0).collect());
    let hand = median(pairs.iter().map(|p| p.1).collect());
    let share = median(pairs.iter().map(|p| p.1 / p.0).collect());
    println!(
        "{:>12} {ours:>12.0} {hand:>12.0} {:>7.0}%",
        n * 4,
        share * 100.0
    );
}
