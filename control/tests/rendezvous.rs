//! Ranks find each other on real sockets, whoever else is at the door.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{Dummy, common_error, coordinator, free_port, group, group_at, settings, start_all};
use unisono_control::{Check, Coordinator, JoinError, Network, Refusal, Settings};
use unisono_core::Rank;

fn port_of(coordinator: &Coordinator) -> u16 {
    match coordinator {
        Coordinator::Address { port, .. } => *port,
        Coordinator::File(_) => unreachable!("by address"),
    }
}

fn address_of(coordinator: &Coordinator) -> SocketAddr {
    ([127, 0, 0, 1], port_of(coordinator)).into()
}

/// Connects once somebody listens.
fn knock(address: SocketAddr) -> TcpStream {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpStream::connect(address) {
            // A port that nobody listens at can be given to its own caller.
            Ok(stream) if stream.local_addr().unwrap() != address => return stream,
            Err(error) if Instant::now() > until => panic!("{error}"),
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn groups_of_many_sizes_form() {
    for size in [1, 2, 3, 7] {
        let group = group(size);
        assert!(group.iter().all(|n| n.nonce() == group[0].nonce()));
    }
}

#[test]
fn a_group_of_four_is_ready_soon() {
    let best = (0..5).map(|_| {
        let began = Instant::now();
        let group = group(4);
        let took = began.elapsed();
        drop(group);
        took
    });
    // A hundred milliseconds are the aim; tests share the machine.
    assert!(best.min().unwrap() < Duration::from_millis(500));
}

#[test]
fn names_and_v6_are_places_to_meet() {
    group_at(3, || format!("localhost:{}", free_port()).parse().unwrap());
    if TcpListener::bind("[::1]:0").is_ok() {
        group_at(3, || format!("[::1]:{}", free_port()).parse().unwrap());
    }
}

#[test]
fn features_are_those_of_all_and_limits_the_smallest() {
    let place = coordinator();
    let all = (0..3).map(|rank| {
        let mut settings = settings(rank, 3, &place);
        settings.features = 0b1000 | 1 << rank;
        settings.limits = vec![100 - u64::from(rank), u64::from(rank) + 5];
        settings
    });
    for network in start_all(all.collect(), Dummy::default()) {
        let network = network.unwrap();
        assert_eq!(network.features(), 0b1000);
        assert_eq!(network.limits(), [98, 5]);
    }
}

#[test]
fn ranks_may_come_late_and_in_any_order() {
    let place = coordinator();
    let threads = [(2, 0), (0, 150), (1, 400)].map(|(rank, after)| {
        let settings = settings(rank, 3, &place);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(after));
            start_all(vec![settings], Dummy::default()).remove(0)
        })
    });
    let joined: Vec<Network> = threads.map(|t| t.join().unwrap().unwrap()).into();
    assert_eq!(joined[0].nonce(), joined[2].nonce());
}

#[test]
fn strangers_at_the_door_disturb_nobody() {
    let place = coordinator();
    let address = address_of(&place);
    let rank_0 = {
        let settings = settings(0, 3, &place);
        thread::spawn(move || start_all(vec![settings], Dummy::default()).remove(0))
    };
    // Connect and close.
    for _ in 0..10 {
        drop(knock(address));
    }
    // Wrong bytes, and a request of another protocol: closed, without an answer.
    for bytes in [
        &b"\xff\xfe\xfd\xfc"[..],
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    ] {
        let mut stream = knock(address);
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer); // Closed, or reset.
        assert_eq!(answer, b"");
    }
    // The right preamble, then a frame as long as it can be.
    let mut long = knock(address);
    let preamble = b"\x93unisono\x02\x00\x00\x00\x01\x00\x00\x00";
    long.write_all(preamble).unwrap();
    long.write_all(&[0xff; 8]).unwrap();
    let _ = long.read_to_end(&mut Vec::new());
    // Half a hello, and nothing at all, held open.
    let mut half = knock(address);
    half.write_all(&preamble[..12]).unwrap();
    let mut most = knock(address);
    most.write_all(preamble).unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| knock(address)).collect();

    let began = Instant::now();
    let others = (1..3).map(|rank| settings(rank, 3, &place)).collect();
    let others = start_all(others, Dummy::default());
    assert!(others.iter().all(Result::is_ok));
    assert!(rank_0.join().unwrap().is_ok());
    assert!(began.elapsed() < Duration::from_secs(3));
    // Whoever was still held has been closed with the door.
    for mut stream in silent.into_iter().chain([half, most]) {
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        assert!(!matches!(stream.read(&mut [0; 16]), Ok(1..)));
    }
}

#[test]
fn a_duplicate_rank_fails_everybody_alike() {
    let place = coordinator();
    let all = [0, 1, 1, 2].map(|rank| settings(rank, 4, &place));
    let text = common_error(&start_all(all.into(), Dummy::default()));
    assert!(text.starts_with("rank 1 came twice: from 127"), "{text}");
}

#[test]
fn a_missing_rank_fails_everybody_alike_at_the_deadline() {
    let place = coordinator();
    let mut all = [0, 1, 3].map(|rank| settings(rank, 5, &place));
    all.iter_mut()
        .for_each(|s| s.timeout = Duration::from_millis(1500));
    let began = Instant::now();
    let started = start_all(all.into(), Dummy::default());
    let text = common_error(&started);
    assert!(text.starts_with("rank 2, rank 4 did not come"), "{text}");
    assert!(matches!(
        started[0],
        Err(JoinError::Refused(Refusal::Missing { .. }))
    ));
    assert!(began.elapsed() < Duration::from_secs(6));
}

