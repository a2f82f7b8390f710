//! `unisono bench` and `unisono launch` over tcp: groups of processes, and what is left of them when one is lost.

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Ended, end, numbers, run, unisono};
use rustix::process::{Pid, Signal, kill_process};

const QUICK: &str = "bench --iters 3 --warmup 1 --json";

/// A bench that would take minutes.
const LONG: &str = "bench --bytes 64K --iters 10000000 --check --json";

#[test]
fn a_group_for_every_number_of_ranks_one_after_the_other() {
    let ended = run(&format!("{QUICK} --ranks 2,3,5 --bytes 4..64K --check")).done();
    let rows = ended.objects();
    assert_eq!(rows.len(), 3 * 15);
    assert!(rows.iter().all(|row| row["transport"] == "tcp"));
    assert!(numbers(&rows, "wrong").iter().all(|&w| w == 0));
    let ranks = numbers(&rows, "ranks");
    assert!(ranks.is_sorted());
    for n in [2, 3, 5] {
        assert_eq!(ranks.iter().filter(|&&r| r == n).count(), 15);
    }
}

#[test]
fn every_operation_is_right_between_processes() {
    let arguments = "--op all --ranks 3 --bytes 0,20,70000 --check --dtype f32,i8 --reduce max";
    let ended = run(&format!("{QUICK} {arguments}")).done();
    let rows = ended.objects();
    // A barrier has one row for all sizes.
    assert_eq!(rows.len(), 8 * 2 * 3 + 2);
    assert!(numbers(&rows, "wrong").iter().all(|&w| w == 0));
    let messages = run(&format!(
        "{QUICK} --op send_recv --ranks 1,3 --bytes 1K --check"
    ))
    .done();
    assert_eq!(numbers(&messages.objects(), "wrong"), [0, 0]);
}

#[test]
fn copies_of_an_algorithm_have_connections_of_their_own() {
    let arguments = "--ranks 3 --bytes 100K --algorithm ring --channels 3 --segments 4 --check";
    run(&format!("{QUICK} {arguments}")).done();
}

