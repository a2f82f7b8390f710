//! `unisono bench`: rows, sizes, checks and refusals. Between threads where the transport makes no difference.

mod common;

use common::{ALGORITHMS, Ended, end, numbers, run, unisono};

const QUICK: &str = "bench --transport inproc --iters 2 --warmup 1 --json";

fn quick(arguments: &str) -> Ended {
    run(&format!("{QUICK} {arguments}"))
}

#[test]
fn a_row_has_these_keys_in_this_order() {
    let ended = quick("--bytes 1K").done();
    let keys = "op transport algorithm ranks bytes count dtype iters p50_us p99_us mean_us algbw busbw wrong";
    let mut at = 0;
    for key in keys.split(' ') {
        let found = ended.stdout[at..].find(&format!("\"{key}\":"));
        at += found.unwrap_or_else(|| panic!("{key} is not in its place: {}", ended.stdout));
    }
    let rows = ended.objects();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].as_object().unwrap().len(), 14);
    assert_eq!(rows[0]["op"], "all_reduce");
    assert_eq!(rows[0]["transport"], "inproc");
    assert_eq!(rows[0]["dtype"], "f32");
    assert_eq!(numbers(&rows, "ranks"), [4]);
    assert_eq!(numbers(&rows, "bytes"), [1024]);
    assert_eq!(numbers(&rows, "count"), [256]);
    assert_eq!(numbers(&rows, "iters"), [2]);
    let number = |key: &str| rows[0][key].as_f64().unwrap();
    assert!(number("p50_us") > 0.0 && number("p50_us") <= number("p99_us"));
    assert!((number("algbw") - 1024.0 / number("mean_us") / 1e3).abs() < 1e-4);
    assert!((number("busbw") - 1.5 * number("algbw")).abs() < 1e-5);
}

#[test]
fn wrong_is_a_number_with_check_and_null_without() {
    assert!(quick("--bytes 1K").done().objects()[0]["wrong"].is_null());
    assert_eq!(quick("--bytes 1K --check").done().objects()[0]["wrong"], 0);
}

#[test]
fn every_requested_size_gives_one_row_rounded_up() {
    let sizes = |arguments: &str| numbers(&quick(arguments).done().objects(), "bytes");
    assert_eq!(sizes("--bytes 1,2,4,5,4 --check"), [4, 4, 4, 8, 4]);
    assert_eq!(sizes("--bytes 1K..8K"), [1024, 2048, 4096, 8192]);
    assert_eq!(sizes("--bytes 3..20 --dtype u8"), [3, 6, 12, 20]);
    assert_eq!(sizes("--bytes 0,1 --dtype f64 --check"), [0, 8]);
    for op in [
        "reduce_scatter",
        "all_gather",
        "gather",
        "scatter",
        "all_to_all",
    ] {
        let rows = sizes(&format!("--op {op} --ranks 3 --bytes 1,12,13,0 --check"));
        assert_eq!(rows, [12, 12, 24, 0], "{op}");
    }
}

#[test]
fn a_barrier_takes_no_size_and_prints_one_row() {
    for arguments in ["--op barrier --check", "--op barrier --bytes 4..1K --check"] {
        let rows = quick(arguments).done().objects();
        assert_eq!(numbers(&rows, "bytes"), [0]);
        assert_eq!(
            (rows[0]["wrong"].as_u64(), rows[0]["busbw"].as_f64()),
            (Some(0), Some(0.0))
        );
    }
}

#[test]
fn every_operation_dtype_and_operator_is_right() {
    for dtype in ["all", "bf16"] {
        let ended = quick(&format!(
            "--op all --ranks 3 --bytes 5K --check --dtype {dtype}"
        ))
        .done();
        assert!(numbers(&ended.objects(), "wrong").iter().all(|&w| w == 0));
    }
    for reduce in ["sum", "prod", "min", "max", "avg"] {
        let reductions = "--op all_reduce,reduce_scatter,reduce --ranks 2,5 --bytes 9000 --check";
        let ended = quick(&format!(
            "{reductions} --reduce {reduce} --dtype f16,f32 --algorithm all"
        ))
        .done();
        assert!(numbers(&ended.objects(), "wrong").iter().all(|&w| w == 0));
    }
    assert_eq!(
        quick("--op send_recv --bytes 1K --check").done().objects()[0]["wrong"],
        0
    );
    quick("--op broadcast,scatter --root 2 --bytes 1K --ranks 1..4 --check").refused(&["root 2"]);
    quick("--op broadcast,scatter --root 2 --bytes 1K --ranks 3..4 --check").done();
}

#[test]
fn the_check_finds_a_flipped_byte_at_every_rank_of_every_operation() {
    for op in
        "all_reduce reduce_scatter all_gather broadcast reduce gather scatter all_to_all send_recv"
            .split(' ')
    {
        for rank in 0..3 {
            let arguments = format!("--op {op} --ranks 3 --bytes 1K --corrupt {rank}");
            let ended = quick(&arguments).refused(&["wrong", &format!("rank {rank}")]);
            assert_eq!(ended.objects()[0]["wrong"], 1, "{arguments}");
        }
    }
    // A world of one has a result too.
    quick("--ranks 1 --bytes 4 --corrupt 0").refused(&["rank 0"]);
}

