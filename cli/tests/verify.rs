//! `unisono verify`: proofs, what is skipped, what is refused, and the summary.

mod common;

use common::{ALGORITHMS, numbers, run};

#[test]
fn everything_is_proved_and_what_is_not_offered_is_counted() {
    let ended = run("verify --json --ranks 2..5").done();
    let objects = ended.objects();
    let (summary, rows) = objects.split_last().unwrap();
    assert!(rows.iter().all(|row| row["verified"] == true));
    assert_eq!(summary["summary"], true);
    assert_eq!(summary["verified"], rows.len());
    assert_eq!(
        (&summary["failed"], &summary["refused"]),
        (&0.into(), &0.into())
    );
    assert_eq!(
        (&summary["algorithms"], &summary["worlds"]),
        (&11.into(), &4.into())
    );
    // Halving refuses 3 and 5 ranks, dissemination offers barrier only: both are skipped.
    let has = |algorithm: &str, ranks: u64| {
        rows.iter()
            .any(|r| r["algorithm"] == algorithm && r["ranks"] == ranks)
    };
    assert!(has("butterfly-halving", 4) && !has("butterfly-halving", 5));
    assert!(summary["skipped"].as_u64().unwrap() > 0);
}

#[test]
fn the_last_line_sums_up() {
    let ended = run("verify --algorithm ring --op all_reduce --ranks 2..4").done();
    assert!(
        ended.last().contains("6 program sets proved"),
        "{}",
        ended.last()
    );
    assert!(ended.last().ends_with("all right"));
}

#[test]
fn rounds_and_bytes_stand_beside_the_least_possible() {
    let rows = run("verify --algorithm ring --op all_reduce --ranks 4 --json")
        .done()
        .objects();
    let row = &rows[0];
    assert_eq!(
        (&row["rounds"], &row["rounds_bound"]),
        (&6.into(), &2.into())
    );
    assert_eq!(
        (&row["sent"], &row["sent_bound"]),
        (&1.5.into(), &1.5.into())
    );
    let text = run("verify --algorithm ring --op all_reduce --ranks 4")
        .done()
        .stdout;
    let row = text.lines().find(|l| l.starts_with("ring")).unwrap();
    assert!(row.contains("6 / 2") && row.contains("3/2 / 3/2"), "{row}");
}

#[test]
fn rooted_collectives_are_proved_at_the_first_second_and_last_root() {
    let roots = |arguments: &str| {
        let mut rows = run(&format!("verify --json --algorithm tree {arguments}"))
            .done()
            .objects();
        rows.pop();
        numbers(&rows, "root")
    };
    assert_eq!(roots("--op broadcast --ranks 5"), [0, 1, 4]);
    assert_eq!(roots("--op broadcast --ranks 2"), [0, 1]);
    assert_eq!(roots("--op broadcast --ranks 1"), [0]);
}

#[test]
fn reductions_are_proved_as_averages_and_in_rank_order_where_offered() {
    let rows = run("verify --json --algorithm mesh-oneshot --op all_reduce --ranks 3")
        .done()
        .objects();
    assert!(rows.iter().any(|r| r["average"] == true));
    assert!(rows.iter().any(|r| r["commutative"] == false));
    let ring = run("verify --json --algorithm ring --op all_reduce --ranks 3")
        .done()
        .objects();
    assert!(!ring.iter().any(|r| r["commutative"] == false));
}

#[test]
fn a_named_pair_that_is_not_offered_is_refused_with_the_reason() {
    run("verify --algorithm tree --op all_gather --ranks 4").refused(&[
        "tree",
        "all_gather",
        "4 ranks",
    ]);
    let ended = run("verify --algorithm butterfly-halving --op all_reduce --ranks 4..5 --json")
        .refused(&["power of two", "5 ranks"]);
    let objects = ended.objects();
    assert_eq!(objects.last().unwrap()["refused"], 1);
    assert!(objects.iter().any(|o| o["verified"] == true));
    // With `all` on either side, the same is skipped.
    run("verify --algorithm tree --op all --ranks 4").done();
    run("verify --algorithm all --op all_gather --ranks 4").done();
}

#[test]
fn unknown_names_and_bad_ranges_are_usage() {
    run("verify --algorithm rings").usage(&ALGORITHMS);
    run("verify --op sum").usage(&["all_reduce", "barrier"]);
    for bad in ["0", "0..4", "5..2", "x", "", "99999999999"] {
        common::end(common::unisono().args(["verify", "--ranks", bad])).usage(&[]);
    }
}

#[test]
fn a_proof_that_would_not_fit_is_refused() {
    run("verify --algorithm mesh-direct --op barrier --ranks 5000").refused(&["too many"]);
}