#[test]
fn a_flipped_byte_at_any_rank_is_found_by_all() {
    for rank in 0..3 {
        let ended = run(&format!("{QUICK} --ranks 3 --bytes 1K --corrupt {rank}"));
        let ended = ended.refused(&["1 element is wrong", &format!("rank {rank}")]);
        assert_eq!(ended.objects()[0]["wrong"], 1);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn what_cannot_be_done_is_said_once_and_before_any_process() {
    let once = |arguments: &str, words: &[&str]| {
        let ended = run(&format!("{QUICK} {arguments}")).refused(words);
        assert_eq!(
            (ended.stderr.lines().count(), ended.stdout.as_str()),
            (1, "")
        );
    };
    once("--algorithm tree --op all_gather", &["tree", "all_gather"]);
    once("--ranks 2,3 --algorithm butterfly-halving", &["3 ranks"]);
    once("--bytes 100000G --ranks 2", &["memory"]);
    once("--reduce avg --dtype i32 --bytes 4", &["avg", "i32"]);
}

#[test]
fn a_table_has_one_head_and_one_summary() {
    let ended = run("bench --ranks 2 --bytes 1K,2K --iters 2 --check").done();
    assert!(ended.stdout.starts_with("# unisono "));
    assert!(ended.stdout.contains("transport tcp, ranks are processes"));
    assert_eq!(ended.stdout.matches("# unisono ").count(), 1);
    assert!(ended.last().starts_with("# 2 rows: every element right"));
}

#[test]
fn a_launched_bench_is_one_rank_and_rank_0_prints() {
    let mut command = unisono();
    let this = command.get_program().to_owned();
    command.args(["launch", "-n", "2", "--"]).arg(&this);
    command.args(format!("{QUICK} --bytes 1K --ranks 2 --check").split(' '));
    let ended = end(&mut command).done();
    assert_eq!(ended.stdout.lines().count(), 1);
    assert!(
        ended
            .stdout
            .starts_with("[0] {\"op\":\"all_reduce\",\"transport\":\"tcp\"")
    );
}

#[test]
fn a_coordinator_that_is_not_there_is_given_up() {
    let mut command = unisono();
    command.envs([
        ("UNISONO_RANK", "1"),
        ("UNISONO_SIZE", "2"),
        ("UNISONO_COORDINATOR", "127.0.0.1:1"),
        ("UNISONO_TIMEOUT", "1"),
    ]);
    let start = Instant::now();
    end(command.arg("bench")).refused(&["127.0.0.1:1"]);
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// Starts a command, waits until its ranks are at work, does `harm` with the process ids of the ranks (in rank order),
/// and says how it ended and how long that took.
#[cfg(target_os = "linux")]
fn harmed(command: &mut Command, ranks: usize, harm: impl Fn(&[Pid])) -> (Ended, Duration) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let parent = child.id();
    let deadline = Instant::now() + Duration::from_secs(60);
    let pids = loop {
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let pids: Vec<i32> = children
            .split_whitespace()
            .map(|p| p.parse().unwrap())
            .collect();
        // A rank that measures has used up time of the processor: setting up a group takes next to none.
        if pids.len() == ranks && pids.iter().all(|&pid| busy(pid)) {
            break pids;
        }
        assert!(Instant::now() < deadline, "{children:?} never got to work");
        thread::sleep(Duration::from_millis(20));
    };
    let pids: Vec<Pid> = pids
        .into_iter()
        .map(|p| Pid::from_raw(p).unwrap())
        .collect();
    let start = Instant::now();
    harm(&pids);
    let output = child.wait_with_output().unwrap();
    let took = start.elapsed();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ended = Ended {
        status: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    (ended, took)
}

/// Whether a process has used half a second of processor time.
#[cfg(target_os = "linux")]
fn busy(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|t| t.parse::<u64>().ok()).sum::<u64>() >= 30
}

#[cfg(target_os = "linux")]
#[test]
fn a_rank_killed_in_the_middle_ends_all_others_soon_and_is_named() {
    for lost in [1, 0] {
        let mut command = Command::new(unisono().get_program());
        command.args(LONG.split(' ')).args(["--ranks", "3"]);
        let (ended, took) = harmed(&mut command, 3, |pids| {
            kill_process(pids[lost], Signal::KILL).unwrap();
        });
        assert!(took < Duration::from_secs(5), "{took:?}");
        let ended = ended.refused(&[&format!("rank {lost} was killed by signal 9")]);
        // The survivors name it as well.
        for survivor in (0..3).filter(|&r| r != lost) {
            let said = ended
                .stderr
                .lines()
                .find(|l| l.starts_with(&format!("[{survivor}] ")));
            let said = said.unwrap_or_else(|| panic!("nothing of {survivor}: {}", ended.stderr));
            assert!(said.contains(&format!("rank {lost}")), "{said}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_launched_rank_that_is_killed_ends_the_job() {
    let program = unisono().get_program().to_owned();
    let mut command = Command::new(&program);
    command.args(["launch", "-n", "3", "--"]).arg(&program);
    let (ended, took) = harmed(command.args(LONG.split(' ')), 3, |pids| {
        kill_process(pids[2], Signal::KILL).unwrap();
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
    let ended = ended.refused(&["rank 2 was killed by signal 9"]);
    for survivor in [
        "rank 0 exited with status 1\n",
        "rank 1 exited with status 1\n",
    ] {
        assert!(ended.stderr.contains(survivor), "{}", ended.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_bench_leaves_no_process_behind() {
    let mut command = Command::new(unisono().get_program());
    command.args(LONG.split(' ')).args(["--ranks", "2"]);
    let seen = std::cell::RefCell::new(Vec::new());
    let (ended, took) = harmed(&mut command, 2, |pids| {
        seen.borrow_mut().extend_from_slice(pids);
        let stat = fs::read_to_string(format!("/proc/{}/stat", pids[0].as_raw_pid())).unwrap();
        let parent = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap();
        let parent = Pid::from_raw(parent.parse().unwrap()).unwrap();
        kill_process(parent, Signal::INT).unwrap();
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
    ended.refused(&["was killed by signal 2"]);
    for pid in seen.into_inner() {
        assert!(!fs::exists(format!("/proc/{}", pid.as_raw_pid())).unwrap());
    }
}