#[test]
fn what_cannot_be_corrupted_is_refused() {
    quick("--bytes 1K --corrupt 4").refused(&["rank 4"]);
    quick("--op barrier --corrupt 0").refused(&["nothing to corrupt"]);
    quick("--bytes 0 --corrupt 0").refused(&["nothing to corrupt"]);
}

#[test]
fn a_bench_without_options_is_a_checked_table() {
    let ended = end(unisono().arg("bench")).done();
    let rows: Vec<&str> = ended
        .stdout
        .lines()
        .filter(|l| !l.starts_with('#'))
        .collect();
    assert_eq!(rows.len(), 25);
    assert!(rows.iter().all(|row| row.ends_with(" 0")));
    let first: Vec<&str> = rows[0].split_whitespace().collect();
    let last: Vec<&str> = rows[24].split_whitespace().collect();
    assert_eq!((first[3], last[3]), ("4", "67108864"));
    assert!(ended.last().starts_with("# 25 rows: every element right"));
}

#[test]
fn a_table_says_whether_it_was_checked() {
    let table = |more: &str| {
        run(&format!(
            "bench --transport inproc --bytes 1K --iters 2 {more}"
        ))
    };
    assert!(table("").done().last().contains("not checked"));
    assert!(
        table("--check")
            .done()
            .last()
            .contains("every element right")
    );
    assert!(
        table("--corrupt 2")
            .refused(&["rank 2"])
            .last()
            .contains("WRONG")
    );
}

#[test]
fn a_named_algorithm_is_used_and_one_that_cannot_is_refused() {
    let rows = quick("--bytes 1K --algorithm ring,butterfly-circulant --ranks 2,3 --check")
        .done()
        .objects();
    let names: Vec<_> = rows
        .iter()
        .map(|r| r["algorithm"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["ring", "butterfly-circulant", "ring", "butterfly-circulant"]
    );
    quick("--algorithm tree --op all_gather").refused(&["tree", "all_gather"]);
    quick("--algorithm tree --op all --bytes 1K --check").done();
    quick("--algorithm butterfly-halving --op all --ranks 3").refused(&["no algorithm"]);
    quick("--algorithm butterfly-halving --ranks 3").refused(&["power of two", "3 ranks"]);
}

#[test]
fn an_average_of_integers_does_not_exist() {
    quick("--reduce avg --dtype i32 --bytes 4").refused(&["avg", "i32"]);
}

#[test]
fn unknown_names_are_usage_and_list_the_known() {
    run("bench --transport quic").usage(&["tcp", "inproc", "rdma", "sim", "shm"]);
    quick("--algorithm rings").usage(&ALGORITHMS);
    quick("--op sum").usage(&["all_reduce", "barrier", "send_recv"]);
    quick("--dtype f8").usage(&["f16", "u64"]);
    quick("--reduce mean").usage(&["sum", "prod", "min", "max", "avg"]);
    for bad in [
        "--ranks 0",
        "--ranks 4..2",
        "--bytes 1X",
        "--bytes 4..2",
        "--iters 0",
        "--nope",
    ] {
        quick(bad).usage(&[]);
    }
}

#[test]
fn transports_that_are_not_built_are_refused() {
    for name in ["rdma", "sim", "shm"] {
        run(&format!("bench --transport {name}")).refused(&[name, "not built"]);
    }
}

#[test]
fn sizes_beyond_memory_are_refused_before_they_are_touched() {
    quick("--bytes 100000G --ranks 2").refused(&["memory"]);
    quick("--bytes 17179869183G").refused(&["bytes"]);
}

#[test]
fn a_launched_rank_checks_its_variables_first() {
    let launched = |rank: &str, size: &str, coordinator: &str, more: &[&str]| {
        let mut command = unisono();
        let all = [("RANK", rank), ("SIZE", size), ("COORDINATOR", coordinator)];
        for (name, value) in all.into_iter().filter(|(_, value)| *value != "unset") {
            command.env(format!("UNISONO_{name}"), value);
        }
        end(command.arg("bench").args(more))
    };
    launched("", "unset", "unset", &[]).refused(&["UNISONO_RANK"]);
    launched("0", "unset", "h:1", &[]).refused(&["UNISONO_SIZE"]);
    launched("0", "2", "unset", &[]).refused(&["UNISONO_COORDINATOR"]);
    launched("0", "0", "h:1", &[]).refused(&["UNISONO_SIZE"]);
    launched("2", "2", "h:1", &[]).refused(&["UNISONO_RANK"]);
    launched("0x1", "2", "h:1", &[]).refused(&["UNISONO_RANK"]);
    launched("0", "2", "h:1", &["--ranks", "3"]).refused(&["--ranks", "UNISONO_SIZE"]);
    launched("0", "2", "::1:5000", &[]).refused(&["UNISONO_COORDINATOR", "brackets"]);
    launched("0", "2", "h:1", &["--transport", "inproc"]).refused(&["inproc", "UNISONO_RANK"]);
}
