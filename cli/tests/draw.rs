//! `unisono draw`, and the rules that all verbs share: help, usage, pipes.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{ALGORITHMS, end, run, unisono};

#[test]
fn the_text_form_shows_every_rank() {
    let text = run("draw --algorithm ring --op all_reduce --ranks 4")
        .done()
        .stdout;
    assert!(text.contains("ring all_reduce: 4 ranks, 4 blocks"));
    for rank in 0..4 {
        assert!(text.contains(&format!("\nrank {rank}\n")), "{text}");
    }
    let programs: Vec<&str> = text.split("\nrank ").collect();
    assert!(programs[1].contains("recv_reduce"), "{}", programs[1]);
}

#[test]
fn a_thousand_ranks_take_at_most_twenty_lines_each() {
    for case in [
        "ring all_reduce",
        "butterfly-circulant all_reduce",
        "butterfly-halving all_gather",
        "tree gather",
    ] {
        let (algorithm, op) = case.split_once(' ').unwrap();
        let arguments = format!("draw --algorithm {algorithm} --op {op} --ranks 1024");
        let text = run(&arguments).done().stdout;
        let mut programs = text.split("\nrank ").skip(1);
        assert!(programs.all(|p| p.lines().count() <= 20), "{case}");
        assert_eq!(text.matches("\nrank ").count(), 1024, "{case}");
    }
}

#[test]
fn a_picture_is_written_into_a_file_or_to_stdout() {
    let file = std::env::temp_dir().join(format!("unisono-draw-{}.svg", std::process::id()));
    let arguments = [
        "draw",
        "--algorithm",
        "tree",
        "--op",
        "broadcast",
        "--ranks",
        "8",
        "--root",
        "3",
        "-o",
    ];
    let ended = end(unisono().args(arguments).arg(&file)).done();
    assert_eq!(ended.stdout, "");
    let picture = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("tree broadcast"));
    assert_eq!(
        end(unisono().args(arguments).arg("-")).done().stdout,
        picture
    );
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    run("draw --algorithm tree --op all_gather --ranks 4").refused(&["tree", "all_gather"]);
    run("draw --algorithm tree --op broadcast --ranks 4 --root 4").refused(&["root 4", "4 ranks"]);
    run("draw --algorithm ring --op all_reduce --ranks 1024 -o none.svg")
        .refused(&["too many messages"]);
    run("draw --algorithm ring --op all_reduce --ranks 4 -o /no/such/folder/x.svg")
        .refused(&["/no/such/folder/x.svg"]);
}

#[test]
fn mistakes_are_usage_and_the_last_line_says_which() {
    run("").usage(&["bench", "launch", "verify", "draw"]);
    run("drew").usage(&["drew", "bench", "verify", "draw"]);
    run("draw").usage(&["--algorithm", "--op", "--ranks"]);
    run("draw --algorithm rings --op all_reduce --ranks 4").usage(&ALGORITHMS);
    run("draw --algorithm ring --op reduce_all --ranks 4").usage(&["all_reduce", "barrier"]);
    run("draw --algorithm ring --op all_reduce --ranks 0").usage(&["at least 1"]);
    run("draw --algorithm ring --op all_reduce --ranks 4 --color").usage(&["--color"]);
}

#[test]
fn help_has_examples_and_ends_well() {
    assert!(run("--version").done().stdout.starts_with("unisono "));
    for help in [
        "--help",
        "bench --help",
        "launch --help",
        "verify --help",
        "draw --help",
        "help draw",
    ] {
        let text = run(help).done().stdout;
        assert!(text.contains("Examples:\n  unisono "), "{help}: {text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let verbs = [
        "draw --algorithm ring --op all_reduce --ranks 4096",
        "verify --ranks 2..12 --json",
        "bench --bytes 4,8,16,32,64,128 --iters 50 --json",
    ];
    for verb in verbs {
        let mut child = Command::new(unisono().get_program())
            .args(verb.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Like `| head -1`: read a line, then close the pipe.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(!line.is_empty());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), stderr.as_str()),
            (Some(0), ""),
            "{verb}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    for verb in [
        "draw --algorithm ring --op all_reduce --ranks 64",
        "--help",
        "verify --ranks 2",
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = Command::new(unisono().get_program())
            .args(verb.split(' '))
            .stdout(full)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{verb}: {stderr}");
        assert!(
            stderr.contains("cannot write to stdout") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
}
