//! What is chosen on the files of `topology/tests/cases`, and what is said of the rest.

use std::path::Path;

use unisono_core::{Collective, Topology};
use unisono_program::{Context, Registry};
use unisono_select::{
    Ask, Explanation, Facts, Require, SelectError, Selector, Tune, Way, row_bytes,
};
use unisono_topology::{Cluster, read, read_file};

fn registry() -> Registry {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    registry
}

fn case(name: &str) -> Cluster {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topology/tests/cases");
    read_file(folder.join(format!("{name}.json"))).unwrap()
}

fn selector(cluster: &Cluster, require: Option<Require>) -> Result<Selector, SelectError> {
    Selector::new(Facts::of(cluster), registry(), require)
}

fn explained(cluster: &Cluster, collective: Collective, bytes: u64, tune: &str) -> Explanation {
    let ranks = cluster.size();
    let cx = Context::new(collective, 0, Topology::full(ranks).into());
    let tune: Tune = tune.parse().unwrap();
    let mut ask = Ask::new(&cx, row_bytes(collective, ranks, bytes));
    ask.tune = Some(&tune);
    selector(cluster, None).unwrap().explain(&ask).unwrap()
}

fn refused(cluster: &Cluster, require: Require) -> String {
    selector(cluster, Some(require)).unwrap_err().to_string()
}

const ALL_REDUCE: Collective = Collective::AllReduce;
const LARGE: u64 = 64 << 20;

/// Algorithm and transport of an all_reduce of 64 MiB.
fn chosen(name: &str) -> (String, String) {
    let found = explained(&case(name), ALL_REDUCE, LARGE, "");
    (found.chosen.algorithm, found.chosen.transport)
}

#[test]
fn a_full_rdma_mesh_is_used_as_a_mesh() {
    for name in [
        "dev_mesh4_ok",
        "dev_pair_asym_names",
        "host_list_form",
        "host_object_form",
    ] {
        let (algorithm, transport) = chosen(name);
        assert!(algorithm.starts_with("mesh-"), "{name}: {algorithm}");
        assert_eq!(transport, "rdma", "{name}");
    }
    let links = explained(&case("dev_mesh4_ok"), ALL_REDUCE, LARGE, "")
        .facts
        .links;
    assert_eq!((links[0].links, links[0].pairs), (6, 6));
}

#[test]
fn on_a_full_rdma_mesh_four_collectives_keep_to_the_mesh_family_at_any_size() {
    use Collective as C;
    for collective in [C::AllReduce, C::ReduceScatter, C::AllGather, C::AllToAll] {
        for bytes in [4, 4096, 1 << 20, 1 << 30] {
            let found = explained(&case("dev_mesh4_ok"), collective, bytes, "");
            assert!(
                found.chosen.algorithm.starts_with("mesh-"),
                "{collective} {bytes}: {}",
                found.chosen.algorithm
            );
        }
    }
}

#[test]
fn one_missing_link_makes_it_no_mesh_but_rdma_all_the_same() {
    let cluster = case("dev_mesh4_missing_0_1");
    let found = explained(&cluster, ALL_REDUCE, LARGE, "");
    assert!(found.chosen.algorithm.starts_with("ring"));
    assert_eq!(found.chosen.transport, "rdma");
    assert_eq!(found.ring, Some(vec![0, 2, 1, 3]));
    let mesh = found
        .rejected
        .iter()
        .find(|r| r.algorithm == "mesh-twoshot");
    assert_eq!(mesh.unwrap().reason, "no link 0-1 (5 of 6)");
    assert_eq!(
        refused(&cluster, Require::MeshRdma),
        "mesh-rdma is required, but there is no link 0-1 (5 of 6)"
    );
    assert!(selector(&cluster, Some(Require::Rdma)).is_ok());
}

#[test]
fn a_ring_of_cables_is_used_in_cable_order() {
    let found = explained(&case("dev_ring4_ok"), ALL_REDUCE, LARGE, "");
    assert!(found.chosen.algorithm.starts_with("ring"));
    assert_eq!(found.chosen.transport, "rdma");
    assert_eq!(found.ring, Some(vec![0, 1, 2, 3]));
    assert!(found.chosen.bound_share.unwrap() > 0.9);
}

#[test]
fn without_a_ring_trees_do_everything_over_rdma() {
    for name in ["dev_line3", "dev_star4"] {
        let cluster = case(name);
        let rules = selector(&cluster, None).unwrap();
        for collective in Collective::ALL {
            for (root, commutative) in [(0, true), (cluster.size() - 1, true), (1, false)] {
                let full = Topology::full(cluster.size());
                let cx = Context::new(collective, 0, full.into())
                    .with_root(root)
                    .with_commutative(commutative);
                for bytes in [8, 1 << 20] {
                    let choice = rules.choose(&Ask::new(&cx, bytes)).unwrap();
                    assert_eq!(choice.way, Some(Way::Rdma));
                    let topology = choice.topology.clone().unwrap();
                    // Whoever builds it over these links alone finds out that no other is named.
                    let cx = Context::new(collective, 0, topology)
                        .with_root(cx.root())
                        .with_commutative(commutative)
                        .with_params(choice.params);
                    unisono_program::build_all(&*choice.algorithm, &cx).unwrap();
                }
            }
        }
        let found = explained(&cluster, ALL_REDUCE, LARGE, "");
        assert_eq!(
            (found.chosen.algorithm.as_str(), found.ring),
            ("tree-centre", None)
        );
    }
}

#[test]
fn two_cables_of_a_pair_are_both_used() {
    let found = explained(&case("dev_two_cables_ok"), ALL_REDUCE, LARGE, "");
    assert!(found.chosen.variant.starts_with("channels=2,"), "{found}");
    assert_eq!(
        (found.chosen.transport.as_str(), found.facts.links[0].rails),
        ("rdma", 2)
    );
    let small = explained(&case("dev_two_cables_ok"), ALL_REDUCE, 64, "");
    assert!(small.chosen.variant.starts_with("channels=1,"), "{small}");
}

