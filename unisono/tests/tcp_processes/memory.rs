//! What a rank needs besides the memory of its caller, and how soon a group stands.

use std::time::{SystemTime, UNIX_EPOCH};

use unisono::{Collective, Group, Op};

use crate::leftovers::memory;
use crate::processes::{Job, argument, say};

/// Bytes of each user buffer.
const LARGE: usize = 64 << 20;

/// Microseconds of a clock that all processes share.
fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros()
}

pub(crate) fn rank() {
    let began = now();
    let mut g = Group::from_env().unwrap();
    say(began);
    say(now());
    let argument = argument();
    let (algorithm, place) = argument.split_once(' ').unwrap();
    if algorithm != "auto" {
        g = g.with_algorithm(algorithm).unwrap();
    }
    let mut x = vec![1f32; LARGE / 4];
    let beyond = |buffers: usize| memory("VmHWM").saturating_sub((buffers * LARGE) >> 10);
    for _ in 0..2 {
        if place == "in" {
            g.all_reduce(&mut x, Op::Max).unwrap();
        } else {
            let mut y = vec![0f32; LARGE / 4];
            g.all_reduce_into(&x, &mut y, Op::Max).unwrap();
        }
    }
    say(beyond(if place == "in" { 1 } else { 2 }));
    g.close().unwrap();
}

/// What four ranks say, each: began, joined, KiB beyond the buffers of the caller.
fn four(algorithm: &str, place: &str) -> Vec<Vec<u128>> {
    let said = Job::start("memory", &format!("{algorithm} {place}"), 4).done();
    let numbers = |said: &Vec<String>| said.iter().map(|s| s.parse().unwrap()).collect();
    said.iter().map(numbers).collect()
}

#[test]
fn a_rank_needs_less_than_64_mib_beyond_the_buffers_of_its_caller() {
    for place in ["in", "out"] {
        let said = four("auto", place);
        let began = said.iter().map(|s| s[0]).max().unwrap();
        let joined = said.iter().map(|s| s[1]).max().unwrap();
        let micros = joined - began;
        println!("a group of 4 stands {micros} us after its last rank began");
        for (rank, said) in said.iter().enumerate() {
            println!("rank {rank}: {} KiB", said[2]);
            assert!(said[2] < 64 << 10, "rank {rank}: {} KiB", said[2]);
        }
    }
}

#[test]
#[ignore = "a table, no test: what each algorithm needs"]
fn memory_of_each_algorithm() {
    for name in unisono::registry().names() {
        let g = Group::builder().join().unwrap();
        let offers = g.with_algorithm(name).unwrap();
        if offers
            .choice::<f32>(Collective::AllReduce, 1, None)
            .is_err()
        {
            continue;
        }
        let most = ["in", "out"].map(|place| {
            let said = four(name, place);
            said.iter().map(|s| s[2]).max().unwrap() >> 10
        });
        println!(
            "{name}: {} MiB in place, {} MiB out of place",
            most[0], most[1]
        );
    }
}
