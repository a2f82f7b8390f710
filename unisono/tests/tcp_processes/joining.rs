//! Processes that cannot become a group: all that came say the same.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use unisono::{Check, Group};

use crate::leftovers::Before;
use crate::processes::{Rank, Start, argument, file, free_port, say};

/// Joins as what its argument says, `rank size coordinator seconds job check`, whatever the environment says.
pub(crate) fn rank() {
    let argument = argument();
    let words: Vec<&str> = argument.split(' ').collect();
    let [rank, size, coordinator, seconds, job, check] = words[..] else {
        panic!("{argument}");
    };
    let check = match check {
        "full" => Check::Full,
        _ => Check::Default,
    };
    let builder = Group::builder()
        .rank(rank.parse().unwrap())
        .size(size.parse().unwrap())
        .coordinator(coordinator)
        .timeout(Duration::from_secs_f64(seconds.parse().unwrap()))
        .job(job)
        .check(check);
    let before = Before::now();
    match builder.join() {
        Ok(group) => {
            let joined = group.barrier().map(|()| "joined".to_owned());
            say(joined.unwrap_or_else(|error| error.to_string()));
        }
        Err(error) => say(error),
    }
    before.nothing_is_left();
}

/// One process: rank, size, and what else stands in the argument.
fn start((rank, size): (u32, u32), coordinator: &str, rest: &str) -> Rank {
    let argument = format!("{rank} {size} {coordinator} {rest}");
    Start::new("join", &argument).rank(0, 1, "127.0.0.1:1")
}

/// What all of these say who meet there, without the place.
#[track_caller]
fn meet(coordinator: &str, places: &[(u32, u32)], rest: &[&str]) -> String {
    let ranks: Vec<Rank> = places
        .iter()
        .zip(rest.iter().cycle())
        .map(|(place, rest)| start(*place, coordinator, rest))
        .collect();
    let said = ranks.into_iter().flat_map(Rank::done);
    let said: Vec<String> = said.map(|s| s.replace(coordinator, "PLACE")).collect();
    assert_eq!(said.len(), places.len());
    assert!(said.iter().all(|s| *s == said[0]), "{said:#?}");
    said[0].clone()
}

#[track_caller]
fn by_address(places: &[(u32, u32)], rest: &[&str]) -> String {
    let port = free_port();
    meet(&format!("127.0.0.1:{port}"), places, rest)
}

#[track_caller]
fn by_file(places: &[(u32, u32)], rest: &[&str]) -> String {
    let path = file();
    let words = meet(&format!("file:{}", path.display()), places, rest);
    let _ = std::fs::remove_file(path);
    words
}

/// By address and by file.
#[track_caller]
fn common_words(places: &[(u32, u32)], rest: &[&str]) -> [String; 2] {
    [by_address(places, rest), by_file(places, rest)]
}

const PATIENT: &str = "20 j default";

#[test]
fn processes_that_agree_join() {
    for words in common_words(&[(0, 3), (1, 3), (2, 3)], &[PATIENT]) {
        assert_eq!(words, "joined");
    }
}

#[test]
fn two_processes_of_the_same_rank_fail_all_alike() {
    for words in common_words(&[(0, 4), (1, 4), (1, 4), (2, 4)], &[PATIENT]) {
        assert!(words.starts_with("rank 1 came twice: from "), "{words}");
    }
}

#[test]
fn a_process_that_does_not_come_fails_all_alike_at_the_deadline() {
    let began = Instant::now();
    for words in common_words(&[(0, 4), (3, 4)], &["1.5 j default"]) {
        // The time that was left to the rank that came first.
        let right = "rank 1, rank 2 did not come within 1.";
        assert!(words.starts_with(right), "{words}");
    }
    // Twice.
    assert!(began.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_process_of_a_rank_out_of_range_fails_all_alike() {
    for words in common_words(&[(0, 3), (1, 3), (7, 3)], &[PATIENT]) {
        assert_eq!(
            words,
            "rank 7 does not exist in a group of 3 (ranks 0 to 2)"
        );
    }
}

#[test]
fn processes_that_want_different_sizes_fail_all_alike() {
    for words in common_words(&[(0, 3), (1, 3), (2, 4)], &[PATIENT]) {
        assert_eq!(
            words,
            "ranks disagree on the size: 3 at rank 0, 4 at rank 2"
        );
    }
}

#[test]
fn processes_of_different_jobs_fail_all_alike_where_they_meet() {
    // A file says of which job it is: there they do not meet.
    let words = by_address(&[(0, 2), (1, 2)], &[PATIENT, "20 k default"]);
    let right = "ranks disagree on the job: \"j\" at rank 0, \"k\" at rank 1";
    assert_eq!(words, right);
}

#[test]
fn processes_of_different_checks_fail_all_alike() {
    for words in common_words(&[(0, 2), (1, 2)], &[PATIENT, "20 j full"]) {
        let right = "ranks disagree on the check: default at rank 0, full at rank 1";
        assert_eq!(words, right);
    }
}

#[test]
fn a_port_in_use_is_said_by_rank_0_at_once() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let began = Instant::now();
    let said = start((0, 2), &place, PATIENT).done();
    let right = format!("rank 0 cannot listen at {place}: the port is in use");
    assert!(said[0].starts_with(&right), "{said:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_coordinator_that_does_not_come_is_said_at_the_deadline() {
    let by_address = format!("127.0.0.1:{}", free_port());
    let path = file();
    for place in [by_address, format!("file:{}", path.display())] {
        let ranks = [1, 2].map(|rank| start((rank, 3), &place, "0.7 j default"));
        for (rank, process) in (1..).zip(ranks) {
            let said = process.done();
            let right = format!("rank {rank}: coordinator ");
            assert!(said[0].starts_with(&right), "{said:?}");
            assert!(said[0].contains(" did not answer within 0.7 s"), "{said:?}");
        }
    }
}
