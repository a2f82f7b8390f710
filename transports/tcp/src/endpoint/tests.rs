//! System calls, counted, and bytes that no endpoint would send.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use unisono_contract::{Field, Lease};

use super::*;

/// Two ends of one connection, the second of them raw.
fn raw_pair() -> (TcpEndpoint, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dialed = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    (end(0, dialed), accepted)
}

fn end(rank: Rank, stream: TcpStream) -> TcpEndpoint {
    stream.set_nonblocking(true).unwrap();
    stream.set_nodelay(true).unwrap();
    TcpEndpoint::new(rank, 2, 1, vec![Socket::new(stream)])
}

fn pair() -> (TcpEndpoint, TcpEndpoint) {
    let (zero, stream) = raw_pair();
    (zero, end(1, stream))
}

const PORT: Port = Port(0);

fn frame(sequence: u64, length: usize) -> Frame {
    Frame {
        length: length as u64,
        sequence,
        ..Frame::default()
    }
}

/// Polls until something completes or breaks; gives the number of polls too.
fn until_done(end: &mut TcpEndpoint) -> (usize, Result<Completions, LinkError>) {
    let mut done = Completions::new();
    for polls in 1..10_000_000 {
        match end.poll(&mut done) {
            Ok(()) if done.is_empty() => std::thread::yield_now(),
            Ok(()) => return (polls, Ok(done)),
            Err(error) => return (polls, Err(error)),
        }
    }
    panic!("nothing completed");
}

#[test]
fn a_small_message_costs_one_send_and_one_receive() {
    let (mut zero, mut one) = pair();
    let (out, into) = (Lease::new(vec![5u8; 64]), Lease::new(vec![0u8; 64]));
    let frame = frame(0, 64);
    zero.post_send(PORT, &frame, &[out.piece()], Token(1))
        .unwrap();
    one.post_recv(PORT, &frame, &[into.piece()], Token(2))
        .unwrap();
    let (polls, done) = until_done(&mut one);
    assert_eq!(done.unwrap()[0].token, Token(2));
    // Loopback delivers within the send, so the first poll finds it.
    assert_eq!((polls, one.calls()), (1, (0, 1)));
    let (polls, done) = until_done(&mut zero);
    assert_eq!(done.unwrap()[0].token, Token(1));
    assert_eq!((polls, zero.calls()), (1, (1, 0)));
}

#[test]
fn a_port_with_nothing_posted_costs_nothing() {
    let (mut zero, mut one) = pair();
    let (out, mut done) = (Lease::new(vec![5u8; 64]), Completions::new());
    zero.post_send(PORT, &frame(0, 64), &[out.piece()], Token(1))
        .unwrap();
    for _ in 0..10 {
        zero.poll(&mut done).unwrap();
        one.poll(&mut done).unwrap();
    }
    assert_eq!((zero.calls(), one.calls()), ((1, 0), (0, 0)));
}

/// What `end` tells of unclaimed messages, and how many descriptors announce more.
fn unclaimed(end: &mut TcpEndpoint) -> (Vec<Unclaimed>, usize) {
    let (mut set, mut found) = (WaitSet::new(), Vec::new());
    assert!(end.unclaimed(&mut set, &mut found), "it can tell");
    (found, set.descriptors().len())
}

#[test]
fn an_unclaimed_message_is_read_once_and_ends_no_sleep_a_second_time() {
    let (mut zero, mut one) = pair();
    assert_eq!(unclaimed(&mut one), (vec![], 1));
    let (out, into) = (Lease::new(vec![5u8; 64]), Lease::new(vec![0u8; 64]));
    zero.post_send(PORT, &frame(3, 64), &[out.piece()], Token(1))
        .unwrap();
    for _ in 0..3 {
        let told = Unclaimed {
            port: PORT,
            peer: 0,
            frame: frame(3, 64),
        };
        assert_eq!(unclaimed(&mut one), (vec![told], 0));
    }
    assert_eq!(one.calls(), (0, 1));
    one.post_recv(PORT, &frame(3, 64), &[into.piece()], Token(2))
        .unwrap();
    assert_eq!(unclaimed(&mut one), (vec![], 0), "it is expected");
    let (_, done) = until_done(&mut one);
    assert_eq!(done.unwrap()[0].token, Token(2));
    assert_eq!(one.calls(), (0, 1), "all of it was read with its header");
    assert_eq!(into.into_inner(), vec![5; 64]);
    assert_eq!(unclaimed(&mut one), (vec![], 1));
}

