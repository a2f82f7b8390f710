//! Who comes to the data port, and what becomes of it.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use unisono_contract::{ConnectError, Lease, Token, Transport};
use unisono_tcp::Tcp;

/// The address in a card that this crate made for an IPv4 loopback listener.
fn address(card: &[u8]) -> SocketAddr {
    let port = u16::from_le_bytes([card[6], card[7]]);
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn locals(size: u32) -> Vec<unisono_contract::Local> {
    (0..size)
        .map(|rank| common::local(rank, size, None))
        .collect()
}

#[test]
fn strangers_at_the_port_are_ignored() {
    let mut held = Vec::new();
    let ends = common::try_connect(&locals(3), |cards| {
        for card in &*cards {
            let dial = || TcpStream::connect(address(card)).unwrap();
            drop(dial());
            let mut http = dial();
            http.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                .unwrap();
            let mut half = dial();
            half.write_all(b"unisono\n half a hello").unwrap();
            let mut wrong = dial();
            let mut hello = [0; 32];
            hello[..8].copy_from_slice(b"unisono\n");
            hello[26] = 1; // The right version, but of another group.
            wrong.write_all(&hello).unwrap();
            held.extend([http, half, wrong, dial()]);
        }
    });
    let mut ends: Vec<_> = ends
        .into_iter()
        .map(|end| common::Driver::new(end.unwrap()))
        .collect();
    // Those who were held are gone, and the group works.
    let byte = Lease::new(vec![7u8; 8]);
    let frame = common::frame(1, &[byte.piece()]);
    let port = ends[2].endpoint.port(0, 1).unwrap();
    ends[2]
        .endpoint
        .post_send(port, &frame, &[byte.piece()], Token(1))
        .unwrap();
    let landed = Lease::new(vec![0u8; 8]);
    let port = ends[0].endpoint.port(2, 1).unwrap();
    ends[0]
        .endpoint
        .post_recv(port, &frame, &[landed.piece()], Token(2))
        .unwrap();
    ends[0].finish(1).unwrap();
    assert_eq!(landed.into_inner(), [7; 8]);
    for mut stranger in held {
        let timeout = Some(Duration::from_secs(5));
        stranger.set_read_timeout(timeout).unwrap();
        let heard = stranger.read(&mut [0; 8]);
        let is_refused = match &heard {
            Ok(bytes) => *bytes == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(is_refused, "a stranger was answered: {heard:?}");
    }
}

#[test]
fn a_group_of_another_nonce_is_not_joined() {
    let mut locals = locals(2);
    for local in &mut locals {
        local.deadline = Duration::from_millis(900);
    }
    locals[1].nonce += 1;
    let ends = common::try_connect(&locals, |_| {});
    match ends[0].as_ref().map(|_| ()) {
        Err(ConnectError::Timeout { rank: 1, .. }) => {}
        other => panic!("rank 0: {other:?}"),
    }
    match ends[1].as_ref().map(|_| ()) {
        Err(ConnectError::Io { what, .. }) => assert_eq!(what, "connect to rank 0"),
        Err(ConnectError::Timeout { rank: 0, .. }) => {}
        other => panic!("rank 1: {other:?}"),
    }
}

#[test]
fn a_peer_that_does_not_come_is_named_at_the_deadline() {
    let mut local = common::local(0, 3, None);
    local.deadline = Duration::from_millis(100);
    let began = Instant::now();
    let result = common::runtime().block_on(async {
        let door = Tcp::new().listen(&local).await?;
        let cards = vec![door.card(); 3];
        door.connect(&cards).await
    });
    let error = result.map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "rank 1 did not connect within 0.1 s");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_card_that_cannot_be_read_names_its_rank() {
    let result = common::runtime().block_on(async {
        let door = Tcp::new().listen(&common::local(0, 2, None)).await?;
        let cards = [door.card(), b"something else".to_vec()];
        door.connect(&cards).await
    });
    let error = result.map(|_| ()).unwrap_err();
    assert!(
        matches!(error, ConnectError::Card { rank: 1, .. }),
        "{error}"
    );
}

#[test]
fn an_address_that_peers_cannot_reach_is_refused() {
    let local = common::local(0, 2, "0.0.0.0:0".parse().ok());
    let result = common::runtime().block_on(Tcp::new().listen(&local));
    assert!(matches!(
        result.map(|_| ()),
        Err(ConnectError::Unsupported { .. })
    ));
}

#[test]
fn a_group_of_one_needs_nobody() {
    let mut ends = common::connect(1);
    assert_eq!(ends[0].port(0, 0), None);
}

#[test]
fn channels_beyond_those_agreed_do_not_exist() {
    let (mut zero, _one) = common::pair();
    assert!(zero.port(1, 1).is_some());
    assert_eq!(zero.port(1, 2), None);
    assert_eq!(zero.port(0, 0), None);
    assert_eq!(zero.port(2, 0), None);
}

#[test]
fn a_link_local_address_works_with_its_scope() {
    let found = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let address = found.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (octets, index) = (fields.next()?, fields.next()?);
        let ip = std::net::Ipv6Addr::from(u128::from_str_radix(octets, 16).ok()?);
        let scope = u32::from_str_radix(index, 16).ok()?;
        ip.is_unicast_link_local()
            .then(|| SocketAddr::V6(std::net::SocketAddrV6::new(ip, 0, 0, scope)))
    });
    let Some(address) = address else {
        eprintln!("SKIPPED: no link-local address here");
        return;
    };
    let mut ends = common::connect_at(2, Some(address));
    assert!(ends[1].port(0, 0).is_some());
}
