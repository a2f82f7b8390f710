//! Every fault has its own message, with its place and what was expected; nothing panics.

use unisono_topology::{TopologyError, Transport, read};

/// Panics unless reading `text` fails with this message.
#[track_caller]
fn refused(text: &str, message: &str) {
    match read(text) {
        Ok(cluster) => panic!("read as {cluster:?}, expected: {message}"),
        Err(error) => assert_eq!(error.to_string(), message),
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let marked = b"\xef\xbb\xbf[[null, \"a\"], [\"b\", null]]";
    assert_eq!(read(marked).unwrap().size(), 2);
    assert_eq!(read(b"\xef\xbb\xbfranks = 1").unwrap().size(), 1);
    assert!(matches!(read(b"\xef\xbb\xbf"), Err(TopologyError::Empty)));
    let error = read(b"\xff\xfe[\0").unwrap_err().to_string();
    assert_eq!(error, "byte 0 is not UTF-8; expected text in UTF-8");
}

#[test]
fn a_world_of_one_needs_no_link() {
    for text in [
        "[[null]]",
        "[[[]]]",
        r#"[{"ssh": "a"}]"#,
        r#"[{"ssh": "a", "rdma": []}]"#,
        r#"[{"ssh": "a", "rdma": [null]}]"#,
        r#"[["127.0.0.1:5000"]]"#,
        "ranks = 1",
        r#"{"ranks": 1}"#,
    ] {
        let cluster = read(text).unwrap();
        assert_eq!(
            (cluster.size(), cluster.transports().count()),
            (1, 0),
            "{text}"
        );
        assert!(cluster.all_links().is_connected());
    }
}

#[test]
fn matrices_are_square_and_hold_names() {
    refused(
        r#"[[null, "a", "b"], ["a", null, "b"]]"#,
        "row 0 has 3 cells; expected 2, one per rank: a matrix is square",
    );
    refused(
        "[[]]",
        "row 0 has 0 cells; expected 1, one per rank: a matrix is square",
    );
    refused(
        r#"[[null, "a"], 5]"#,
        "row 1: found a number; expected a list of cells or of addresses",
    );
    refused(
        r#"[[null, ""], ["a", null]]"#,
        "row 0, column 1: an empty name; expected a device such as rdma_en2, or null",
    );
    refused(
        r#"[[null, "a"], [["b", " "], null]]"#,
        "row 1, column 0: an empty name; expected a device such as rdma_en2, or null",
    );
    refused(
        r#"[[null, "a"], [["b", "c", "b"], null]]"#,
        "row 1, column 0: `b` stands twice; expected one name per cable",
    );
    refused(
        r#"[[null, {"a": 1}], ["b", null]]"#,
        "row 0, column 1: found an object; expected null, a device name, or a list of device names",
    );
    refused(
        r#"[[null, ["a", 3]], ["b", null]]"#,
        "row 0, column 1: found a number; expected null, a device name, or a list of device names",
    );
    refused(
        r#"[[null, "a"], ["b", ["c"]]]"#,
        "row 1, column 1: `c` on the diagonal; expected null: no rank has a cable to itself",
    );
}

#[test]
fn one_way_edges_are_no_links_and_are_named() {
    refused(
        r#"[[null, "a"], [null, null]]"#,
        "2 ranks have no link at all; expected one that both of its ends list; \
         found `a` at (0, 1) without a counterpart at (1, 0)",
    );
    let cluster = read(r#"[[null, ["a", "b"]], ["c", null]]"#).unwrap();
    assert_eq!(cluster.rail_count(Transport::Rdma, 0, 1), 1);
    let one_way = cluster.one_way();
    assert_eq!(
        (one_way.len(), one_way[0].rails, &one_way[0].devices[..]),
        (1, 1, &["b".to_owned()][..])
    );
}

#[test]
fn hosts_match_their_columns_and_are_distinct() {
    refused(
        r#"[{"ssh": "a", "rdma": [null, "x", "y"]}, {"ssh": "b", "rdma": ["x", null, "y"]}]"#,
        "host 0 lists 3 rdma cells; expected 2, one per host",
    );
    refused(
        r#"[{"ssh": "a", "rdma": [null, "x"]}, {"ssh": "b"}]"#,
        "host 1 lists 0 rdma cells; expected 2, one per host",
    );
    refused(
        r#"[{"ssh": "a", "ips": []}, {"ssh": "b"}, {"ssh": "a"}]"#,
        "host 2: ssh `a` is host 0 already; expected each host once",
    );
    refused(
        r#"[{"ssh": "a", "ips": []}, {"ssh": "b"}]"#,
        "2 ranks have no link at all; expected one that both of its ends list",
    );
    refused(
        "[\n{\"ips\": []}]",
        "line 2: hosts[0] has no key `ssh`; expected the name of the host",
    );
    refused(
        r#"[{"ssh": 3}]"#,
        "line 1: hosts[0].ssh: found a number; expected the name of the host",
    );
    refused(
        r#"[{"ssh": ""}]"#,
        "line 1: hosts[0].ssh: found ``; expected the name of the host",
    );
    refused(
        r#"[{"ssh": "a"}, ["x"]]"#,
        "line 1: hosts[1]: found a list; expected a host with ssh, ips and rdma",
    );
    refused(
        r#"{"hosts": [{"ssh": "a"}], "envs": ["A=1", "B"]}"#,
        "line 1: envs[1]: found `B`; expected NAME=value",
    );
    refused(
        r#"[{"ssh": "a", "ips": ["10.0.0.1:22"]}]"#,
        "rank 0, address 0 `10.0.0.1:22`: it has a port; expected the address alone, such as 10.0.0.1",
    );
    refused(
        r#"{"hosts": []}"#,
        "the cluster has no ranks; expected one at least",
    );
}

#[test]
fn hostfile_ips_may_repeat_and_unknown_keys_are_left_alone() {
    let text = r#"{"hosts": [{"ssh": "a", "ips": ["10.0.0.1", "10.0.0.1"], "python": "3"},
                             {"ssh": "b", "ips": ["10.0.0.1", "10.0.0.1"]}], "new": {}}"#;
    assert_eq!(read(text).unwrap().rail_count(Transport::Tcp, 0, 1), 2);
}

