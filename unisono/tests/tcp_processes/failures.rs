//! A rank is killed, stopped for a while, or calls something else: what all others say, and what is left of the group.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use rustix::process::Signal;
use unisono::{Error, Group, Op, owned};

use crate::leftovers::{Before, computed, sockets};
use crate::processes::{Job, Start, argument, say};

/// Works until the group fails, says why, and that nothing of it is left.
pub(crate) fn working_rank() {
    let (before, none) = (Before::now(), sockets());
    let g = Group::from_env().unwrap();
    assert!(sockets() >= none + 5, "four to the peers, one for control");
    let work = argument();
    let mut small = [1f32; 4];
    let mut large = vec![1f32; if work == "large" { 4 << 20 } else { 0 }];
    let mut rounds = 0;
    let error = loop {
        let result = match work.as_str() {
            "small" => g.all_reduce(&mut small, Op::Max),
            "large" => g.all_reduce(&mut large, Op::Max),
            "messages" => {
                let (right, left) = ((g.rank() + 1) % g.size(), (g.rank() + 2) % g.size());
                let mut y = vec![0u8; 100_000];
                g.send_recv(&[7u8; 100_000], right, &mut y, left)
            }
            // Two in flight, by a future.
            _ => {
                let one = g.start(owned::all_reduce(vec![1f32; 300_000], Op::Max));
                let two = g.start(owned::all_gather(vec![g.rank()], vec![9; 3]));
                let (one, two) = block_on(async { futures::join!(one, two) });
                one.map_err(Error::from)
                    .and(two.map(drop).map_err(Error::from))
            }
        };
        if let Err(error) = result {
            break error;
        }
        rounds += 1;
        if rounds == 20 {
            say("at work");
        }
    };
    say(&error);
    // The same again, and of everything.
    assert_eq!(g.barrier().unwrap_err().to_string(), error.to_string());
    let began = computed();
    thread::sleep(Duration::from_secs(1));
    let used = computed() - began;
    assert!(used <= 10, "{used} hundredths of a second after the error");
    drop(g);
    before.nothing_is_left();
}

fn a_killed_rank_is_named(work: &str) {
    for lost in 0..3 {
        let mut job = Job::start("work", work, 3);
        for rank in &mut job.ranks {
            rank.says("at work");
        }
        let gone = job.ranks.remove(lost);
        let began = Instant::now();
        gone.signal(Signal::KILL);
        for survivor in &mut job.ranks {
            let error = survivor.next().expect("an error");
            assert!(began.elapsed() < Duration::from_secs(5), "{error}");
            let name = format!("rank {lost} was lost");
            assert!(error.starts_with(&name), "{work} without {lost}: {error}");
        }
        job.done();
        assert!(!gone.end().1.success());
    }
}

#[test]
fn any_rank_killed_amid_small_operations_is_named_and_leaves_nothing() {
    a_killed_rank_is_named("small");
}

#[test]
fn any_rank_killed_amid_large_operations_is_named_and_leaves_nothing() {
    a_killed_rank_is_named("large");
}

#[test]
fn any_rank_killed_amid_messages_is_named_and_leaves_nothing() {
    a_killed_rank_is_named("messages");
}

#[test]
fn any_rank_killed_amid_started_operations_is_named_and_leaves_nothing() {
    a_killed_rank_is_named("started");
}

