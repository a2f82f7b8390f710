//! Tables: the same for everyone, and right between the sizes at which they are made.

use unisono_core::{Collective, Rank, Topology};
use unisono_program::{Context, Registry};
use unisono_select::{Ask, Explanation, Facts, MOST_PRICED, Selector, row_bytes};
use unisono_topology::{Cluster, LinkSpec, Preset};

fn registry() -> Registry {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    registry
}

fn selector(cluster: &Cluster) -> Selector {
    Selector::new(Facts::of(cluster), registry(), None).unwrap()
}

fn explained(rules: &Selector, collective: Collective, bytes: u64) -> Explanation {
    let ranks = rules.facts().size();
    let cx = Context::new(collective, 0, Topology::full(ranks).into());
    let ask = Ask::new(&cx, row_bytes(collective, ranks, bytes));
    rules.explain(&ask).unwrap()
}

/// Twelve worlds of all shapes.
fn gallery() -> Vec<(&'static str, Cluster)> {
    let cable = LinkSpec::default();
    let ethernet = Preset::TenGbe.spec();
    let graph = |size: Rank, links: &[(Rank, Rank)]| {
        let topology = Topology::from_links(size, links.iter().copied());
        Cluster::from_topology(&topology, &cable).unwrap()
    };
    let triangles = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)];
    let missing = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    vec![
        ("mesh of 4", Cluster::mesh(4, &cable).unwrap()),
        ("mesh of 7", Cluster::mesh(7, &cable).unwrap()),
        ("mesh of 5 over 10gbe", Cluster::mesh(5, &ethernet).unwrap()),
        ("mesh of 8 over 10gbe", Cluster::mesh(8, &ethernet).unwrap()),
        ("ring of 4", Cluster::ring(4, &cable).unwrap()),
        ("ring of 8", Cluster::ring(8, &cable).unwrap()),
        ("line of 3", Cluster::line(3, &cable).unwrap()),
        ("line of 6", Cluster::line(6, &cable).unwrap()),
        ("star of 4", Cluster::star(4, &cable).unwrap()),
        ("torus of 3x3", Cluster::torus(3, 3, &cable).unwrap()),
        ("mesh of 4 without 0-1", graph(4, &missing)),
        ("two triangles", graph(6, &triangles)),
    ]
}

#[test]
fn a_table_is_the_same_for_every_rank_and_every_run() {
    for (name, cluster) in gallery() {
        let (one, other) = (selector(&cluster), selector(&cluster));
        for collective in [Collective::AllReduce, Collective::Scatter] {
            for rank in 0..cluster.size() {
                let full = Topology::full(cluster.size());
                let cx = Context::new(collective, rank, full.into());
                let ask = Ask::new(&cx, 1 << 20);
                let tables = [&one, &other].map(|s| s.table(&ask).unwrap().unwrap().to_string());
                assert_eq!(tables[0], tables[1], "{name}");
                let asks = [0, rank].map(|r| one.choose(&Ask::new(&cx.at_rank(r), 12_345)));
                let asks = asks.map(|c| format!("{:?}", c.unwrap()));
                assert_eq!(asks[0], asks[1], "{name}");
            }
        }
    }
}

#[test]
fn between_the_sizes_of_the_table_nothing_else_is_a_tenth_faster() {
    for (name, cluster) in gallery() {
        let rules = selector(&cluster);
        for collective in Collective::ALL {
            for bytes in [200, 9_000, 100_000, 1_500_000, 40_000_000] {
                let found = explained(&rules, collective, bytes);
                let chosen = found.chosen.predicted_us.unwrap();
                let allowed = found
                    .rejected
                    .iter()
                    .filter(|r| !r.reason.starts_with("policy"));
                for rejected in allowed {
                    let Some(other) = rejected.predicted_us else {
                        continue;
                    };
                    assert!(
                        chosen <= 1.1 * other,
                        "{name}, {collective} of {bytes}: {} takes {chosen} us, {} {other} us",
                        found.chosen.algorithm,
                        rejected.algorithm
                    );
                }
            }
        }
    }
}

#[test]
fn no_prediction_is_below_the_bound() {
    for (name, cluster) in gallery() {
        let rules = selector(&cluster);
        for collective in Collective::ALL {
            for bytes in [64, 70_000, 16 << 20] {
                let found = explained(&rules, collective, bytes);
                let bound = found.facts.bound_us.unwrap();
                let all = found.rejected.iter().filter_map(|r| r.predicted_us);
                for us in all.chain(found.chosen.predicted_us) {
                    assert!(
                        us >= bound,
                        "{name}, {collective} of {bytes}: {us} < {bound}\n{found}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_large_ring_is_found_and_a_large_world_is_priced_at_few_sizes() {
    let ring = Cluster::ring(65, &LinkSpec::default()).unwrap();
    let found = explained(&selector(&ring), Collective::AllGather, 64 << 20);
    assert!(found.chosen.algorithm.starts_with("ring"), "{found}");
    assert!(
        found.facts.policy.ends_with("from a table of 4 sizes"),
        "{found}"
    );
}

#[test]
fn above_512_ranks_policy_alone_chooses_and_says_so() {
    let ring = Cluster::ring(MOST_PRICED + 1, &LinkSpec::default()).unwrap();
    let found = explained(&selector(&ring), Collective::AllReduce, 64 << 20);
    assert!(found.chosen.algorithm.starts_with("ring"), "{found}");
    assert_eq!(found.chosen.predicted_us, None);
    assert!(
        found
            .facts
            .policy
            .contains("more than 512 ranks are not priced"),
        "{found}"
    );
    let mesh = Cluster::mesh(1000, &LinkSpec::default()).unwrap();
    let found = explained(&selector(&mesh), Collective::AllReduce, 64 << 20);
    assert!(found.chosen.algorithm.starts_with("mesh-"), "{found}");
}

#[test]
fn a_slower_link_in_the_ring_is_known_to_the_price() {
    let fast = Cluster::mesh(4, &Preset::TenGbe.spec()).unwrap();
    let mut slow = fast.clone();
    for pair in [(0, 1), (1, 0)] {
        let figures = slow.default_figures(unisono_topology::Transport::Tcp);
        let rate = unisono_topology::Rate::new(1_000_000);
        slow.set_measured(
            unisono_topology::Transport::Tcp,
            pair,
            figures.alpha.value,
            rate,
        )
        .unwrap();
    }
    let us = |cluster: &Cluster| {
        let found = explained(&selector(cluster), Collective::AllReduce, 1 << 20);
        found.chosen.predicted_us.unwrap()
    };
    assert!(us(&slow) > 2.0 * us(&fast));
}

#[test]
fn facts_of_another_world_are_refused() {
    let rules = selector(&Cluster::mesh(3, &LinkSpec::default()).unwrap());
    let cx = Context::full(Collective::AllReduce, 0, 4);
    let error = rules.choose(&Ask::new(&cx, 8)).unwrap_err().to_string();
    assert_eq!(error, "the facts are about 3 ranks, the group has 4");
}
