//! `unisono explain` and `unisono topo`, on the files of `topology/tests/cases`.

mod common;

use std::path::Path;

use common::{end, run, unisono};

fn case(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topology/tests/cases");
    folder.join(format!("{name}.json")).display().to_string()
}

fn explain(name: &str, arguments: &str) -> common::Ended {
    run(&format!("explain --topology {} {arguments}", case(name)))
}

const LARGE: &str = "--op all_reduce --bytes 64M";

#[test]
fn one_object_says_what_is_chosen_and_why_not_the_others() {
    let objects = explain("dev_mesh4_missing_0_1", &format!("{LARGE} --json"))
        .done()
        .objects();
    assert_eq!(objects.len(), 1);
    let object = &objects[0];
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 4);
    assert_eq!(object["ring"], serde_json::json!([0, 2, 1, 3]));
    let chosen = &object["chosen"];
    assert!(chosen["algorithm"].as_str().unwrap().starts_with("ring"));
    assert_eq!(chosen["transport"], "rdma");
    assert!(chosen["predicted_us"].as_f64().unwrap() > 1000.0);
    assert!(chosen["bound_share"].as_f64().unwrap() <= 1.0);
    assert!(chosen["variant"].is_string());
    let rejected = object["rejected"].as_array().unwrap();
    let mesh = rejected.iter().find(|r| r["algorithm"] == "mesh-oneshot");
    assert_eq!(mesh.unwrap()["reason"], "no link 0-1 (5 of 6)");
    assert_eq!(
        object["facts"]["links"][0]["alpha_from"],
        "preset thunderbolt5-rdma"
    );
}

#[test]
fn the_table_for_people_is_the_same_twice() {
    let once = explain("host_list_form", LARGE).done().stdout;
    assert_eq!(once, explain("host_list_form", LARGE).done().stdout);
    assert!(
        once.contains("chosen: ") && once.contains("rdma: 6 of 6 links"),
        "{once}"
    );
    assert!(once.contains("policy: rdma joins all ranks"), "{once}");
}

#[test]
fn links_may_be_given_and_roots_and_overrides() {
    let object = |arguments: &str| {
        let ended = explain("dev_mesh4_ok", &format!("{arguments} --json")).done();
        ended.objects().remove(0)
    };
    let slow = object(&format!("{LARGE} --link alpha=1ms,bandwidth=1MB/s"));
    assert_eq!(slow["facts"]["links"][0]["alpha"], "1ms");
    assert_eq!(slow["facts"]["links"][0]["alpha_from"], "given");
    let root = object("--op broadcast --bytes 1M --root 3");
    assert_eq!(root["facts"]["root"], 3);
    let rows = object("--op all_gather --bytes 10");
    assert_eq!(rows["facts"]["bytes"], 12);
    let tuned = object("--op all_reduce --bytes 1K --tune *=tree;all_reduce:-2K=ring(segments=2)");
    assert_eq!(tuned["chosen"]["variant"], "channels=1,segments=2");
    assert_eq!(
        tuned["facts"]["override"],
        "all_reduce:-2K=ring(segments=2)"
    );
    let barrier = object("--op barrier");
    assert_eq!(barrier["facts"]["bytes"], 0);
}

