//! `unisono launch`: what ranks are given, what is passed on, and how a job ends. Over programs that know no group.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Ended, end, run, unisono};
use rustix::process::{Pid, Signal, kill_process};

/// Runs `script` on so many ranks.
fn sh(ranks: u32, more: &[&str], script: &str) -> Ended {
    let mut command = unisono();
    command
        .args(["launch", "-n", &ranks.to_string()])
        .args(more);
    end(command.args(["--", "sh", "-c", script]))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_rank_knows_its_place_and_speaks_with_its_rank_in_front() {
    let ended = sh(3, &[], "echo $UNISONO_RANK of $UNISONO_SIZE").done();
    assert_eq!(
        sorted(&ended.stdout),
        ["[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"]
    );
    let ended = sh(2, &[], "echo loud >&2; echo plain");
    assert_eq!(sorted(&ended.stdout), ["[0] plain", "[1] plain"]);
    assert_eq!(sorted(&ended.stderr), ["[0] loud", "[1] loud"]);
    assert_eq!(ended.status, Some(0));
}

#[test]
fn all_ranks_meet_at_one_place_that_goes_away() {
    let ended = sh(2, &[], "echo $UNISONO_COORDINATOR $UNISONO_JOB").done();
    let lines = sorted(&ended.stdout);
    let place = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    assert_eq!(place(lines[0]), place(lines[1]));
    let (coordinator, job) = lines[0][4..].split_once(' ').unwrap();
    let file = std::path::Path::new(coordinator.strip_prefix("file://").unwrap());
    assert!(file.is_absolute() && !file.parent().unwrap().exists());
    let again = sh(1, &[], "echo $UNISONO_JOB").done().stdout;
    assert!(!job.is_empty() && again.trim() != format!("[0] {job}"));
}

#[test]
fn what_is_asked_for_is_what_ranks_are_told() {
    let more = [
        "--coordinator",
        "127.0.0.1:5000",
        "--job",
        "j 1",
        "--timeout",
        "2.5",
    ];
    let script = "echo $UNISONO_COORDINATOR,$UNISONO_JOB,$UNISONO_TIMEOUT";
    let ended = sh(1, &more, script).done();
    assert_eq!(ended.last(), "[0] 127.0.0.1:5000,j 1,2.5");
}

#[test]
fn arguments_are_those_of_the_program() {
    let ended = run("launch -n 1 echo -n --ranks x").done();
    assert_eq!(ended.stdout, "[0] --ranks x\n");
}

#[test]
fn lines_of_different_ranks_do_not_mix() {
    let script = "i=0; while [ $i -lt 200 ]; do printf a$UNISONO_RANK; printf 'b%s\\n' $UNISONO_RANK; \
                  i=$((i+1)); done; printf 'no end'";
    let ended = sh(4, &[], script).done();
    assert_eq!(ended.stdout.lines().count(), 4 * 201);
    for line in ended.stdout.lines() {
        let rank = &line[1..2];
        let (whole, last) = (
            format!("[{rank}] a{rank}b{rank}"),
            format!("[{rank}] no end"),
        );
        assert!(line == whole || line == last, "{line}");
    }
}

#[test]
fn bytes_that_are_no_text_are_passed_on() {
    let mut command = unisono();
    command.args(["launch", "-n", "1", "--", "printf", r"\377\000x\r\n"]);
    assert_eq!(command.output().unwrap().stdout, b"[0] \xff\0x\r\n");
}

#[test]
fn the_first_failure_is_the_last_line() {
    let script = "case $UNISONO_RANK in 2) exit 3;; 0) sleep 0.5; exit 4;; esac; sleep 0.2";
    let ended = sh(3, &[], script).refused(&["rank 2 exited with status 3"]);
    assert!(ended.stderr.contains("rank 0 exited with status 4\n"));
    assert!(!ended.stderr.contains("rank 1"), "{}", ended.stderr);
    sh(2, &[], "[ $UNISONO_RANK = 0 ] || kill -9 $$").refused(&["rank 1 was killed by signal 9"]);
}

#[test]
fn ranks_that_outlive_a_failure_are_ended() {
    let start = Instant::now();
    // What the shell started ends with it.
    let script = "[ $UNISONO_RANK = 1 ] && exit 7; sleep 60; echo never";
    let ended = sh(3, &["--grace", "0.2"], script).refused(&["rank 1 exited with status 7"]);
    assert!(ended.stderr.contains("rank 0 was killed by signal 15"));
    assert_eq!(ended.stdout, "");
    // One that does not listen to SIGTERM has five seconds more.
    let script = "[ $UNISONO_RANK = 1 ] && exit 7; trap '' TERM; sleep 60 & wait; wait";
    let ended = sh(2, &["--grace", "0.2"], script).refused(&["rank 1 exited with status 7"]);
    assert!(ended.stderr.contains("rank 0 was killed by signal 9"));
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn ranks_that_end_by_themselves_after_a_failure_are_left_alone() {
    let script = "[ $UNISONO_RANK = 1 ] && exit 7; sleep 0.4; echo done";
    let ended = sh(2, &[], script).refused(&["rank 1 exited with status 7"]);
    assert_eq!(ended.stdout, "[0] done\n");
}

#[test]
fn what_cannot_be_started_is_refused() {
    run("launch -n 3 -- /no/such/program").refused(&["/no/such/program", "No such file"]);
    run("launch -n 3 -- /etc").refused(&["/etc", "denied"]);
}

#[test]
fn mistakes_are_usage() {
    run("launch -n 0 -- true").usage(&["--ranks"]);
    run("launch -n x -- true").usage(&["x"]);
    run("launch -n 100000 -- true").usage(&["100000"]);
    run("launch -n 3").usage(&["CMD"]);
    run("launch -n 3 --").usage(&["CMD"]);
    run("launch -- true").usage(&["--ranks"]);
    run("launch -n 1 --coordinator ::1:5000 -- true").usage(&["brackets"]);
    run("launch -n 1 --timeout 0 -- true").usage(&["seconds"]);
    run("launch -n 1 --grace inf -- true").usage(&["seconds"]);
}

/// A job that was started and is looked at while it runs.
struct Running(Child);

impl Running {
    fn start(ranks: &str, script: &str) -> Running {
        let mut command = Command::new(unisono().get_program());
        command.args(["launch", "-n", ranks, "--", "sh", "-c", script]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// Reads so many lines of stdout.
    fn lines(&mut self, count: usize) -> Vec<String> {
        let stdout = self.0.stdout.as_mut().unwrap();
        let lines = BufReader::with_capacity(1, stdout).lines().take(count);
        lines.map(Result::unwrap).collect()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn end(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let status = self.0.wait().unwrap().code();
        Ended {
            status,
            stdout,
            stderr,
        }
    }
}

#[test]
fn signals_are_passed_on_to_every_rank() {
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::USR1, "USR1"),
    ] {
        let script =
            format!("trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.05; done");
        let mut running = Running::start("3", &script);
        running.lines(3);
        running.signal(signal);
        let ended = running.end();
        // A shell may say on stderr that what it ran was interrupted.
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert_eq!(sorted(&ended.stdout), ["[0] got", "[1] got", "[2] got"]);
    }
}

#[test]
fn an_interrupt_ends_ranks_that_do_not_mind_it() {
    let mut running = Running::start("2", "echo ready; sleep 60; echo never");
    running.lines(2);
    running.signal(Signal::TERM);
    let ended = running.end().refused(&["was killed by signal 15"]);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_reader_that_leaves_ends_the_job_and_is_no_failure() {
    let script = "while echo more; do sleep 0.01; done; sleep 60";
    let mut running = Running::start("2", script);
    running.lines(1);
    drop(running.0.stdout.take());
    let start = Instant::now();
    let output = running.0.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(20));
}
