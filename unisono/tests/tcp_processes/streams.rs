//! Much both ways at once, messages of all lengths without barriers, and more than 2 GiB.

use std::time::Instant;

use futures::executor::block_on;
use unisono::{Group, owned};

use crate::processes::{Job, Start, argument, say};

/// More than any kernel buffers.
const MUCH: usize = 64 << 20;

/// Bytes that no other rank, message or place has. A step that is no power of two moves every byte of a shifted message.
fn fill(rank: u32, number: usize, y: &mut [u8]) {
    let seed = rank * 77 + number as u32;
    // Doubling what is there is fast also where nothing is optimised.
    let first = y.len().min(65_537);
    for (i, byte) in y[..first].iter_mut().enumerate() {
        *byte = (i as u32 ^ seed).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    }
    let mut there = first;
    while there < y.len() {
        let more = there.min(y.len() - there);
        y.copy_within(..more, there);
        there += more;
    }
}

fn filled(rank: u32, number: usize, n: usize) -> Vec<u8> {
    let mut y = vec![0; n];
    fill(rank, number, &mut y);
    y
}

pub(crate) fn exchanging_rank() {
    let g = Group::from_env().unwrap();
    let (me, peer) = (g.rank(), 1 - g.rank());
    let theirs = filled(peer, 0, MUCH);
    let mine = filled(me, 0, MUCH);
    match argument().as_str() {
        "send_recv" => {
            let mut y = vec![0; MUCH];
            g.send_recv(&mine, peer, &mut y, peer).unwrap();
            assert!(y == theirs);
        }
        "started" => {
            let sent = g.start(owned::send(mine, peer));
            let came = g.start(owned::recv(vec![0; MUCH], peer));
            let (sent, came) = block_on(async { futures::join!(sent, came) });
            sent.unwrap();
            assert!(came.unwrap() == theirs);
        }
        // Each waits for its send alone: the receive was started too, and goes on behind it.
        _ => {
            let came = g.start(owned::recv(vec![0; MUCH], peer));
            let sent = g.start(owned::send(mine, peer));
            sent.wait().unwrap();
            assert!(came.wait().unwrap() == theirs);
        }
    }
    g.close().unwrap();
}

#[test]
fn both_directions_are_full_at_once_in_one_call() {
    Job::start("exchange", "send_recv", 2).done();
}

#[test]
fn both_directions_are_full_at_once_in_two_started_operations() {
    Job::start("exchange", "started", 2).done();
    Job::start("exchange", "one by one", 2).done();
}

const LENGTHS: [usize; 6] = [1, 4096, 4097, 7, 0, 1 << 20];

pub(crate) fn messaging_rank() {
    let g = Group::from_env().unwrap();
    let (me, peer) = (g.rank(), 1 - g.rank());
    // Elements of four bytes.
    let of = |rank, (number, n): (usize, usize)| -> Vec<i32> {
        let bytes = filled(rank, number, 4 * n);
        let words = bytes.chunks_exact(4);
        words
            .map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    };
    let all = || LENGTHS.into_iter().enumerate();
    let mine: Vec<_> = all().map(|message| of(me, message)).collect();
    let theirs: Vec<_> = all().map(|message| of(peer, message)).collect();
    // One after the other, both ways at once.
    for (x, right) in mine.iter().zip(&theirs) {
        let mut y = vec![0; right.len()];
        g.send_recv(x, peer, &mut y, peer).unwrap();
        assert!(y == *right);
    }
    // Blocking: all there, then all back.
    for turn in [0, 1] {
        for (x, right) in mine.iter().zip(&theirs) {
            if me == turn {
                g.send(x, peer).unwrap();
            } else {
                let mut y = vec![0; right.len()];
                g.recv(&mut y, peer).unwrap();
                assert!(y == *right);
            }
        }
    }
    // All in flight at once.
    let sends: Vec<_> = mine
        .into_iter()
        .map(|x| g.start(owned::send(x, peer)))
        .collect();
    let receives: Vec<_> = theirs
        .iter()
        .map(|right| g.start(owned::recv(vec![0; right.len()], peer)))
        .collect();
    for (came, right) in receives.into_iter().zip(&theirs) {
        assert!(came.wait().unwrap() == *right);
    }
    for sent in sends {
        block_on(sent).unwrap();
    }
    g.close().unwrap();
}

#[test]
fn messages_of_very_different_lengths_go_both_ways_without_barriers() {
    Job::start("messages", "", 2).done();
}

pub(crate) fn gathering_rank() {
    let n = (1usize << 30) + 2048; // two rows: 2 GiB + 4 KiB
    let g = Group::from_env().unwrap();
    let x = filled(g.rank(), 0, n);
    let mut y = vec![0; 2 * n];
    let began = Instant::now();
    g.all_gather(&x, &mut y).unwrap();
    let took = began.elapsed();
    drop(x);
    for rank in 0..2 {
        let row = &y[rank * n..][..n];
        assert!(*row == filled(rank as u32, 0, n), "row {rank}");
    }
    say(format_args!("{took:?}"));
    g.close().unwrap();
}

#[test]
#[ignore = "needs 7 GiB of memory: run in release before a release"]
fn an_all_gather_beyond_two_gibibytes_is_right_between_processes() {
    let mut start = Start::new("gather", "");
    start.life = 550;
    println!("{:?}", Job::start_with(&start, 2).done());
}
