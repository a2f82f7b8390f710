//! Ranks meet by a file.

mod common;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use common::{Dummy, common_error, free_port, settings, start_all};
use unisono_control::{Coordinator, Settings};

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("unisono-meet-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn all(size: u32, place: &Coordinator) -> Vec<Settings> {
    (0..size).map(|rank| settings(rank, size, place)).collect()
}

fn meets(path: PathBuf) {
    let place = Coordinator::File(path.clone());
    let started = start_all(all(3, &place), Dummy::default());
    let nonces: Vec<u64> = started
        .iter()
        .map(|n| n.as_ref().unwrap().nonce())
        .collect();
    assert!(nonces.iter().all(|nonce| *nonce == nonces[0]));
    assert!(!path.exists(), "the file goes when the group stands");
}

#[test]
fn ranks_meet_by_a_file_and_it_goes() {
    meets(path("plain"));
}

#[test]
fn a_stale_file_of_any_kind_is_replaced() {
    let nobody = free_port();
    for (name, text) in [
        ("garbage", "not a rendezvous".to_owned()),
        (
            "job",
            format!("unisono rendezvous 1\njob other\nnonce 7\naddress 127.0.0.1:{nobody}\n"),
        ),
        (
            "same",
            format!("unisono rendezvous 1\njob \nnonce 7\naddress 127.0.0.1:{nobody}\n"),
        ),
    ] {
        let path = path(name);
        fs::write(&path, text).unwrap();
        meets(path);
    }
}

#[test]
fn who_follows_a_stale_file_to_a_living_group_looks_again() {
    // A group that waits for its rank 2, and what an earlier group at the same address has left.
    let (living, stale) = (path("living"), path("stale"));
    let place = Coordinator::File(living.clone());
    let mut waiting = all(3, &place);
    let last = waiting.pop().unwrap();
    let waiting = thread::spawn(move || start_all(waiting, Dummy::default()));
    let text = loop {
        match fs::read_to_string(&living) {
            Ok(text) => break text,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    let nonce = text.lines().find(|line| line.starts_with("nonce")).unwrap();
    fs::write(&stale, text.replace(nonce, "nonce 7")).unwrap();
    let mut lost = settings(1, 2, &Coordinator::File(stale.clone()));
    lost.timeout = Duration::from_millis(500);
    let error = common_error(&start_all(vec![lost], Dummy::default()));
    assert!(error.contains("another group meets there"), "{error}");
    assert!(start_all(vec![last], Dummy::default())[0].is_ok());
    assert!(waiting.join().unwrap().iter().all(Result::is_ok));
    fs::remove_file(stale).unwrap();
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let place = Coordinator::File(path("nodir").join("file"));
    let error = common_error(&start_all(vec![settings(0, 2, &place)], Dummy::default()));
    assert!(error.starts_with("rank 0: file /"), "{error}");
    let mut other = settings(1, 2, &place);
    other.timeout = Duration::from_millis(200);
    let error = common_error(&start_all(vec![other], Dummy::default()));
    assert!(error.starts_with("rank 1: coordinator file:///"), "{error}");
}