/// Does the same reduction until it is told to end; says the bits of the sum if they were always the same.
pub(crate) fn repeating_rank() {
    let g = Group::from_env().unwrap().with_algorithm("ring").unwrap();
    let over = Arc::new(AtomicBool::new(false));
    if g.rank() == 0 {
        let over = Arc::clone(&over);
        thread::spawn(move || {
            // The test closes it.
            let _ = std::io::read_to_string(std::io::stdin());
            over.store(true, Ordering::Relaxed);
        });
    }
    // Sums of these depend on the order.
    let value = |i: usize| {
        ((i as f32 * 0.37 + g.rank() as f32).sin() * 1e3)
            .exp2()
            .min(1e20)
    };
    let mine: Vec<f32> = (0..200_000).map(|i| value(i % 4099)).collect();
    let (mut first, mut sum) = (Vec::new(), vec![0f32; mine.len()]);
    let mut rounds = 0;
    loop {
        g.all_reduce_into(&mine, &mut sum, Op::Sum).unwrap();
        let same = bytes(&sum) == bytes(&first);
        if rounds == 0 {
            first.clone_from(&sum);
        } else {
            assert!(same, "other bits in round {rounds}");
        }
        rounds += 1;
        if rounds == 5 {
            say("at work");
        }
        let mut end = [u8::from(over.load(Ordering::Relaxed))];
        g.broadcast(&mut end, 0).unwrap();
        if end == [1] {
            break;
        }
    }
    let bits = first.iter().fold(0u64, |hash, x| {
        hash.wrapping_mul(31) ^ u64::from(x.to_bits())
    });
    say(bits);
    g.close().unwrap();
}

fn bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect()
}

#[test]
fn a_rank_stopped_for_three_seconds_goes_on_and_every_bit_is_right() {
    let mut all_bits = Vec::new();
    for stopped in [None, Some(0), Some(2)] {
        let mut job = Job::start("repeat", "", 3);
        for rank in &mut job.ranks {
            rank.says("at work");
        }
        if let Some(stopped) = stopped {
            let stopped = &job.ranks[stopped];
            stopped.signal(Signal::STOP);
            thread::sleep(Duration::from_secs(3));
            let stat = fs::read_to_string(format!("/proc/{}/stat", stopped.process.id()));
            assert!(stat.unwrap_or_else(|_| ") T ".to_owned()).contains(") T "));
            stopped.signal(Signal::CONT);
            // Some more rounds.
            thread::sleep(Duration::from_millis(100));
        }
        drop(job.ranks[0].input.take());
        all_bits.extend(job.done());
    }
    assert_eq!(all_bits[0].len(), 1);
    assert!(all_bits.iter().all(|b| *b == all_bits[0]), "{all_bits:?}");
}

/// Rank 1 calls something else; all say what they are told, and whether their memory is as it was.
pub(crate) fn disagreeing_rank() {
    let argument = argument();
    let words: Vec<&str> = argument.split(' ').collect();
    let [what, algorithm, n, seconds] = words[..] else {
        panic!("{argument}");
    };
    let n: usize = n.parse().unwrap();
    let seconds = Duration::from_secs(seconds.parse().unwrap());
    let before = Before::now();
    let mut g = Group::from_env().unwrap().with_timeout(seconds);
    if algorithm != "auto" {
        g = g.with_algorithm(algorithm).unwrap();
    }
    let (me, odd) = (g.rank(), g.rank() == 1);
    let root = if odd { 2 } else { 0 };
    let mut x = vec![1f32; n];
    let result = match what {
        "collective" if odd => g.all_gather(&[1f32], &mut [1f32; 3]),
        "dtype" if odd => g.all_reduce(&mut vec![1i32; n], Op::Sum),
        "op" if odd => g.all_reduce(&mut x, Op::Max),
        "count" if odd => g.all_reduce(&mut vec![1f32; n + 5], Op::Sum),
        "broadcast-root" => g.broadcast(&mut x, root),
        "swapped-root" => g.broadcast(&mut x, 1 - me),
        "started-swapped-root" => {
            let broadcast = g.start(owned::broadcast(x.clone(), 1 - me));
            block_on(broadcast).map(drop).map_err(Error::from)
        }
        "all_reduce-and-root" if odd => g.broadcast(&mut x, 0),
        "message-count" | "message-dtype" if me == 2 => Ok(()),
        "message-count" | "message-dtype" if me == 0 => g.recv(&mut x, 1),
        "message-count" => g.send(&vec![2f32; n + 5], 0),
        "message-dtype" => g.send(&vec![2i32; n], 0),
        _ => g.all_reduce(&mut x, Op::Sum),
    };
    let untouched = x.iter().all(|v| *v == 1.0);
    // Who has returned already hears of it in his next call.
    let error = result
        .and_then(|()| g.barrier())
        .and_then(|()| g.barrier())
        .unwrap_err();
    assert!(matches!(error, Error::Failed { .. }));
    say(error);
    say(untouched);
    drop(g);
    before.nothing_is_left();
}

