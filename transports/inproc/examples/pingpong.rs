//! Latency of 4 bytes and rate of 64 MiB between two threads.
//!
//! ```text
//! cargo run --release -p unisono-inproc --example pingpong
//! ```

use std::thread;
use std::time::Instant;

use unisono_contract::{Completions, Direction, Endpoint, Frame, Lease, Piece, Port, Token};
use unisono_inproc::{InprocEndpoint, connect};

const ROUNDS: u64 = 200_000;
const STREAM: usize = 64 << 20;
const SEGMENT: usize = 512 << 10;
const WINDOW: usize = 4;

fn main() {
    for bytes in [4, 256, 4096] {
        let mut ends = connect(2).into_iter();
        let (zero, one) = (ends.next().unwrap(), ends.next().unwrap());
        let other = thread::spawn(move || volley(one, 0, bytes));
        let seconds = volley(zero, 1, bytes);
        other.join().unwrap();
        let nanos = seconds * 1e9 / (2 * ROUNDS) as f64;
        println!("{bytes:>5} bytes: {nanos:.0} ns per direction");
    }

    let source = vec![1u8; STREAM];
    let mut target = vec![0u8; STREAM];
    for _ in 0..2 {
        let began = Instant::now();
        target.copy_from_slice(&source);
        rate("copy_from_slice", began.elapsed().as_secs_f64());
    }
    let mut ends = connect(2).into_iter();
    let (zero, one) = (ends.next().unwrap(), ends.next().unwrap());
    let sending = thread::spawn(move || stream(zero, 1, Direction::Send, source));
    stream(one, 0, Direction::Recv, target);
    sending.join().unwrap();
}

fn rate(what: &str, seconds: f64) {
    println!("64 MiB, {what}: {:.2} GB/s", STREAM as f64 / seconds / 1e9);
}

fn frame(piece: Piece, sequence: u64) -> Frame {
    Frame {
        length: piece.len() as u64,
        sequence,
        ..Frame::default()
    }
}

/// Rank 0 serves; both hit the ball `ROUNDS` times. Gives the seconds it took.
fn volley(mut end: InprocEndpoint, peer: u32, bytes: usize) -> f64 {
    let port = end.port(peer, 0).unwrap();
    let (ball, landed) = (Lease::new(vec![1u8; bytes]), Lease::new(vec![0u8; bytes]));
    let (ball, into) = (ball.piece(), landed.piece());
    let mut done = Completions::new();
    let began = Instant::now();
    for round in 0..ROUNDS {
        let frame = frame(ball, round);
        end.post_recv(port, &frame, &[into], Token(0)).unwrap();
        if peer == 1 {
            end.post_send(port, &frame, &[ball], Token(1)).unwrap();
            wait(&mut end, &mut done, 2);
        } else {
            wait(&mut end, &mut done, 1);
            end.post_send(port, &frame, &[ball], Token(1)).unwrap();
            wait(&mut end, &mut done, 1);
        }
    }
    began.elapsed().as_secs_f64()
}

fn wait(end: &mut InprocEndpoint, done: &mut Completions, count: usize) {
    while done.len() < count {
        end.poll(done).unwrap();
        std::hint::spin_loop();
    }
    done.clear();
}

/// Sends or receives the vector five times, in segments with a window.
fn stream(mut end: InprocEndpoint, peer: u32, direction: Direction, bytes: Vec<u8>) {
    let port = end.port(peer, 0).unwrap();
    let lease = Lease::new(bytes);
    for _ in 0..5 {
        let began = Instant::now();
        pass(&mut end, port, direction, lease.piece());
        if direction == Direction::Recv {
            rate("streamed", began.elapsed().as_secs_f64());
        }
    }
}

fn pass(end: &mut InprocEndpoint, port: Port, direction: Direction, whole: Piece) {
    let (mut posted, mut completed) = (0, 0);
    let mut done = Completions::new();
    while completed < STREAM / SEGMENT {
        while posted < (completed + WINDOW).min(STREAM / SEGMENT) {
            let piece = whole.slice(posted * SEGMENT..(posted + 1) * SEGMENT);
            let frame = frame(piece, posted as u64);
            match direction {
                Direction::Send => end.post_send(port, &frame, &[piece], Token(0)).unwrap(),
                Direction::Recv => end.post_recv(port, &frame, &[piece], Token(0)).unwrap(),
            }
            posted += 1;
        }
        end.poll(&mut done).unwrap();
        completed += done.len();
        done.clear();
    }
}
