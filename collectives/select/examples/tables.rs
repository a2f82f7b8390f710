//! How long tables take to make and to look up: `cargo run --release -p unisono-select --example tables [-- RANKS...]`.

use std::hint::black_box;
use std::time::Instant;

use unisono_core::{Collective, Topology};
use unisono_program::{Context, Registry};
use unisono_select::{Ask, Facts, Selector};
use unisono_topology::{Cluster, Preset};

fn main() {
    let mut registry = Registry::new();
    unisono_ring::register(&mut registry);
    unisono_mesh::register(&mut registry);
    unisono_tree::register(&mut registry);
    unisono_butterfly::register(&mut registry);
    unisono_dissemination::register(&mut registry);
    let named: Vec<u32> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let ranks = if named.is_empty() {
        vec![4, 8, 64]
    } else {
        named
    };
    for p in ranks {
        for preset in [Preset::Thunderbolt5Rdma, Preset::TenGbe] {
            let cluster = Cluster::mesh(p, &preset.spec()).expect("a mesh");
            tables(preset.name(), &registry, &cluster);
        }
        let ring = (0..p).map(|r| (r, (r + 1) % p));
        let spec = Preset::Thunderbolt5Rdma.spec();
        let cluster =
            Cluster::from_topology(&Topology::from_links(p, ring), &spec).expect("a ring");
        tables("ring of thunderbolt5-rdma", &registry, &cluster);
    }
}

fn tables(name: &str, registry: &Registry, cluster: &Cluster) {
    let selector = Selector::new(Facts::of(cluster), registry.clone(), None).expect("connected");
    for collective in Collective::ALL {
        let cx = Context::full(collective, 0, cluster.size());
        let ask = Ask::new(&cx, 1 << 20);
        let start = Instant::now();
        let table = selector.table(&ask).expect("somebody can do it");
        let made = start.elapsed();
        let Some(table) = table else {
            println!("{} ranks, {name}, {collective}: not priced", cluster.size());
            continue;
        };
        let start = Instant::now();
        let lookups: u64 = 1_000_000;
        for i in 0..lookups {
            black_box(table.lookup(black_box(1 << (i % 34))));
        }
        let each = start.elapsed().as_nanos() as u64 / lookups;
        println!(
            "{} ranks, {name}, {collective}: made in {:.1} ms, a lookup takes {each} ns",
            cluster.size(),
            made.as_secs_f64() * 1e3
        );
        if std::env::var_os("TABLES").is_some() {
            print!("{table}");
        }
    }
}