#[test]
fn what_cannot_be_had_is_refused_as_every_rank_would_be_told() {
    explain(
        "dev_mesh4_missing_0_1",
        &format!("{LARGE} --require mesh-rdma"),
    )
    .refused(&["mesh-rdma is required, but there is no link 0-1 (5 of 6)"]);
    explain("dev_mesh4_missing_0_1", &format!("{LARGE} --require rdma")).done();
    explain("ring_ok4", &format!("{LARGE} --require rdma")).refused(&["no two ranks", "rdma"]);
    explain("dev_line3", &format!("{LARGE} --tune *=ring")).refused(&["`*=ring`", "no ring"]);
    explain("dev_line3", "--op reduce --bytes 1K --root 3").refused(&["root 3", "3 ranks"]);
    for (name, words) in [
        ("odd_all_null4", "no link at all"),
        ("odd_diagonal_set2", "row 0, column 0"),
        ("odd_empty_root", "no ranks"),
        ("odd_number_cell", "row 0, column 1"),
        ("odd_ragged3", "row 1"),
        ("odd_truncated", "line 1"),
        ("ring_no_port", "no port"),
        ("ring_port_70000", "70000"),
        ("none", "none.json"),
    ] {
        explain(name, LARGE).refused(&[words]);
    }
    let split = std::env::temp_dir().join(format!("unisono-split-{}.json", std::process::id()));
    let matrix =
        r#"[[null,"a",null,null],["a",null,null,null],[null,null,null,"b"],[null,null,"b",null]]"#;
    std::fs::write(&split, matrix).unwrap();
    let arguments = format!("explain --topology {} {LARGE}", split.display());
    run(&arguments).refused(&["{0,1}", "{2,3}"]);
    std::fs::remove_file(&split).unwrap();
}

#[test]
fn mistakes_are_usage() {
    explain("dev_line3", "--op all_reduce").usage(&["--bytes is missing"]);
    explain("dev_line3", "--op all_reduce --bytes 1K..1M").usage(&["one size"]);
    explain("dev_line3", &format!("{LARGE} --require mesh")).usage(&["mesh-rdma, rdma, tcp"]);
    explain("dev_line3", &format!("{LARGE} --tune all_reduce=")).usage(&["character 11"]);
    explain("dev_line3", &format!("{LARGE} --link infiniband")).usage(&["roce100g"]);
    run("topo").usage(&["FILE"]);
}

#[test]
fn the_cabling_is_told_and_drawn_with_missing_pairs_named() {
    let file = case("dev_mesh4_missing_0_1");
    let text = run(&format!("topo {file}")).done().stdout;
    assert!(
        text.contains("rdma: 5 of 6 links, no 0-1; ring 0-2-1-3"),
        "{text}"
    );
    assert!(text.contains("  0-2  rdma_en4 to rdma_en4"), "{text}");
    let dot = run(&format!("topo {file} --dot")).done().stdout;
    assert!(
        dot.starts_with("graph ") && dot.contains("no rdma link 0-1"),
        "{dot}"
    );
    assert_eq!(dot.matches("[label=\"rdma\"]").count(), 5);
    let picture = run(&format!("topo {file} --svg -")).done().stdout;
    assert!(picture.starts_with("<svg") && picture.contains("no rdma link 0-1"));
    let svg = std::env::temp_dir().join(format!("unisono-topo-{}.svg", std::process::id()));
    end(unisono().args(["topo", &file, "--svg"]).arg(&svg)).done();
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), picture);
    std::fs::remove_file(&svg).unwrap();
    let hosts = run(&format!("topo {}", case("host_list_form")))
        .done()
        .stdout;
    assert!(
        hosts.contains("rank 1 is m3-ultra-2") && hosts.contains("tcp: 3 of 6 links"),
        "{hosts}"
    );
    let one = run(&format!("topo {}", case("odd_single"))).done().stdout;
    assert_eq!(one, "1 rank\n");
    run(&format!("topo {}", case("odd_ragged3"))).refused(&["row 1"]);
}

#[test]
fn the_environment_overrides_what_a_live_group_chooses() {
    let bench = |tune: &str| {
        let arguments =
            "bench --transport inproc --ranks 2 --bytes 1K --iters 2 --warmup 0 --check";
        end(unisono()
            .env("UNISONO_TUNE", tune)
            .args(arguments.split(' ')))
    };
    bench("all_reduce=ring; *=tree").done();
    bench("all_reduce=ring-trip").refused(&["unknown algorithm `ring-trip`", "butterfly-"]);
    bench("all_reduce=@rdma").refused(&["all_reduce=@rdma", "inproc"]);
    bench("all_reduce").refused(&["character 10"]);
}
