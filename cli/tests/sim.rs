//! `unisono sim`: rows, engines, faults and files.

mod common;

use common::{Ended, end, numbers, run, unisono};
use serde_json::Value;

fn sim(arguments: &str) -> Ended {
    run(&format!("sim --json {arguments}"))
}

/// The only row of a run that ended well.
fn row(arguments: &str) -> Value {
    let mut rows = sim(arguments).done().objects();
    assert_eq!(rows.len(), 1, "{arguments}");
    rows.remove(0)
}

fn us(row: &Value) -> f64 {
    row["virtual_us"].as_f64().expect("a time")
}

#[test]
fn a_row_has_these_keys_in_this_order_from_either_engine() {
    for engine in ["events", "evaluator"] {
        let ended = sim(&format!(
            "--ring 4 --bytes 1M --algorithm ring --engine {engine}"
        ))
        .done();
        // A map of serde_json is sorted: look at the text.
        let at = |key: &str| ended.stdout.find(&format!("\"{key}\":")).expect(key);
        let keys = [
            "op",
            "algorithm",
            "ranks",
            "bytes",
            "virtual_us",
            "algbw",
            "busbw",
            "bottleneck",
            "links",
            "steps",
            "trace_hash",
            "wall_ms",
        ];
        assert!(keys.is_sorted_by_key(|key| at(key)), "{}", ended.stdout);
        let row = &ended.objects()[0];
        assert!(keys.iter().all(|key| !row[*key].is_null()), "{row}");
        assert_eq!(row["engine"], engine);
        assert_eq!(
            (&row["ranks"], &row["bytes"]),
            (&4.into(), &(1 << 20).into())
        );
        assert_eq!(row["bottleneck"], "0>1");
        assert_eq!(row["links"].as_array().unwrap().len(), 4);
        assert_eq!(row["links"][0]["bytes"], 6 << 18);
        // 2 x 3 rounds of a send and a receive at each of four ranks.
        assert_eq!(row["steps"], 48);
        assert_eq!(row["trace_hash"].as_str().unwrap().len(), 16);
    }
}

#[test]
fn ring_and_mesh_cost_their_closed_forms_in_both_engines() {
    let link = "--link alpha=5us,bandwidth=5GB/s --segments 1 --bytes 4M";
    let transfer = |bytes: f64| bytes / 5e3;
    for engine in ["events", "evaluator"] {
        let time = |shape: &str| us(&row(&format!("{shape} {link} --engine {engine}")));
        let ring = 2.0 * 7.0 * (5.0 + transfer(f64::from(4 << 20) / 8.0));
        assert!((time("--ring 8 --algorithm ring") - ring).abs() < 0.01);
        let mesh = 2.0 * (5.0 + transfer(f64::from(4 << 20) / 8.0));
        assert!((time("--mesh 8 --algorithm mesh-twoshot") - mesh).abs() < 0.01);
    }
}

/// The copies of a call in place were priced, though nobody makes them: broadcasts came out up to 7.6 times too dear.
///
/// Still apart, and not looked at here: broadcasts in which the root sends many segments to many ranks (`mesh-direct`,
/// `tree`, `tree-centre`), by up to half, and the root's own row in a scatter of two ranks, by a tenth.
#[test]
fn copies_in_place_are_priced_by_neither_engine() {
    for place in [
        "--mesh 5 --link roce100g",
        "--ring 3 --link thunderbolt5-tcp",
        "--mesh 2 --link roce100g",
    ] {
        for op in ["broadcast", "all_reduce", "all_gather"] {
            let find = |engine| {
                let arguments =
                    format!("{place} --op {op} --bytes 64M --algorithm all --engine {engine}");
                let ended = sim(&arguments);
                assert_eq!(ended.status, Some(0), "{}", ended.stderr);
                ended.objects()
            };
            for (events, evaluator) in find("events").iter().zip(&find("evaluator")) {
                assert_eq!(events["algorithm"], evaluator["algorithm"]);
                let algorithm = events["algorithm"].as_str().unwrap();
                if op == "broadcast" && ["mesh-direct", "tree", "tree-centre"].contains(&algorithm)
                {
                    continue;
                }
                let ratio = us(evaluator) / us(events);
                assert!(
                    (0.95..1.05).contains(&ratio),
                    "{place} {op} {}: {ratio}",
                    events["algorithm"]
                );
            }
        }
    }
}

#[test]
fn eight_kibibytes_between_two_macs_take_ten_to_forty_microseconds() {
    let row = row("--mesh 2 --bytes 8K");
    assert!((10.0..40.0).contains(&us(&row)), "{row}");
}