#[test]
fn addresses_can_be_connected_to_and_are_distinct() {
    refused(
        r#"[["10.0.0.1:0"], ["10.0.0.2:1"]]"#,
        "rank 0, address 0 `10.0.0.1:0`: port 0 cannot be connected to; expected 1 to 65535",
    );
    refused(
        r#"[["10.0.0.1:5"], ["0.0.0.0:1"]]"#,
        "rank 1, address 0 `0.0.0.0:1`: a wildcard can be listened on but not connected to; \
         expected the address of one host",
    );
    refused(
        r#"[["10.0.0.1:5"], ["10.0.0.2:5", "10.0.0.1:5"]]"#,
        "rank 1, address 1: `10.0.0.1:5` belongs to rank 0 already; expected another port",
    );
    refused(
        r#"[["[::1]:5"], ["[0::1]:5"]]"#,
        "rank 1, address 0: `[::1]:5` belongs to rank 0 already; expected another port",
    );
    refused(
        r#"[["10.0.0.1:5"], []]"#,
        "rank 1 has no address; expected one at least, such as 192.168.1.2:5000",
    );
    refused(
        r#"[["10.0.0.1:5"], [null]]"#,
        "line 1: [1][0]: found null; expected a list of addresses, such as 192.168.1.2:5000",
    );
    let bare = read(r#"["10.0.0.1:5", "10.0.0.2:5"]"#).unwrap();
    assert!(bare.topology(Transport::Tcp).is_full());
}

#[test]
fn text_that_is_no_json_and_no_toml_has_its_line() {
    refused(
        "",
        "the file is empty; expected a matrix of devices, a hostfile, a list of addresses per rank, \
         or ranks and links in TOML or JSON",
    );
    assert!(matches!(
        read("3"),
        Err(TopologyError::UnknownFormat { .. })
    ));
    assert!(matches!(
        read("null"),
        Err(TopologyError::UnknownFormat { .. })
    ));
    refused(
        "[[null]]\n[",
        "line 2, column 1: more text after the end of the JSON; expected nothing",
    );
    refused(
        "{\"ranks\": 1,\n\"ranks\": 2}",
        "line 2: key `ranks` stands twice; expected it once",
    );
    refused(
        "ranks = 1\nranks = 2",
        "line 2: key `ranks` stands twice; expected it once",
    );
    refused(
        "ranks = 1\n[[links]]\nranks =",
        "line 3, column 8: the text ends too early; expected the rest of the TOML",
    );
    assert!(matches!(
        read("[[null,"),
        Err(TopologyError::Truncated { .. })
    ));

    refused(
        "ranks = x\n",
        "line 1, column 9: no TOML: string values must be quoted, expected literal string",
    );
    assert!(matches!(
        read("[".repeat(1000)),
        Err(TopologyError::TooDeep { .. })
    ));
    assert!(matches!(
        read("a = ".to_owned() + &"[".repeat(1000)),
        Err(TopologyError::TooDeep { .. })
    ));
}

#[test]
fn our_own_format_refuses_what_it_does_not_know() {
    refused(
        "ranks = 2\n[rdma]\nlatency = \"5us\"",
        "line 3: unknown key `latency` in rdma; expected preset, alpha, beta, overhead, mesh",
    );
    refused(
        "ranks = 2\nrank = 3",
        "line 2: unknown key `rank` in the file; expected ranks, gamma, backend, envs, hosts, rdma, tcp, links",
    );
    refused(
        "{\"ranks\": 2, \"links\": [\n{\"ranks\": [0, 1],\n\"bandwidth\": \"5GB/s\"}]}",
        "line 3: unknown key `bandwidth` in links[0]; expected ranks, transport, rails, alpha, beta",
    );
    refused(
        "links = []",
        "line 1: the file has no key `ranks`; expected the number of ranks",
    );
    refused(
        "ranks = 0",
        "the cluster has no ranks; expected one at least",
    );
    refused(
        "ranks = -1",
        "line 1: ranks: -1 is out of range; expected 1 to 1048576",
    );
    refused(
        "ranks = 99999999999999",
        "line 1: ranks: 99999999999999 is out of range; expected 1 to 1048576",
    );
    refused(
        "ranks = 2.0",
        "line 1: ranks: found a number; expected the number of ranks",
    );
    refused(
        "ranks = 2",
        "2 ranks have no link at all; expected one that both of its ends list",
    );
    refused(
        "ranks = 2\nhosts = [{}]",
        "line 2: 1 hosts for 2 ranks; expected one per rank, or none",
    );
}

#[test]
fn figures_are_positive_numbers_with_units() {
    let link =
        |key: &str, value: &str| format!("ranks = 2\n[[links]]\nranks = [0, 1]\n{key} = {value}");
    let time = "expected a time in quotes such as \"5us\", or { measured = \"5us\" }";
    for value in ["nan", "-inf", "5", "-5.0", "1e400"] {
        refused(
            &link("alpha", value),
            &format!("line 4: links[0].alpha: found a number; {time}"),
        );
    }
    refused(
        &link("alpha", "\"-5us\""),
        "line 4: links[0].alpha: `-5us` is no time: it is negative; \
         expected a number with ns, us, ms or s, such as 5us",
    );
    refused(
        &link("beta", "{ measured = \"nan\" }"),
        "line 4: links[0].beta: `nan` is no rate: it does not start with a number; expected bytes \
         per second in powers of 1000: B/s, kB/s, MB/s, GB/s or TB/s, such as 5GB/s",
    );
    refused(
        &link("beta", "{ guessed = \"5GB/s\" }"),
        "line 4: unknown key `guessed` in links[0].beta; expected measured",
    );
    refused(
        "ranks = 2\nrdma = { mesh = true, preset = \"infiniband\" }",
        "line 2: rdma.preset: unknown link `infiniband`; known: thunderbolt5-rdma, thunderbolt5-tcp, \
         10gbe, roce100g; or alpha=5us,bandwidth=5GB/s[,overhead=0.5us,reduce=20GB/s]",
    );
}

#[test]
fn links_of_our_own_format_join_two_ranks_once() {
    let links = |links: &str| format!("ranks = 3\nlinks = [{links}]");
    refused(
        &links("{ ranks = [0, 3] }"),
        "line 2: links[0].ranks[1]: 3 is out of range; expected 0 to 2",
    );
    refused(
        &links("{ ranks = [1, 1] }"),
        "line 2: links[0]: rank 1 has no link with itself; expected two ranks",
    );
    refused(
        &links("{ ranks = [0] }"),
        "line 2: links[0].ranks: found a list; expected two ranks, such as [0, 1]",
    );
    refused(
        &links("{ ranks = [0, 1] }, { from = 1, to = 0 }"),
        "line 2: links[1]: the way from 1 to 0 over rdma was described before; expected it once",
    );
    refused(
        &links("{ from = 1 }"),
        "line 2: links[0] has no key `to`; expected either ranks = [0, 1] for both directions, or from and to for one",
    );
    refused(
        &links("{ ranks = [0, 1], transport = \"udp\" }"),
        "line 2: links[0].transport: unknown transport `udp`; known: rdma, tcp",
    );
    refused(
        &links("{ ranks = [0, 1], rails = [[\"a\", \"b\"], [\"a\", \"c\"]] }"),
        "row 0, column 1: `a` stands twice; expected one name per cable",
    );
    refused(
        &links("{ ranks = [0, 1], rails = 0 }"),
        "line 2: links[0].rails: 0 is out of range; expected 1 to 4096",
    );
    refused(
        &links("{ from = 0, to = 1, rails = 1, devices = [\"a\"] }"),
        "line 2: links[0].rails: found a number; expected devices or rails, not both",
    );
    let twice = links("{ ranks = [0, 1] }, { ranks = [0, 1], transport = \"tcp\" }");
    assert_eq!(read(twice).unwrap().transports().count(), 2);
}