#[test]
fn half_a_header_is_waited_on_and_does_not_end_the_sleep_again() {
    let (mut zero, mut stream) = raw_pair();
    let mut header = [0; crate::wire::LONGEST];
    let bytes = crate::wire::encode(&frame(3, 0), 0, &mut header);
    for part in [&header[..20], &header[20..bytes]] {
        assert_eq!(unclaimed(&mut zero), (vec![], 1));
        stream.write_all(part).unwrap();
        let (found, more) = unclaimed(&mut zero);
        assert_eq!(
            (found.len(), more),
            if part.len() == 20 { (0, 1) } else { (1, 0) }
        );
    }
    // Twenty bytes were read and are not there to be read again.
    assert_eq!(zero.calls(), (0, 2));
}

#[test]
fn a_peer_that_leaves_is_no_message_and_the_receive_that_comes_hears_of_it() {
    let (mut zero, stream) = raw_pair();
    drop(stream);
    for _ in 0..3 {
        assert_eq!(unclaimed(&mut zero), (vec![], 0));
    }
    zero.post_recv(PORT, &frame(0, 0), &[], Token(2)).unwrap();
    let (_, done) = until_done(&mut zero);
    assert!(matches!(done.unwrap_err().cause, LinkCause::Closed));
}

#[test]
fn a_poll_without_news_costs_one_receive() {
    let (_zero, mut one) = pair();
    let (into, mut done) = (Lease::new(vec![0u8; 64]), Completions::new());
    one.post_recv(PORT, &frame(0, 64), &[into.piece()], Token(2))
        .unwrap();
    for _ in 0..10 {
        one.poll(&mut done).unwrap();
    }
    assert_eq!(one.calls(), (0, 10));
}

#[test]
fn small_messages_that_wait_go_with_one_send() {
    let (mut zero, mut stream) = raw_pair();
    let out = Lease::new(vec![5u8; 64]);
    let mut done = Completions::new();
    let mut posted = 0;
    // Until the kernel takes no more, and then as many as may wait.
    while zero
        .post_send(PORT, &frame(posted, 64), &[out.piece()], Token(posted))
        .is_ok()
    {
        posted += 1;
        zero.poll(&mut done).unwrap();
    }
    let waiting = posted as usize - done.len();
    assert_eq!(waiting, DEPTH);
    stream.set_nonblocking(true).unwrap();
    while stream.read(&mut [0; 4096]).is_ok() {}
    let before = zero.calls().0;
    zero.poll(&mut done).unwrap();
    assert_eq!(zero.calls().0, before + 1);
    assert_eq!(done.len(), posted as usize);
}

#[test]
fn small_messages_that_wait_come_with_one_receive() {
    let (mut zero, mut one) = pair();
    let (out, into) = (Lease::new(vec![5u8; 64]), Lease::new(vec![0u8; 64]));
    for sequence in 0..9 {
        zero.post_send(PORT, &frame(sequence, 64), &[out.piece()], Token(1))
            .unwrap();
        zero.poll(&mut Completions::new()).unwrap();
    }
    for sequence in 0..9 {
        one.post_recv(PORT, &frame(sequence, 64), &[into.piece()], Token(2))
            .unwrap();
    }
    let mut done = Completions::new();
    one.poll(&mut done).unwrap();
    assert_eq!((done.len(), one.calls()), (9, (0, 1)));
}