#[test]
fn phantom_and_real_payload_take_the_same_time() {
    for op in ["all_reduce", "all_to_all", "broadcast", "gather", "barrier"] {
        let time = |payload| {
            us(&row(&format!(
                "--mesh 3 --op {op} --bytes 100K --root 2 --payload {payload}"
            )))
        };
        assert_eq!(time("phantom"), time("real"), "{op}");
    }
}

#[test]
fn bytes_are_rounded_up_as_bench_does_and_a_barrier_takes_none() {
    let bytes = |arguments: &str| numbers(&sim(arguments).done().objects(), "bytes");
    assert_eq!(bytes("--mesh 3 --bytes 1,4,5"), [4, 4, 8]);
    assert_eq!(
        bytes("--mesh 3 --op all_gather --bytes 1,12,13"),
        [12, 12, 24]
    );
    assert_eq!(bytes("--mesh 3 --op barrier --bytes 1K"), [0]);
    assert_eq!(bytes("--mesh 3 --bytes 0"), [0]);
    assert_eq!(bytes("--mesh 3"), [64 << 20]);
    assert_eq!(bytes("--mesh 4 --bytes 8G"), [8 << 30]);
}

#[test]
fn all_algorithms_skip_what_the_links_do_not_allow_and_say_why() {
    let ended = sim("--ring 5 --bytes 1M --algorithm all");
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let ran: Vec<Value> = ended
        .objects()
        .iter()
        .map(|row| row["algorithm"].clone())
        .collect();
    assert_eq!(ran, ["ring", "ring-bidir", "tree-centre"]);
    assert!(
        ended
            .stderr
            .contains("skipped mesh-twoshot for all_reduce: no link 0-2")
    );
    sim("--ring 5 --algorithm mesh-twoshot").refused(&[
        "mesh-twoshot",
        "all_reduce",
        "no link 0-2",
    ]);
    sim("--line 3 --algorithm ring").refused(&["no ring"]);
    sim("--mesh 4 --algorithm nonsense").usage(&["nonsense", "mesh-twoshot"]);
}

#[test]
fn auto_takes_events_up_to_256_ranks_and_for_what_only_they_can() {
    let engine = |arguments: &str| row(arguments)["engine"].clone();
    assert_eq!(engine("--mesh 256 --algorithm tree --bytes 1K"), "events");
    assert_eq!(
        engine("--mesh 257 --algorithm tree --bytes 1K"),
        "evaluator"
    );
    assert_eq!(
        engine("--mesh 257 --algorithm tree --bytes 1K --jitter 0.1"),
        "events"
    );
    sim("--mesh 4 --jitter 0.1 --engine evaluator").refused(&["--jitter", "evaluator"]);
    sim("--mesh 4 --engine quantum").usage(&["quantum", "auto, evaluator, events"]);
}

#[test]
fn equal_seeds_give_equal_hashes_and_other_seeds_others() {
    let hash = |seed: u32| {
        row(&format!(
            "--mesh 4 --jitter 0.2 --seed {seed} --repeat-check"
        ))["trace_hash"]
            .clone()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
    row("--mesh 4 --engine evaluator --repeat-check");
}

#[test]
fn one_slow_cable_is_the_bottleneck() {
    let mut command = unisono();
    let slow = ["--fault", "slow link=2-3 factor=0.1"];
    let ended = end(command
        .args("sim --json --ring 6 --algorithm ring".split(' '))
        .args(slow))
    .done();
    assert_eq!(ended.objects()[0]["bottleneck"], "2>3");
}

fn faulty(arguments: &str, fault: &str) -> Ended {
    let mut command = unisono();
    end(command
        .arg("sim")
        .args(arguments.split_whitespace())
        .args(["--fault", fault]))
}

#[test]
fn a_failing_run_prints_what_every_rank_was_told_and_the_cause_last() {
    let ended =
        faulty("--mesh 4 --json", "crash rank=2 at=100us").refused(&["error: rank 2 was lost"]);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "ranks 0, 1, 3: rank 2 was lost during all_reduce #0",
            "rank 2: crashed"
        ]
    );
    let row = &ended.objects()[0];
    assert!(
        row["algbw"].is_null() && row["error"] == "rank 2 was lost",
        "{row}"
    );
    let ended = faulty("--mesh 4 --bytes 1M,2M", "crash rank=2 at=10us");
    ended.refused(&["2 of 2 runs failed", "rank 2 was lost"]);
}

#[test]
fn a_deadlock_is_an_answer_with_its_circle() {
    faulty("--ring 4 --algorithm ring", "oneway link=0>1 at=0us").refused(&[
        "deadlock at",
        "waits recv from rank",
        "lost",
    ]);
}

#[test]
fn a_stall_takes_time_and_nothing_else() {
    let calm = us(&row("--mesh 4"));
    let ended = faulty("--mesh 4 --json", "stall rank=3 at=0us for=20ms").done();
    let late = us(&ended.objects()[0]) - calm;
    assert!((19_000.0..21_000.0).contains(&late), "{late}");
}

