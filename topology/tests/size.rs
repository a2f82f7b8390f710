//! Large files, and files made to be dear, are read in time that grows with their length.

use std::fmt::Write;

use unisono_topology::{Transport, read};

#[test]
fn a_matrix_of_300_ranks_is_read() {
    let row = |i: usize| {
        let cell = |j: usize| if i == j { "null" } else { "\"rdma_en2\"" };
        format!("[{}]", (0..300).map(cell).collect::<Vec<_>>().join(","))
    };
    let rows: Vec<_> = (0..300).map(row).collect();
    let cluster = read(format!("[{}]", rows.join(",\n"))).unwrap();
    assert!(cluster.topology(Transport::Rdma).is_full());
    assert!(cluster.one_way().is_empty());
}

#[test]
fn a_hundred_thousand_hosts_names_or_keys_are_no_square_of_work() {
    let n = 100_000;
    let mut hosts = "[".to_owned();
    let mut keys = r#"{"ranks": 1"#.to_owned();
    let mut names = "[[null, [\"x\"".to_owned();
    for i in 0..n {
        write!(hosts, "{{\"ssh\": \"h{i}\", \"ips\": [\"10.0.0.1\"]}},").unwrap();
        write!(keys, ", \"k{i}\": 1").unwrap();
        write!(names, ", \"n{i}\"").unwrap();
    }
    hosts += r#"{"ssh": "last"}]"#;
    keys += "}";
    names += "]], [null, null]]";
    assert_eq!(read(hosts).unwrap().size(), n + 1);
    assert!(read(keys).unwrap_err().to_string().contains("`k0`"));
    let message = read(names).unwrap_err().to_string();
    assert!(message.ends_with(
        "; found `x`, `n0`, `n1`, `n2` and 99997 more at (0, 1) without a counterpart at (1, 0)"
    ));
}