/// What all three ranks say, and whether each found its memory untouched.
#[track_caller]
fn common_error(argument: &str, check: &str) -> (String, bool) {
    common_error_of(3, argument, check)
}

/// The same of so many ranks.
#[track_caller]
fn common_error_of(size: u32, argument: &str, check: &str) -> (String, bool) {
    let mut start = Start::new("disagree", argument);
    let variables = [("UNISONO_CHECK", check)];
    start.variables = &variables;
    let said = Job::start_with(&start, size).done();
    assert!(said.iter().all(|s| s[0] == said[0][0]), "{said:#?}");
    let untouched = said.iter().all(|s| s[1] == "true");
    (said[0][0].clone(), untouched)
}

fn all_hear_of_the_same_disagreement(check: &str) {
    let cases = [
        (
            "collective",
            "auto",
            "collective",
            ["all_reduce", "all_gather"],
        ),
        ("dtype", "auto", "dtype", ["f32 at rank", "i32 at rank"]),
        ("op", "auto", "op", ["sum at rank", "max at rank"]),
        ("count", "auto", "count", ["", ""]),
        ("broadcast-root", "auto", "root", ["0 at rank", "2 at rank"]),
        ("broadcast-root", "ring", "root", ["0 at rank", "2 at rank"]),
        (
            "all_reduce-and-root",
            "auto",
            "collective",
            ["all_reduce", "broadcast"],
        ),
        ("message-count", "auto", "count", ["", ""]),
        (
            "message-dtype",
            "auto",
            "dtype",
            ["f32 at rank", "i32 at rank"],
        ),
    ];
    for (what, algorithm, field, values) in cases {
        for n in [3, 60_000] {
            let (error, untouched) = common_error(&format!("{what} {algorithm} {n} 20"), check);
            let begin = format!("ranks disagree on {field}: ");
            assert!(error.starts_with(&begin), "{what} of {n}: {error}");
            if field == "count" {
                let counts = [n, n + 5].map(|n| format!("{n} at rank "));
                assert!(counts.iter().all(|count| error.contains(count)), "{error}");
            } else {
                assert!(values.iter().all(|v| error.contains(v)), "{error}");
            }
            assert!(untouched || check == "default", "{what} of {n}");
        }
    }
}

#[test]
fn ranks_that_disagree_hear_the_same_when_frames_are_compared() {
    all_hear_of_the_same_disagreement("default");
}

#[test]
fn ranks_that_disagree_hear_the_same_and_touch_nothing_when_calls_are_compared() {
    all_hear_of_the_same_disagreement("full");
}

#[test]
fn roots_whose_messages_go_where_nobody_expects_them_are_noticed_long_before_the_deadline() {
    for n in [3, 60_000] {
        let began = Instant::now();
        let (error, _) = common_error(&format!("broadcast-root tree {n} 60"), "default");
        let begin = "ranks disagree on root: 2 at rank 1, 0 at rank 0 during broadcast #0";
        assert_eq!(error, begin);
        assert!(began.elapsed() < Duration::from_secs(10), "{error}");
    }
}

#[test]
fn two_ranks_that_each_take_the_other_for_the_root_hear_of_it_though_nothing_is_sent() {
    for what in ["swapped-root", "started-swapped-root"] {
        for n in [3, 60_000] {
            let began = Instant::now();
            let (error, untouched) = common_error_of(2, &format!("{what} auto {n} 60"), "default");
            let all = "ranks disagree on root: 1 at rank 0, 0 at rank 1 during broadcast #0";
            assert_eq!(error, all);
            assert!(untouched);
            assert!(began.elapsed() < Duration::from_secs(5), "{error}");
        }
    }
}