#[test]
fn faults_where_nobody_is_are_refused() {
    faulty("--mesh 4", "crash rank=9 at=1us").refused(&["rank 9 does not exist"]);
    faulty("--ring 4", "down link=0-2 at=1us").refused(&["ranks 0 and 2 have no link"]);
    faulty("--mesh 4", "crash rank=2").usage(&["crash", "at"]);
    faulty("--mesh 4", "meteor at=1us").usage(&["meteor", "crash, stall"]);
}

#[test]
fn traces_and_pictures_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, svg) = (dir.path().join("run.json"), dir.path().join("run.svg"));
    let mut command = unisono();
    command.args("sim --mesh 3 --bytes 1M".split(' '));
    end(command.arg("--trace").arg(&trace).arg("--svg").arg(&svg)).done();
    let trace: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 10);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(
        svg.contains("rank 2") && svg.contains("0 to 1"),
        "ranks and links"
    );
    assert_eq!(
        (svg.matches("<svg ").count(), svg.matches("</svg>").count()),
        (3, 3)
    );
}

#[test]
fn a_run_that_fails_and_one_without_messages_have_traces_too() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, status) in [("--mesh 1", 0), ("--mesh 3 --fault|crash rank=1 at=1us", 1)] {
        let (path, mut command) = (dir.path().join("run.json"), unisono());
        let (words, fault) = arguments.split_once('|').unwrap_or((arguments, ""));
        command.arg("sim").args(words.split(' '));
        command.args(Some(fault).filter(|f| !f.is_empty()));
        let ended = end(command.arg("--trace").arg(&path));
        assert_eq!(ended.status, Some(status), "{}", ended.stderr);
        let trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(trace["traceEvents"].is_array());
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_runs() {
    let ended = sim("--mesh 4 --svg /nonexistent/run.svg").refused(&["/nonexistent/run.svg"]);
    assert_eq!(ended.stdout, "");
    sim("--mesh 4 --trace /").refused(&["cannot write /"]);
    sim("--mesh 4 --algorithm all --svg x.svg").refused(&["--svg", "one run"]);
}

#[test]
fn odd_numbers_are_refused_in_one_line() {
    for (arguments, words) in [
        ("--mesh 0", "at least 1"),
        ("--torus 0x4", "torus"),
        ("--torus 4", "4x8"),
        ("--ring 70000", "too many"),
        ("--torus 60000x60000", "too many"),
        ("--mesh 4 --jitter -1", "share"),
        ("--mesh 4 --jitter NaN", "share"),
        ("--mesh 4 --bytes 1T", "1T"),
        ("--mesh 4 --link thunderbolt9", "thunderbolt5-rdma"),
        ("--mesh 4 --link alpha=5us", "bandwidth"),
        ("--mesh 4 --segments 0", "segments"),
        ("--mesh 4 --unposted maybe", "buffer, block, drop"),
        ("--mesh 4 --ring 4", "cannot be used with"),
        ("", "--topology"),
    ] {
        sim(arguments).usage(&[words]);
    }
    sim("--mesh 4 --root 9 --op reduce").refused(&["root 9"]);
    sim("--mesh 4 --reduce avg --dtype i32").refused(&["avg", "i32"]);
    sim("--mesh 4 --bytes 9000000000G").refused(&["bytes"]);
    sim("--mesh 4 --bytes 8000000G").refused(&["virtual time"]);
    sim("--mesh 2 --link alpha=1s,bandwidth=1B/s --bytes 1G").refused(&["virtual time"]);
    sim("--mesh 10000 --algorithm mesh-twoshot").refused(&["too many"]);
    sim("--mesh 300 --payload real").refused(&["phantom"]);
}

#[test]
fn a_world_of_one_works() {
    for shape in [
        "--mesh 1",
        "--ring 1",
        "--line 1",
        "--star 1",
        "--torus 1x1",
    ] {
        for engine in ["events", "evaluator"] {
            let rows = sim(&format!("{shape} --op all --engine {engine} --bytes 1K"))
                .done()
                .objects();
            assert_eq!(rows.len(), 9);
            assert!(rows.iter().all(|row| row["bottleneck"].is_null()));
        }
    }
}

#[test]
fn the_table_says_where_it_runs_and_sums_up() {
    let ended = run("sim --torus 2x3 --link 10gbe --bytes 1M").done();
    assert!(
        ended
            .stdout
            .contains("torus of 2x3 over tcp: alpha 25us (preset 10gbe)")
    );
    assert_eq!(ended.last(), "# 1 run: every result right");
    let ended = run("sim --ring 300 --bytes 1M --algorithm ring").done();
    assert_eq!(ended.last(), "# 1 run: priced, not executed");
}
