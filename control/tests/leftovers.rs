//! Nothing of a group stays behind. Alone in its process, so that it can count.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{Dummy, coordinator, group, settings, start_all};

fn count(what: &str) -> usize {
    fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}

/// Descriptors and threads, once those that are ending have ended.
fn settled(at_most: (usize, usize)) -> (usize, usize) {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let now = (count("fd"), count("task"));
        if (now.0 <= at_most.0 && now.1 <= at_most.1) || Instant::now() > until {
            return now;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What this process has computed so far, in hundredths of a second.
fn computed() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let times = fields.skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// One test, since two at a time could not count.
#[test]
fn nothing_stays_behind_and_nothing_spins() {
    no_thread_spins_while_a_group_is_idle_or_has_failed();
    two_hundred_groups_leave_descriptors_and_threads_where_they_were();
}

fn no_thread_spins_while_a_group_is_idle_or_has_failed() {
    let mut group = group(4);
    for lost in [None, Some(3), Some(0)] {
        if let Some(lost) = lost {
            group.remove(lost).vanish();
        }
        let before = computed();
        std::thread::sleep(Duration::from_secs(1));
        let used = computed() - before;
        assert!(used <= 10, "{used} hundredths of a second without {lost:?}");
    }
}

fn two_hundred_groups_leave_descriptors_and_threads_where_they_were() {
    drop(group(3));
    let before = settled((0, 0));
    let began = Instant::now();
    for round in 0..200 {
        let mut group = group(3);
        match round % 4 {
            0 => group.remove(round % 3).vanish(),
            1 => group.rotate_left(1),
            _ => {}
        }
        drop(group);
    }
    // Failed ones too.
    for _ in 0..20 {
        let place = coordinator();
        let mut all = [0, 1, 2].map(|rank| settings(rank, 3, &place));
        all[2].size = 4;
        let started = start_all(all.into(), Dummy::default());
        assert!(started.iter().all(Result::is_err));
    }
    let after = settled(before);
    assert!(
        after.0 <= before.0 && after.1 <= before.1,
        "{before:?} -> {after:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(120));
}
