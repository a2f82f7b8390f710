//! What must hold for any text and any cluster.

use std::time::Duration;

use proptest::prelude::*;
use unisono_topology::{Cluster, LinkSpec, Preset, Rate, Transport, read};

/// A message of one line, as the command line prints it.
fn reads_or_explains(text: &[u8]) {
    if let Err(error) = read(text) {
        let message = error.to_string();
        assert!(
            !message.is_empty() && !message.contains('\n'),
            "{message:?}"
        );
    }
}

/// JSON of any shape, likely to be close to the formats.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let word = prop_oneof![
        Just("rdma_en2".to_owned()),
        Just("127.0.0.1:5000".to_owned()),
        Just("[::1]:70000".to_owned()),
        Just("5us".to_owned()),
        Just("5GB/s".to_owned()),
        Just("rdma".to_owned()),
        Just("thunderbolt5-rdma".to_owned()),
        any::<String>(),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "ranks",
            "hosts",
            "links",
            "rdma",
            "tcp",
            "gamma",
            "ssh",
            "ips",
            "addresses",
            "from",
            "to",
            "rails",
            "devices",
            "alpha",
            "beta",
            "measured",
            "mesh",
            "preset",
            "envs",
            "transport",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (0..4i64).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        word.prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Square matrices of cells, most of them well formed.
fn matrix() -> impl Strategy<Value = Vec<Vec<serde_json::Value>>> {
    (1..6usize).prop_flat_map(|n| {
        let cell = prop_oneof![
            Just(serde_json::Value::Null),
            "[a-d]".prop_map(Into::into),
            prop::collection::vec("[a-d]", 0..3).prop_map(Into::into),
        ];
        let rows = prop::collection::vec(prop::collection::vec(cell, n), n);
        rows.prop_map(|mut rows| {
            for (i, row) in rows.iter_mut().enumerate() {
                row[i] = serde_json::Value::Null;
            }
            rows
        })
    })
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let spec = prop_oneof![
        prop::sample::select(Preset::ALL.to_vec()).prop_map(Preset::spec),
        (0..1u64 << 40, 1..1u64 << 40).prop_map(|(ns, rate)| {
            let text = format!("alpha={ns}ns,bandwidth={rate}B/s,transport=tcp");
            text.parse::<LinkSpec>().unwrap()
        }),
        Just("roce100g,overhead=1us,reduce=3GB/s".parse().unwrap()),
    ];
    let shape = (0..6u8, 2..9u32, spec.clone()).prop_map(|(shape, n, spec)| {
        let cluster = match shape {
            0 => Cluster::mesh(n, &spec),
            1 => Cluster::ring(n, &spec),
            2 => Cluster::line(n, &spec),
            3 => Cluster::star(n, &spec),
            4 => Cluster::torus(n, 3, &spec),
            _ => {
                let full = unisono_core::Topology::full(n).with_rails(3);
                Cluster::from_topology(&full, &spec)
            }
        };
        cluster.unwrap()
    });
    let measured = prop::collection::vec((0..9u32, 0..9u32, 0..1u64 << 40, 0..1u64 << 40), 0..6);
    (shape, spec, measured).prop_map(|(cluster, other, measured)| {
        let mut cluster = cluster.with_spec(&other);
        for (from, to, alpha, beta) in measured {
            for transport in Transport::ALL {
                let (alpha, beta) = (Duration::from_nanos(alpha), Rate::new(beta));
                let linked = cluster.linked(transport, from, to);
                let set = cluster.set_measured(transport, (from, to), alpha, beta);
                assert_eq!(set.is_ok(), linked);
            }
        }
        cluster
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        reads_or_explains(&bytes);
    }

    #[test]
    fn arbitrary_text_of_the_right_characters_never_panics(text in r#"[\[\]{}",:=.a-z0-9\n \-#]{0,80}"#) {
        reads_or_explains(text.as_bytes());
        reads_or_explains(format!("ranks = 2\n{text}").as_bytes());
        reads_or_explains(format!("[[null, {text}").as_bytes());
    }

    #[test]
    fn arbitrary_json_never_panics(value in json()) {
        reads_or_explains(value.to_string().as_bytes());
        reads_or_explains(format!("{value:#}").as_bytes());
    }

    #[test]
    fn a_text_cut_short_never_panics(cluster in cluster(), part in 0.0..1.0f64) {
        for text in [cluster.to_toml(), cluster.to_json()] {
            reads_or_explains(&text.as_bytes()[..(text.len() as f64 * part) as usize]);
        }
    }

    #[test]
    fn our_own_format_reads_back_the_same(cluster in cluster()) {
        prop_assert_eq!(&read(cluster.to_toml()).unwrap(), &cluster, "{}", cluster.to_toml());
        prop_assert_eq!(&read(cluster.to_json()).unwrap(), &cluster, "{}", cluster.to_json());
    }

    #[test]
    fn matrices_survive_our_own_format_and_links_need_both_ends(rows in matrix()) {
        let text = serde_json::to_string(&rows).unwrap();
        let Ok(cluster) = read(&text) else {
            return Ok(());
        };
        prop_assert_eq!(&read(cluster.to_toml()).unwrap(), &cluster, "{}", cluster.to_toml());
        let count = |i: usize, j: usize| match &rows[i][j] {
            serde_json::Value::Null => 0,
            serde_json::Value::Array(names) => names.len() as u32,
            _ => 1,
        };
        let links = cluster.topology(Transport::Rdma);
        for (i, j) in (0..rows.len()).flat_map(|i| (0..rows.len()).map(move |j| (i, j))) {
            let (a, b) = (i as u32, j as u32);
            let both = count(i, j).min(count(j, i));
            prop_assert_eq!(links.rails(a, b), both);
            prop_assert_eq!(cluster.rails(Transport::Rdma, a, b).len() as u32, both);
            let surplus = cluster.one_way().into_iter().find(|w| (w.from, w.to) == (a, b));
            prop_assert_eq!(surplus.map_or(0, |w| w.rails), count(i, j) - both);
        }
    }

    #[test]
    fn the_graph_agrees_with_the_pairs(cluster in cluster()) {
        for transport in Transport::ALL {
            let graph = cluster.topology(transport);
            for a in 0..cluster.size() {
                for b in 0..cluster.size() {
                    prop_assert_eq!(graph.rails(a, b), cluster.rail_count(transport, a, b));
                }
            }
            let has = cluster.transports().any(|t| t == transport);
            prop_assert_eq!(has, graph.link_count() > 0);
        }
    }
}
