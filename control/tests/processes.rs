//! Ranks that are processes: killed, stopped, started by their environment.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Dummy, cause, coordinator};
use unisono_control::{Coordinator, Environment, Network, Settings};

/// Set in the processes that are ranks.
const CHILD: &str = "UNISONO_TEST_CHILD";

/// One rank, when this program is started as one: says that it is there, and then how the group ended.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let settings = Settings::from_environment(&Environment::read().unwrap()).unwrap();
    let rank = settings.rank;
    let (network, _) = Network::start(settings, Arc::new(Dummy::default())).unwrap();
    println!("rank {rank} stands");
    let patience = Duration::from_secs(6);
    match cause(&network, patience) {
        Some(cause) => println!("rank {rank} says: {cause}"),
        None => println!("rank {rank} says: nothing happened"),
    }
}

struct Rank {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Rank {
    fn start(rank: u32, size: u32, coordinator: &Coordinator) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("UNISONO_RANK", rank.to_string())
            .env("UNISONO_SIZE", size.to_string())
            .env("UNISONO_COORDINATOR", coordinator.to_string())
            .env("UNISONO_JOB", "processes")
            .env("UNISONO_TIMEOUT", "20.0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Reads until the rank says that the group stands.
    fn stands(&mut self) {
        let mut line = String::new();
        while !line.contains("stands") {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// What the rank says in the end.
    fn says(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.process.wait().unwrap();
        let says = text.split_once("says: ");
        let (_, words) = says.unwrap_or_else(|| panic!("it said {text:?}"));
        words.lines().next().unwrap_or_default().to_owned()
    }
}

fn group(size: u32) -> Vec<Rank> {
    let place = coordinator();
    let mut ranks: Vec<Rank> = (0..size).map(|r| Rank::start(r, size, &place)).collect();
    ranks.iter_mut().for_each(Rank::stands);
    ranks
}

#[test]
fn a_killed_process_is_named_by_all_others() {
    for killed in [2, 0] {
        let mut ranks = group(3);
        let began = Instant::now();
        let mut gone = ranks.remove(killed);
        gone.process.kill().unwrap();
        for rank in ranks {
            assert_eq!(rank.says(), format!("rank {killed} was lost"));
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        gone.process.wait().unwrap();
    }
}

#[test]
fn a_process_that_is_stopped_for_three_seconds_is_not_lost() {
    let ranks = group(3);
    for stopped in &ranks[..2] {
        stopped.signal("-STOP");
    }
    thread::sleep(Duration::from_secs(3));
    for stopped in &ranks[..2] {
        stopped.signal("-CONT");
    }
    for rank in ranks {
        assert_eq!(rank.says(), "nothing happened");
    }
}