#[test]
fn addresses_mean_tcp() {
    for name in [
        "host_no_rdma_key",
        "ring_ok4",
        "ring_ipv6",
        "ring_two_conns",
    ] {
        let (_, transport) = chosen(name);
        assert_eq!(transport, "tcp", "{name}");
    }
    let found = explained(&case("ring_two_conns"), ALL_REDUCE, LARGE, "");
    assert!(found.chosen.variant.starts_with("channels=2,"), "{found}");
    assert_eq!(
        refused(&case("ring_ok4"), Require::Rdma),
        "rdma is required, but no two ranks have a rdma link"
    );
}

#[test]
fn a_world_of_one_sends_nothing() {
    let found = explained(&case("odd_single"), ALL_REDUCE, LARGE, "");
    assert_eq!(
        (found.chosen.transport.as_str(), found.chosen.predicted_us),
        ("none", Some(0.0))
    );
}

#[test]
fn worlds_that_no_way_joins_are_refused_naming_their_parts() {
    let matrix =
        r#"[[null,"a",null,null],["a",null,null,null],[null,null,null,"b"],[null,"z","b",null]]"#;
    let split = read(matrix).unwrap();
    let error = selector(&split, None).unwrap_err().to_string();
    assert_eq!(
        error,
        "no links join all 4 ranks: rdma joins only {0,1} and {2,3}"
    );
    let error = refused(&split, Require::MeshRdma);
    assert!(
        error.contains("no link 0-2, 0-3, 1-2, 1-3 (2 of 6)"),
        "{error}"
    );
    assert!(
        error.contains("`z` at (3, 1) without a counterpart at (1, 3)"),
        "{error}"
    );
    assert!(refused(&split, Require::Rdma).contains("rdma joins only {0,1} and {2,3}"));
}

#[test]
fn tcp_fills_the_gaps_of_rdma_only_where_rdma_does_not_join_all() {
    let hosts = r#"[
        {"ssh": "a", "ips": ["10.0.0.1"], "rdma": [null, "x", null, null]},
        {"ssh": "b", "ips": ["10.0.0.2"], "rdma": ["x", null, null, null]},
        {"ssh": "c", "ips": ["10.0.0.3"], "rdma": [null, null, null, "x"]},
        {"ssh": "d", "ips": ["10.0.0.4"], "rdma": [null, null, "x", null]}
    ]"#;
    let cluster = read(hosts).unwrap();
    let found = explained(&cluster, ALL_REDUCE, LARGE, "");
    assert!(["tcp", "rdma+tcp"].contains(&found.chosen.transport.as_str()));
    assert!(
        found
            .facts
            .policy
            .starts_with("rdma joins only {0,1} and {2,3}"),
        "{found}"
    );
    assert!(refused(&cluster, Require::Rdma).contains("{0,1} and {2,3}"));
    assert_eq!(
        selector(&cluster, Some(Require::Tcp)).unwrap().usable(),
        [Way::Tcp]
    );
    // Joined over a third rank, RDMA needs no TCP.
    assert_eq!(chosen("host_list_form").1, "rdma");
}

#[test]
fn overrides_choose_exclude_and_are_refused_when_impossible() {
    let cluster = case("host_list_form");
    let with = |tune: &str| explained(&cluster, ALL_REDUCE, 1 << 20, tune).chosen;
    assert_eq!(with("*=ring(segments=3)").variant, "channels=1,segments=3");
    assert_eq!(with("*=ring").algorithm, "ring");
    assert_eq!(with("*=@tcp").transport, "tcp");
    assert_eq!(with("*=^@rdma").transport, "tcp");
    assert_eq!(with("*=^mesh-twoshot").algorithm, "mesh-oneshot");
    assert_eq!(
        with("*=ring; all_reduce:4M-=tree; broadcast=tree").algorithm,
        "ring"
    );

    let line = case("dev_line3");
    let rules = selector(&line, None).unwrap();
    let refusal = |tune: &str| {
        let cx = Context::full(ALL_REDUCE, 0, 3);
        let tune: Tune = tune.parse().unwrap();
        let mut ask = Ask::new(&cx, 4096);
        ask.tune = Some(&tune);
        rules.choose(&ask).unwrap_err().to_string()
    };
    let error = refusal("all_reduce=ring");
    assert!(
        error.contains("`all_reduce=ring` is impossible for all_reduce: rdma: no ring"),
        "{error}"
    );
    assert!(refusal("*=@tcp").ends_with("no two ranks have a tcp link"));
    assert!(refusal("*=@shm").ends_with("no two ranks have a link over shm"));
    assert!(refusal("*=mesh-twoshot").contains("no link 0-2 (2 of 3)"));
    assert!(refusal("*=^tree-centre").ends_with("nothing else can do it"));
    assert!(refusal("*=rang").contains("unknown algorithm `rang`; known: butterfly-"));
}

#[test]
fn the_json_object_has_the_promised_keys_on_one_line() {
    let text = explained(&case("dev_mesh4_missing_0_1"), ALL_REDUCE, LARGE, "").to_json();
    assert!(!text.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys = |v: &serde_json::Value| {
        let mut keys: Vec<String> = v.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(keys(&value), "chosen facts rejected ring");
    assert_eq!(
        keys(&value["chosen"]),
        "algorithm bound_share predicted_us transport variant"
    );
    assert_eq!(keys(&value["rejected"][0]), "algorithm reason transport");
    assert_eq!(value["ring"], serde_json::json!([0, 2, 1, 3]));
}