#[test]
fn a_rank_out_of_range_fails_everybody_alike() {
    let place = coordinator();
    let all = [0, 1, 7].map(|rank| settings(rank, 3, &place));
    let text = common_error(&start_all(all.into(), Dummy::default()));
    assert_eq!(text, "rank 7 does not exist in a group of 3 (ranks 0 to 2)");
}

#[test]
fn ranks_that_want_different_groups_fail_everybody_alike() {
    type Change = fn(&mut Settings);
    let differing: [(Change, &str); 4] = [
        (|s| s.size = 4, "size: 3 at rank 0, 4 at rank 2"),
        (
            |s| s.job = "b".into(),
            "job: \"\" at rank 0, \"b\" at rank 2",
        ),
        (
            |s| s.check = Check::Full,
            "check: default at rank 0, full at rank 2",
        ),
        (
            |s| s.channels = 3,
            "number of channels: 2 at rank 0, 3 at rank 2",
        ),
    ];
    for (change, expected) in differing {
        let place = coordinator();
        let mut all = [0, 1, 2].map(|rank| settings(rank, 3, &place));
        change(&mut all[2]);
        let text = common_error(&start_all(all.into(), Dummy::default()));
        assert_eq!(text, format!("ranks disagree on the {expected}"));
    }
}

#[test]
fn a_transport_that_fails_at_one_rank_fails_everybody_alike() {
    let deaf = |rank| Dummy {
        deaf: Some(rank),
        ..Dummy::default()
    };
    let stuck = |rank| Dummy {
        stuck: Some(rank),
        ..Dummy::default()
    };
    for rank in [0, 2] as [Rank; 2] {
        for transport in [deaf(rank), stuck(rank)] {
            let place = coordinator();
            let all = (0..3).map(|r| settings(r, 3, &place)).collect();
            let text = common_error(&start_all(all, transport));
            let start = format!("rank {rank}: dummy cannot connect this group");
            assert!(text.starts_with(&start), "{text}");
        }
    }
}

#[test]
fn a_transport_that_hangs_is_named_at_the_deadline() {
    let place = coordinator();
    let slow = Dummy {
        slow: Some(1),
        ..Dummy::default()
    };
    let mut all: Vec<Settings> = (0..3).map(|r| settings(r, 3, &place)).collect();
    all.iter_mut()
        .for_each(|s| s.timeout = Duration::from_millis(1500));
    let text = common_error(&start_all(all, slow));
    let unready = text.starts_with("rank 1 came, but did not connect");
    let own = text.starts_with("rank 1: connecting took too long");
    assert!(unready || own, "{text}");
}

#[test]
fn a_port_in_use_is_said_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place: Coordinator = listener.local_addr().unwrap().to_string().parse().unwrap();
    let started = start_all(vec![settings(0, 2, &place)], Dummy::default());
    assert!(matches!(started[0], Err(JoinError::PortInUse { .. })));
    let text = common_error(&started);
    assert!(text.contains(&place.to_string()), "{text}");
}

#[test]
fn an_absent_coordinator_is_named_at_the_deadline() {
    let place = coordinator();
    let mut alone = settings(1, 2, &place);
    alone.timeout = Duration::from_millis(700);
    let began = Instant::now();
    let text = common_error(&start_all(vec![alone], Dummy::default()));
    let start = format!("rank 1: coordinator {place} did not answer within 0.7 s: ");
    assert!(text.starts_with(&start), "{text}");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(3));
}

#[test]
fn somebody_else_at_the_coordinators_place_is_no_coordinator() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place: Coordinator = listener.local_addr().unwrap().to_string().parse().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let mut alone = settings(1, 2, &place);
    alone.timeout = Duration::from_millis(500);
    let text = common_error(&start_all(vec![alone], Dummy::default()));
    assert!(
        text.contains("does not speak as a rank") || text.contains("reset"),
        "{text}"
    );
}

#[test]
fn settings_that_cannot_be_right_are_refused_before_any_socket() {
    let place = coordinator();
    let mut none = settings(0, 0, &place);
    none.timeout = Duration::from_secs(3600);
    let mut long = settings(0, 2, &place);
    long.job = "j".repeat(257);
    let mut odd = settings(1, 2, &place);
    odd.iface = Some("nosuch0".into());
    for settings in [none, long, odd] {
        let began = Instant::now();
        assert!(start_all(vec![settings], Dummy::default())[0].is_err());
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn half_a_hello_is_held_for_seconds_only() {
    let place = coordinator();
    let address = address_of(&place);
    let mut alone = settings(0, 2, &place);
    alone.timeout = Duration::from_secs(7);
    let rank_0 = thread::spawn(move || start_all(vec![alone], Dummy::default()));
    let mut half = knock(address);
    half.write_all(b"\x93unisono\x01").unwrap();
    let patience = Some(Duration::from_millis(6500));
    half.set_read_timeout(patience).unwrap();
    let began = Instant::now();
    assert_eq!(half.read(&mut [0; 16]).unwrap(), 0, "closed");
    assert!(began.elapsed() > Duration::from_secs(4));
    let text = common_error(&rank_0.join().unwrap());
    assert_eq!(text, "rank 1 did not come within 7 s");
}
