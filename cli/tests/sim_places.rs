//! `unisono sim --topology`: every sample of the readers, and the commands of the guides.

mod common;

use std::path::{Path, PathBuf};

use common::{Ended, end, unisono};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../topology/tests/cases/{name}.json"))
}

fn sim(name: &str, more: &str) -> Ended {
    let mut command = unisono();
    command.arg("sim").arg("--topology").arg(case(name));
    end(command.args(more.split_whitespace()))
}

#[test]
fn files_that_are_no_cluster_are_refused_with_their_place() {
    for (name, words) in [
        ("odd_all_null4", "no link at all"),
        ("odd_diagonal_set2", "row 0, column 0"),
        ("odd_empty_root", "no ranks"),
        ("odd_number_cell", "row 0, column 1"),
        ("odd_ragged3", "row 1 has 2 cells"),
        ("odd_truncated", "line 1, column 28"),
        ("ring_no_port", "no port"),
        ("ring_port_70000", "70000"),
    ] {
        let ended = sim(name, "--json").refused(&[name, words]);
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.lines().count()),
            ("", 1),
            "{name}"
        );
    }
    sim("no_such_file", "").refused(&["cannot read", "no_such_file"]);
}

#[test]
fn files_of_clusters_run_over_the_links_they_have() {
    for (name, ranks, algorithm) in [
        ("dev_line3", 3, "tree-centre"),
        ("dev_mesh4_missing_0_1", 4, "ring"),
        ("dev_mesh4_ok", 4, "mesh-twoshot"),
        ("dev_pair_asym_names", 2, "mesh-twoshot"),
        ("dev_ring4_ok", 4, "ring"),
        ("dev_star4", 4, "tree-centre"),
        ("dev_two_cables_ok", 2, "mesh-twoshot"),
        ("host_list_form", 4, "mesh-twoshot"),
        ("host_no_rdma_key", 2, "mesh-twoshot"),
        ("host_object_form", 4, "mesh-twoshot"),
        ("odd_single", 1, "mesh-twoshot"),
        ("ring_ipv6", 2, "mesh-twoshot"),
        ("ring_ok4", 4, "mesh-twoshot"),
        ("ring_two_conns", 2, "mesh-twoshot"),
    ] {
        // These links allow it; what is chosen by itself may be another.
        let ended = sim(name, &format!("--bytes 1M --json --algorithm {algorithm}")).done();
        assert_eq!(ended.objects()[0]["ranks"], ranks, "{name}");
        sim(name, "--bytes 1M --op all --repeat-check").done();
    }
}

#[test]
fn two_cables_have_twice_the_bandwidth() {
    let time = |name| {
        let ended = sim(name, "--bytes 1G --json --algorithm mesh-twoshot --segments 1 --link alpha=5us,bandwidth=5GB/s").done();
        ended.objects()[0]["virtual_us"].as_f64().unwrap()
    };
    let ratio = time("dev_pair_asym_names") / time("dev_two_cables_ok");
    assert!((1.999..2.001).contains(&ratio), "{ratio}");
}

#[test]
fn a_link_is_about_links_that_the_file_has() {
    sim("dev_ring4_ok", "--link 10gbe").refused(&["tcp", "rdma"]);
    sim("ring_ok4", "--link roce100g").refused(&["rdma", "tcp"]);
    // A hostfile with both: the sort of link decides which of them.
    let ended = sim("host_list_form", "--link 10gbe --bytes 1M").done();
    assert!(ended.stdout.contains("over tcp: alpha 25us (preset 10gbe)"));
}

#[test]
fn what_only_one_end_lists_is_noted_by_cell() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one-way.json");
    std::fs::write(
        &path,
        r#"[[null, "en4", "en5"], ["en4", null, null], ["en5", "en6", null]]"#,
    )
    .unwrap();
    let ended = end(unisono().arg("sim").arg("--topology").arg(path));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("`en6` at (2, 1) without a counterpart at (1, 2)")
    );
}

/// The commands in the `sh` blocks of a guide, and whether each says that it fails.
fn commands(guide: &str) -> Vec<(Vec<String>, Option<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(guide);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("unisono sim "));
    lines
        .map(|line| {
            let (command, comment) = line.split_once('#').unwrap_or((line, ""));
            let fails = comment.trim().strip_prefix("status 1: ").map(str::to_owned);
            // Every other part stands in quotes.
            let parts = command.split('\'').enumerate();
            let words = parts.flat_map(|(i, part)| match i % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            });
            (words.collect(), fails)
        })
        .collect()
}

#[test]
fn the_commands_of_the_guides_do_what_they_say() {
    let mut ran = 0;
    for guide in ["test-without-hardware.md", "study-an-algorithm.md"] {
        for (words, fails) in commands(guide) {
            let dir = tempfile::tempdir().unwrap();
            let ended = end(unisono().arg("sim").args(&words).current_dir(dir.path()));
            let status = if fails.is_some() { 1 } else { 0 };
            assert_eq!(ended.status, Some(status), "{words:?}: {}", ended.stderr);
            let cause = fails
                .as_deref()
                .and_then(|f| f.split(',').next())
                .unwrap_or("");
            assert!(ended.stderr.contains(cause), "{words:?}: {}", ended.stderr);
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran} commands");
}
