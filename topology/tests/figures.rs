//! Which figure counts where several are stated, and where it says it came from.

use std::time::Duration;

use unisono_topology::{
    Cluster, LinkSpec, Preset, Provenance, Rate, TopologyError, Transport, read,
};

const RDMA: Transport = Transport::Rdma;

#[test]
fn the_nearest_figure_counts() {
    let mut cluster = read(
        r#"
        ranks = 3
        [rdma]
        mesh = true
        beta = "6GB/s"
        [[links]]
        ranks = [0, 1]
        alpha = "7us"
        "#,
    )
    .unwrap();
    let alpha = |cluster: &Cluster, a, b| cluster.figures(RDMA, a, b).unwrap().alpha;
    let preset = Provenance::Preset(Preset::Thunderbolt5Rdma);
    assert_eq!(alpha(&cluster, 1, 0).from, Provenance::Given);
    assert_eq!(alpha(&cluster, 1, 2).from, preset);
    assert_eq!(
        cluster.figures(RDMA, 0, 1).unwrap().beta.from,
        Provenance::Given
    );
    assert_eq!(cluster.gamma().from, preset);

    let (time, rate) = (Duration::from_micros(6), Rate::new(5_500_000_000));
    cluster.set_measured(RDMA, (1, 2), time, rate).unwrap();
    assert_eq!(alpha(&cluster, 1, 2).from, Provenance::Measured);
    assert_eq!(alpha(&cluster, 2, 1).from, preset);
    let own: Vec<_> = cluster
        .exceptions(RDMA)
        .map(|(a, b, f)| (a, b, f.alpha.from))
        .collect();
    assert_eq!(
        own,
        [
            (0, 1, Provenance::Given),
            (1, 0, Provenance::Given),
            (1, 2, Provenance::Measured)
        ]
    );
    assert!(cluster.topology(RDMA).is_declared_full());
}

#[test]
fn a_specification_replaces_what_was_assumed() {
    let spec: LinkSpec = "alpha=1us,bandwidth=1GB/s,reduce=7GB/s".parse().unwrap();
    let cluster = read(r#"[[null, "a"], ["b", null]]"#)
        .unwrap()
        .with_spec(&spec);
    let figures = cluster.figures(RDMA, 0, 1).unwrap();
    assert_eq!((figures.alpha, figures.beta), (spec.alpha, spec.bandwidth));
    assert_eq!(figures.overhead.value, Duration::ZERO);
    assert_eq!(cluster.gamma(), spec.reduce);
}

#[test]
fn what_is_not_linked_has_no_figures() {
    let mut cluster = Cluster::line(3, &LinkSpec::default()).unwrap();
    assert!(cluster.figures(RDMA, 0, 2).is_none());
    assert!(cluster.figures(RDMA, 0, 9).is_none() && cluster.figures(RDMA, 1, 1).is_none());
    assert!(cluster.figures(Transport::Tcp, 0, 1).is_none());
    let error = cluster.set_measured(RDMA, (0, 2), Duration::ZERO, Rate::new(1));
    assert!(matches!(
        error,
        Err(TopologyError::NotLinked { from: 0, to: 2, .. })
    ));
}

#[test]
fn components_are_those_of_all_transports_together() {
    let text = r#"
        ranks = 4
        [[links]]
        ranks = [0, 1]
        [[links]]
        ranks = [2, 3]
    "#;
    let parts = read(text).unwrap().all_links().components();
    assert_eq!(parts, [[0, 1], [2, 3]]);
    let joined = format!("{text}\n[[links]]\nranks = [1, 2]\ntransport = \"tcp\"\n");
    assert!(read(joined).unwrap().all_links().is_connected());
}

#[test]
fn eight_kib_between_two_macs_take_what_the_preset_says() {
    let spec = Preset::Thunderbolt5Rdma.spec();
    let at = |rate: Rate| Duration::from_nanos(8192 * 1_000_000_000 / rate.bytes_per_second());
    let time = spec.overhead.value * 2
        + spec.alpha.value
        + at(spec.bandwidth.value)
        + at(spec.reduce.value);
    assert!(
        (Duration::from_micros(10)..=Duration::from_micros(40)).contains(&time),
        "{time:?}"
    );
}