#[test]
fn a_large_message_is_read_to_its_place_after_its_header() {
    const LENGTH: usize = 60_000;
    let (mut zero, mut one) = pair();
    let (out, into) = (Lease::new(vec![5u8; LENGTH]), Lease::new(vec![0u8; LENGTH]));
    let frame = frame(0, LENGTH);
    zero.post_send(PORT, &frame, &[out.piece()], Token(1))
        .unwrap();
    one.post_recv(PORT, &frame, &[into.piece()], Token(2))
        .unwrap();
    let (_, done) = until_done(&mut one);
    done.unwrap();
    assert_eq!(zero.calls().0, 1);
    assert!(one.calls().1 <= 3, "{:?}", one.calls());
    drop(one);
    assert_eq!(into.into_inner(), vec![5; LENGTH]);
}

#[test]
fn bytes_that_are_no_header_break_the_port_and_nothing_else() {
    let corrupt: [&[u8]; 4] = [
        &[0xff; 64],
        &[0x41; 64],
        b"GET /index.html HTTP/1.1\r\nHost: localhost:80\r\nAccept: text/html\r\n\r\n",
        &[
            0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0,
        ],
    ];
    for bytes in corrupt {
        let (mut zero, mut stream) = raw_pair();
        let into = Lease::new(vec![9u8; 100]);
        zero.post_recv(PORT, &frame(0, 100), &[into.piece()], Token(1))
            .unwrap();
        stream.write_all(bytes).unwrap();
        let error = until_done(&mut zero).1.unwrap_err();
        let is_told = matches!(error.cause, LinkCause::Mismatch(_) | LinkCause::Io(_));
        assert!(is_told, "{error}");
        assert_eq!(into.into_inner(), vec![9; 100]);
        let again = zero.post_recv(PORT, &frame(1, 0), &[], Token(2));
        assert!(again.is_err(), "a broken port takes posts");
    }
}

#[test]
fn a_length_beyond_all_memory_is_a_mismatch() {
    let (mut zero, mut stream) = raw_pair();
    let mut header = [0; 64];
    header[..7].fill(0xff); // Fifty-six bits of length.
    stream.write_all(&header).unwrap();
    let into = Lease::new(vec![9u8; 100]);
    zero.post_recv(PORT, &frame(0, 100), &[into.piece()], Token(1))
        .unwrap();
    match until_done(&mut zero).1.unwrap_err().cause {
        LinkCause::Mismatch(mismatch) => {
            assert_eq!(mismatch.field, Field::Length);
            assert_eq!(mismatch.theirs, (1 << 56) - 1);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_stream_in_single_bytes_is_put_together() {
    let (mut zero, mut stream) = raw_pair();
    stream.set_nodelay(true).unwrap();
    let message = frame(0, 100);
    let mut bytes = [7; 192];
    let head = crate::wire::encode(&message, 13, &mut bytes);
    bytes[head + 100..].fill(0);
    let into = Lease::new(vec![0u8; 100]);
    zero.post_recv(PORT, &message, &[into.piece()], Token(1))
        .unwrap();
    let mut done = Completions::new();
    for byte in &bytes[..head + 100] {
        assert!(done.is_empty(), "complete before the last byte");
        stream.write_all(&[*byte]).unwrap();
        zero.poll(&mut done).unwrap();
    }
    assert_eq!(done.len(), 1);
    assert_eq!(into.into_inner(), vec![7; 100]);
}

#[test]
fn memory_that_goes_away_breaks_the_port() {
    let (mut zero, mut one) = pair();
    let out = Lease::new(vec![5u8; 16 << 20]);
    let frame = frame(0, 16 << 20);
    zero.post_send(PORT, &frame, &[out.piece()], Token(1))
        .unwrap();
    drop(out.into_inner());
    let error = until_done(&mut zero).1.unwrap_err();
    assert!(matches!(error.cause, LinkCause::Revoked(_)), "{error}");
    let into = Lease::new(vec![0u8; 16 << 20]);
    one.post_recv(PORT, &frame, &[into.piece()], Token(1))
        .unwrap();
    let error = until_done(&mut one).1.unwrap_err();
    assert!(matches!(error.cause, LinkCause::Closed), "{error}");
}
