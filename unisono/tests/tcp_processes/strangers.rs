//! Strangers at every port that a group listens at while it forms: nobody notices.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use unisono::{Group, Op};

use crate::processes::{Start, free_port, say};

pub(crate) fn rank() {
    match Group::from_env() {
        Ok(g) => {
            let mut x = vec![g.rank() + 1; 50_000];
            g.all_reduce(&mut x, Op::Sum).unwrap();
            assert_eq!(x, vec![6; 50_000]);
            g.close().unwrap();
            say("right");
        }
        Err(error) => say(error),
    }
}

/// Ports at which a process listens on 127.0.0.1 or everywhere.
fn ports(process: u32) -> BTreeSet<u16> {
    let links = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = links
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok());
    let links: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let table = fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let is_here = links.contains(&format!("socket:[{}]", fields[9]));
        let port = fields[1].split_once(':')?.1;
        (fields[3] == "0A" && is_here).then(|| u16::from_str_radix(port, 16).unwrap())
    });
    rows.collect()
}

/// Comes and goes, and holds the door with all sorts of beginnings.
fn annoy(port: u16) -> Vec<TcpStream> {
    let dial = || TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    (0..20).for_each(|_| drop(dial()));
    let of_another_group = {
        let mut hello = [0; 32];
        hello[..8].copy_from_slice(b"unisono\n");
        hello
    };
    let beginnings: [&[u8]; 9] = [
        b"",
        b"\xff\xfe\xfd\xfc",
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        // Half a hello of the control plane, a whole one without what follows, and one with a frame that is too long.
        b"\x93uniso",
        b"\x93unisono\x02\x00\x00\x00\x02\x00\x00\x00",
        b"\x93unisono\x02\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff\xff",
        // The same of the data plane.
        b"unisono\n half",
        &of_another_group,
        &[0; 1000],
    ];
    beginnings
        .map(|bytes| {
            let mut stream = dial();
            // It may be closed already.
            let _ = stream.write_all(bytes);
            stream
        })
        .into()
}

/// Whether the group formed; `None` when somebody else had taken the port of the rendezvous.
fn forms_among_strangers() -> Option<()> {
    let place = format!("127.0.0.1:{}", free_port());
    let start = Start::new("stranger", "");
    let mut first = [start.rank(0, 3, &place), start.rank(1, 3, &place)];
    // Rank 0 listens for ranks, and for data only when all have come; rank 1 listens for data.
    let until = Instant::now() + Duration::from_secs(20);
    let wanted = [1, 1];
    let ports = loop {
        let found = first.each_ref().map(|rank| ports(rank.process.id()));
        if found.each_ref().map(BTreeSet::len) == wanted {
            break found;
        }
        if let Some(status) = first[0].process.try_wait().unwrap() {
            let said = first[0].next().unwrap_or_default();
            assert!(said.contains("in use"), "{status}: {said}");
            return None;
        }
        assert!(Instant::now() < until, "they listen at {found:?}");
        thread::sleep(Duration::from_millis(10));
    };
    let held: Vec<TcpStream> = ports
        .iter()
        .flatten()
        .flat_map(|port| annoy(*port))
        .collect();
    let began = Instant::now();
    let last = start.rank(2, 3, &place);
    for rank in first.into_iter().chain([last]) {
        assert_eq!(rank.done(), ["right"]);
    }
    // Sooner than any of them is sent away for saying nothing.
    assert!(began.elapsed() < Duration::from_secs(5));
    for mut stream in held {
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard); // Closed, or reset.
        assert_eq!(heard, b"");
    }
    Some(())
}

#[test]
fn a_group_forms_among_strangers_at_all_its_ports() {
    let formed = (0..5).find_map(|_| forms_among_strangers());
    formed.expect("a free port");
}
