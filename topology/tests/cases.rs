//! What every file in `cases/` comes to, in one line each.

use std::fs;
use std::path::{Path, PathBuf};

use unisono_topology::{Cluster, Transport, detect, read_file};

const EXPECTED: &[(&str, &str)] = &[
    (
        "dev_line3",
        "DeviceMatrix: 3 ranks; rdma 2 of 3, no 0-2, no ring, preset thunderbolt5-rdma",
    ),
    (
        "dev_mesh4_missing_0_1",
        "DeviceMatrix: 4 ranks; rdma 5 of 6, no 0-1, ring [0, 2, 1, 3], preset thunderbolt5-rdma",
    ),
    (
        "dev_mesh4_ok",
        "DeviceMatrix: 4 ranks; rdma 6 of 6, ring [0, 1, 2, 3], preset thunderbolt5-rdma",
    ),
    (
        "dev_pair_asym_names",
        "DeviceMatrix: 2 ranks; rdma 1 of 1, ring [0, 1], preset thunderbolt5-rdma",
    ),
    (
        "dev_ring4_ok",
        "DeviceMatrix: 4 ranks; rdma 4 of 6, no 0-2 1-3, ring [0, 1, 2, 3], preset thunderbolt5-rdma",
    ),
    (
        "dev_star4",
        "DeviceMatrix: 4 ranks; rdma 3 of 6, no 1-2 1-3 2-3, no ring, preset thunderbolt5-rdma",
    ),
    (
        "dev_two_cables_ok",
        "DeviceMatrix: 2 ranks; rdma 1 of 1, 2 rails, ring [0, 1], preset thunderbolt5-rdma",
    ),
    (
        "host_list_form",
        "Hostfile: 4 ranks; rdma 6 of 6, ring [0, 1, 2, 3], preset thunderbolt5-rdma; tcp 3 of 6, no 1-2 1-3 2-3, no ring, preset 10gbe; host 0 is m3-ultra-1",
    ),
    (
        "host_no_rdma_key",
        "Hostfile: 2 ranks; tcp 1 of 1, ring [0, 1], preset 10gbe; host 0 is a",
    ),
    (
        "host_object_form",
        "Hostfile: 4 ranks; rdma 6 of 6, ring [0, 1, 2, 3], preset thunderbolt5-rdma; tcp 3 of 6, no 1-2 1-3 2-3, no ring, preset 10gbe; host 0 is m3-ultra-1; jaccl [\"MLX_METAL_FAST_SYNCH=0\"]",
    ),
    (
        "odd_all_null4",
        "error: 4 ranks have no link at all; expected one that both of its ends list",
    ),
    (
        "odd_diagonal_set2",
        "error: row 0, column 0: `rdma_en2` on the diagonal; expected null: no rank has a cable to itself",
    ),
    (
        "odd_empty_root",
        "error: the cluster has no ranks; expected one at least",
    ),
    (
        "odd_number_cell",
        "error: row 0, column 1: found a number; expected null, a device name, or a list of device names",
    ),
    (
        "odd_ragged3",
        "error: row 1 has 2 cells; expected 3, one per rank: a matrix is square",
    ),
    ("odd_single", "DeviceMatrix: 1 ranks"),
    (
        "odd_truncated",
        "error: line 1, column 28: the text ends too early; expected the rest of the JSON",
    ),
    (
        "ring_ipv6",
        "Addresses: 2 ranks; tcp 1 of 1, ring [0, 1], preset 10gbe",
    ),
    (
        "ring_no_port",
        "error: rank 0, address 0 `127.0.0.1`: it has no port; expected address:port, such as 127.0.0.1:5000",
    ),
    (
        "ring_ok4",
        "Addresses: 4 ranks; tcp 6 of 6, ring [0, 1, 2, 3], preset 10gbe",
    ),
    (
        "ring_port_70000",
        "error: rank 0, address 0 `127.0.0.1:70000`: port `70000` is out of range; expected 1 to 65535",
    ),
    (
        "ring_two_conns",
        "Addresses: 2 ranks; tcp 1 of 1, 2 rails, ring [0, 1], preset 10gbe",
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn line(path: &Path) -> String {
    match read_file(path) {
        Ok(cluster) => format!(
            "{:?}: {}",
            detect(fs::read(path).unwrap()).unwrap(),
            described(&cluster)
        ),
        Err(error) => format!("error: {error}"),
    }
}

fn described(cluster: &Cluster) -> String {
    let mut text = format!("{} ranks", cluster.size());
    for transport in cluster.transports() {
        let links = cluster.topology(transport);
        let figures = cluster.default_figures(transport);
        text += &format!(
            "; {transport} {} of {}",
            links.link_count(),
            links.pair_count()
        );
        if let Some((_, rails)) = links.links().next().filter(|&(_, rails)| rails > 1) {
            text += &format!(", {rails} rails");
        }
        let missing: Vec<_> = links.missing().map(|link| link.to_string()).collect();
        if !missing.is_empty() {
            text += &format!(", no {}", missing.join(" "));
        }
        text += &match links.ring() {
            Some(ring) => format!(", ring {:?}", ring.ranks().collect::<Vec<_>>()),
            None => ", no ring".to_owned(),
        };
        text += &format!(", {}", figures.alpha.from);
    }
    if let Some(ssh) = cluster.host(0).and_then(|host| host.ssh.as_deref()) {
        text += &format!("; host 0 is {ssh}");
    }
    if let Some(backend) = cluster.backend() {
        text += &format!("; {backend} {:?}", cluster.envs());
    }
    text
}

#[test]
fn every_case_reads_as_expected() {
    let mut paths: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let found: Vec<_> = paths.iter().map(|path| (name(path), line(path))).collect();
    let expected: Vec<_> = EXPECTED
        .iter()
        .map(|&(a, b)| (a.to_owned(), b.to_owned()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn names_belong_to_their_hosts() {
    let cluster = read_file(folder().join("dev_pair_asym_names.json")).unwrap();
    let rails = cluster.rails(Transport::Rdma, 1, 0);
    assert_eq!(
        (rails[0].near, rails[0].far),
        (Some("rdma_en5"), Some("rdma_en4"))
    );

    let cluster = read_file(folder().join("dev_two_cables_ok.json")).unwrap();
    let rails = cluster.rails(Transport::Rdma, 0, 1);
    let rails: Vec<_> = rails
        .iter()
        .map(|r| (r.near.unwrap(), r.far.unwrap()))
        .collect();
    assert_eq!(rails, [("rdma_en6", "rdma_en7"), ("rdma_en7", "rdma_en6")]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read_file(folder().join("none.json"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read ") && error.contains("none.json"),
        "{error}"
    );
}
