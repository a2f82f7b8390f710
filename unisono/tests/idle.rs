//! Whoever waits sleeps, and whoever goes leaves nothing behind.

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::block_on;
use unisono::{Op, owned};

/// Nanoseconds that the threads of this process have run so far.
fn cpu() -> u64 {
    tasks()
        .iter()
        .filter_map(|task| fs::read_to_string(format!("{task}/schedstat")).ok())
        .filter_map(|stat| stat.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

fn tasks() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("a process has tasks");
    tasks
        .flatten()
        .map(|task| task.path().display().to_string())
        .collect()
}

/// Names of the threads.
fn names() -> Vec<String> {
    let names = tasks().into_iter();
    let mut names: Vec<_> = names
        .filter_map(|task| fs::read_to_string(format!("{task}/comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort_unstable();
    names
}

/// Resident memory, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    value.expect("it has a size")
}

fn a_blocked_group_uses_no_cpu() {
    let _idle = unisono::inproc(4);
    let mut groups = unisono::inproc(4);
    let late = groups.pop().unwrap();
    thread::scope(|s| {
        for group in &groups {
            s.spawn(|| group.barrier().unwrap());
            // A second thread of the rank that waits while the first drives, and a handle.
            s.spawn(|| group.recv(&mut [0u8; 10], 3).unwrap());
            s.spawn(|| block_on(group.start(owned::recv(vec![0u8; 10], 3))).unwrap());
        }
        thread::sleep(Duration::from_millis(200));
        let before = cpu();
        thread::sleep(Duration::from_secs(1));
        let used = Duration::from_nanos(cpu() - before);
        for group in &groups {
            late.send(&[1u8; 10], group.rank()).unwrap();
            late.send(&[1u8; 10], group.rank()).unwrap();
        }
        late.barrier().unwrap();
        assert!(
            used < Duration::from_millis(50),
            "used {used:?} in a second"
        );
    });
}

/// A group, a blocking and a polled operation on every rank, and its end.
fn one_life(size: u32) {
    thread::scope(|s| {
        for group in unisono::inproc(size) {
            s.spawn(move || {
                let mut x = vec![1f32; 10_000];
                group.all_reduce(&mut x, Op::Sum).unwrap();
                block_on(group.start(owned::all_reduce(x, Op::Sum))).unwrap();
                group.close().unwrap();
            });
        }
    });
}

fn groups_that_are_gone_leave_nothing() {
    (0..20).for_each(|_| one_life(4));
    let before = resident();
    (0..200).for_each(|_| one_life(4));
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 * 1024, "grown by {grown} KiB in 200 lives");
}

/// One test, because it watches the process as a whole.
#[test]
fn nothing_runs_that_need_not() {
    let mut before = names();
    a_blocked_group_uses_no_cpu();
    groups_that_are_gone_leave_nothing();
    // A thread that was joined may take a moment to disappear.
    thread::sleep(Duration::from_millis(50));
    before.push("unisono-timer".to_owned());
    before.sort_unstable();
    assert_eq!(names(), before);
}
