//! The example programs as processes: `unisono launch -n 3`.

mod common;

use std::path::PathBuf;

use common::{Ended, end, unisono};

/// Runs an example on three ranks. Cargo builds examples with the tests of a package, into a folder beside them.
fn three(example: &str) -> Ended {
    let test = std::env::current_exe().unwrap();
    let folder: PathBuf = test.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(example);
    assert!(
        program.exists(),
        "{} is not built: cargo build -p unisono-cli --examples",
        program.display()
    );
    end(unisono().args(["launch", "-n", "3", "--"]).arg(program)).done()
}

#[test]
fn allreduce_adds_up() {
    let mut lines: Vec<String> = three("allreduce")
        .stdout
        .lines()
        .map(String::from)
        .collect();
    lines.sort();
    let expected = |rank: u32| format!("[{rank}] rank {rank} of 3: 6");
    assert_eq!(lines, [0, 1, 2].map(expected));
}

#[test]
fn the_loss_of_training_falls() {
    let ended = three("training_step");
    let (_, losses) = ended.last().split_once("[0] loss ").unwrap();
    let (first, last) = losses.split_once(" -> ").unwrap();
    let (first, last): (f32, f32) = (first.parse().unwrap(), last.parse().unwrap());
    assert!(last < first / 50.0, "{losses}");
}

#[test]
fn no_heat_is_lost_at_the_cuts_of_a_rod() {
    let ended = three("halo");
    assert!(
        ended.last().starts_with("[0] heat 1000.000, "),
        "{}",
        ended.last()
    );
}

#[test]
fn gradients_travel_behind_the_computation() {
    let ended = three("async_overlap");
    assert_eq!(
        ended.last(),
        "[0] gradients [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]"
    );
}
