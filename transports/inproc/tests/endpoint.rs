//! What is particular to this transport, beyond the contract: inline and offered
//! messages, the full ring, and what becomes of offers.

mod common;

use common::Driver;
use std::thread;
use unisono_contract::{
    Completions, Direction, Drain, Endpoint, Field, Frame, Lease, LinkCause, PhantomSpace, Piece,
    PostError, Revoked, Token, memory,
};
use unisono_inproc::{Mesh, connect};

use Direction::{Recv, Send};

const INLINE: usize = 256;

fn pair() -> (Driver, Driver) {
    let mut ends = connect(2).into_iter().map(Driver::new);
    (ends.next().unwrap(), ends.next().unwrap())
}

#[test]
fn up_to_256_bytes_complete_without_a_receiver_and_more_wait_for_one() {
    let (mut zero, mut one) = pair();
    let (to, from) = (
        zero.endpoint.port(1, 0).unwrap(),
        one.endpoint.port(0, 0).unwrap(),
    );
    let small = Lease::new(vec![1u8; INLINE]);
    let large = Lease::new(vec![2u8; INLINE + 1]);
    zero.send(to, 0, &[small.piece()]).unwrap();
    zero.send(to, 1, &[large.piece()]).unwrap();
    zero.send(to, 2, &[small.piece()]).unwrap();
    zero.expect(to, Send, 0);
    // The third waits for the second: completions come in order.
    let mut done = Completions::new();
    zero.endpoint.poll(&mut done).unwrap();
    assert_eq!(done, []);
    // The small one's memory is ours again, though it has not been received.
    drop(small);

    let landed = [INLINE, INLINE + 1, INLINE].map(|n| Lease::new(vec![0u8; n]));
    for (number, lease) in (0..).zip(&landed) {
        one.recv(from, number, &[lease.piece()]).unwrap();
    }
    (0..3).for_each(|number| one.expect(from, Recv, number));
    (1..3).for_each(|number| zero.expect(to, Send, number));
    let [a, b, c] = landed.map(Lease::into_inner);
    assert_eq!((a, b, c), (vec![1; 256], vec![2; 257], vec![1; 256]));
}

#[test]
fn depth_posts_always_fit_even_when_the_ring_is_full_of_unread_messages() {
    let (mut zero, mut one) = pair();
    let (to, from) = (
        zero.endpoint.port(1, 0).unwrap(),
        one.endpoint.port(0, 0).unwrap(),
    );
    let depth = zero.endpoint.limits().depth as u64;
    let byte = Lease::new(vec![7u8]);
    for number in 0..depth {
        zero.send(to, number, &[byte.piece()]).unwrap();
    }
    (0..depth).for_each(|number| zero.expect(to, Send, number));
    for number in depth..2 * depth {
        zero.send(to, number, &[byte.piece()]).unwrap();
    }
    let full = zero.send(to, 2 * depth, &[byte.piece()]);
    assert!(matches!(full, Err(PostError::Full)), "{full:?}");

    // The sender sleeps; the receiver, by making room, wakes it.
    let receiving = thread::spawn(move || {
        let landed = Lease::new(vec![0u8]);
        for number in 0..2 * depth {
            one.recv(from, number, &[landed.piece()]).unwrap();
            one.expect(from, Recv, number);
        }
    });
    (depth..2 * depth).for_each(|number| zero.expect(to, Send, number));
    receiving.join().unwrap();
}

#[test]
fn gather_lists_may_be_cut_differently_at_both_ends() {
    let (mut zero, mut one) = pair();
    let (to, from) = (
        zero.endpoint.port(1, 0).unwrap(),
        one.endpoint.port(0, 0).unwrap(),
    );
    for (number, length) in [(0u64, 200usize), (1, 100_000)] {
        let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let data = Lease::new(bytes.clone());
        let landed = Lease::new(vec![0u8; length]);
        let (source, target) = (data.piece(), landed.piece());
        let third = length / 3;
        // The middle one is empty.
        let thirds = [0..third, third..third, third..length].map(|range| source.slice(range));
        let eighths = (0..8).map(|i| target.slice(i * length / 8..(i + 1) * length / 8));
        let eighths: Vec<_> = eighths.collect();
        zero.send(to, number, &thirds).unwrap();
        one.recv(from, number, &eighths).unwrap();
        one.expect(from, Recv, number);
        zero.expect(to, Send, number);
        assert_eq!(landed.into_inner(), bytes);
    }
}

#[test]
fn a_mismatch_breaks_the_receiver_and_touches_no_memory() {
    for length in [8, 4096] {
        let (mut zero, mut one) = pair();
        let (to, from) = (
            zero.endpoint.port(1, 0).unwrap(),
            one.endpoint.port(0, 0).unwrap(),
        );
        let data = Lease::new(vec![1u8; length]);
        let landed = Lease::new(vec![0u8; length]);
        zero.send(to, 5, &[data.piece()]).unwrap();
        one.recv(from, 6, &[landed.piece()]).unwrap();
        let error = one.completions("a mismatch").unwrap_err();
        assert_eq!((error.port, error.peer), (from, 0));
        let LinkCause::Mismatch(mismatch) = error.cause else {
            panic!("{error}");
        };
        assert_eq!(mismatch.field, Field::Sequence);
        assert_eq!((mismatch.mine, mismatch.theirs), (6, 5));
        // Named once; then the port is quiet, and posts to it fail.
        let mut done = Completions::new();
        one.endpoint.poll(&mut done).unwrap();
        let again = one.send(from, 0, &[]);
        assert!(matches!(again, Err(PostError::Link(_))), "{again:?}");
        assert_eq!(landed.into_inner(), vec![0; length]);
    }
}

#[test]
fn what_a_peer_sent_before_it_left_is_received_then_closed() {
    let (mut zero, mut one) = pair();
    let to = zero.endpoint.port(1, 0).unwrap();
    let byte = Lease::new(vec![7u8]);
    let large = Lease::new(vec![8u8; 4096]);
    zero.send(to, 0, &[byte.piece()]).unwrap();
    zero.send(to, 1, &[large.piece()]).unwrap();
    drop(zero);
    // The port is opened only now, and even a failed send costs no message.
    let from = one.endpoint.port(0, 0).unwrap();
    let sent = one.send(from, 0, &[]);
    assert!(
        matches!(&sent, Err(PostError::Link(e)) if matches!(e.cause, LinkCause::Closed)),
        "{sent:?}"
    );
    let landed = Lease::new(vec![0u8]);
    one.recv(from, 0, &[landed.piece()]).unwrap();
    one.expect(from, Recv, 0);
    assert_eq!(landed.into_inner(), [7]);
    // The offer was not sent completely, and left with its owner.
    let landed = Lease::new(vec![0u8; 4096]);
    one.recv(from, 1, &[landed.piece()]).unwrap();
    let error = one.completions("the close").unwrap_err();
    assert!(matches!(error.cause, LinkCause::Closed), "{error}");
    assert_eq!(landed.into_inner(), vec![0; 4096]);
}

#[test]
fn a_peer_that_never_came_is_closed_too() {
    let mesh = Mesh::new(3);
    let mut zero = Driver::new(mesh.endpoint(0));
    let early = zero.endpoint.port(1, 0).unwrap();
    drop(mesh.endpoint(1));
    let late = zero.endpoint.port(1, 1).unwrap();
    for port in [early, late] {
        zero.recv(port, 0, &[]).unwrap();
        let error = zero.completions("the close").unwrap_err();
        assert!(matches!(error.cause, LinkCause::Closed), "{error}");
    }
    // Rank 2 is merely late.
    let port = zero.endpoint.port(2, 0).unwrap();
    zero.send(port, 0, &[]).unwrap();
    zero.expect(port, Send, 0);
}

#[test]
fn quiesce_takes_offers_back_and_closes_their_ports_only() {
    let (mut zero, mut one) = pair();
    let ports: Vec<_> = (0..2).map(|c| zero.endpoint.port(1, c).unwrap()).collect();
    let theirs: Vec<_> = (0..2).map(|c| one.endpoint.port(0, c).unwrap()).collect();
    let byte = Lease::new(vec![3u8]);
    let mut large = vec![5u8; 4096];
    zero.send(ports[0], 0, &[byte.piece()]).unwrap();
    memory::lend(&mut large, |offered| {
        zero.send(ports[0], 1, &[offered]).unwrap();
        assert_eq!(zero.endpoint.quiesce(), Drain::Quiet);
    });
    // What had finished is still told.
    zero.expect(ports[0], Send, 0);
    let closed = zero.send(ports[0], 2, &[]);
    assert!(matches!(closed, Err(PostError::Link(_))), "{closed:?}");

    let landed = Lease::new(vec![0u8; 4097]);
    let (first, second) = (landed.piece().slice(0..1), landed.piece().slice(1..4097));
    one.recv(theirs[0], 0, &[first]).unwrap();
    one.expect(theirs[0], Recv, 0);
    one.recv(theirs[0], 1, &[second]).unwrap();
    let error = one.completions("the close").unwrap_err();
    assert!(matches!(error.cause, LinkCause::Closed), "{error}");

    zero.send(ports[1], 0, &[byte.piece()]).unwrap();
    one.recv(theirs[1], 0, &[first]).unwrap();
    one.expect(theirs[1], Recv, 0);
    zero.expect(ports[1], Send, 0);
}

#[test]
fn a_lease_that_ends_early_is_an_error_and_not_an_access() {
    let (mut zero, mut one) = pair();
    let to = zero.endpoint.port(1, 0).unwrap();
    let from = one.endpoint.port(0, 0).unwrap();
    let frame = Frame {
        length: 4096,
        ..Frame::default()
    };
    let mut theirs = vec![1u8; 4096];
    memory::lend(&mut theirs, |offered| {
        let post = zero.endpoint.post_send(to, &frame, &[offered], Token(0));
        post.unwrap();
    });
    let landed = Lease::new(vec![0u8; 4096]);
    let post = one
        .endpoint
        .post_recv(from, &frame, &[landed.piece()], Token(0));
    post.unwrap();
    let error = one.completions("the refusal").unwrap_err();
    assert!(matches!(error.cause, LinkCause::Closed), "{error}");
    let error = zero.completions("the refusal").unwrap_err();
    assert!(matches!(error.cause, LinkCause::Revoked(_)), "{error}");
}

/// Both ranks exchange 4 KiB, and what rank 0 offers cannot be read; what each of them hears.
fn exchange_of_nothing(offer: impl FnOnce(&mut dyn FnMut(Piece))) -> [LinkCause; 2] {
    let (mut zero, mut one) = pair();
    let to = zero.endpoint.port(1, 0).unwrap();
    let from = one.endpoint.port(0, 0).unwrap();
    let leases = [0u8, 1, 2].map(|n| Lease::new(vec![n; 4096]));
    zero.recv(to, 0, &[leases[0].piece()]).unwrap();
    offer(&mut |piece| zero.send(to, 0, &[piece]).unwrap());
    one.send(from, 0, &[leases[1].piece()]).unwrap();
    one.recv(from, 0, &[leases[2].piece()]).unwrap();
    // The peer is first to find out, and takes back what it had offered.
    let theirs = one.completions("the refusal").unwrap_err();
    let mine = zero.completions("the refusal").unwrap_err();
    [mine.cause, theirs.cause]
}

#[test]
fn whose_lease_ended_hears_of_that_and_not_of_its_peers_leaving() {
    let causes = exchange_of_nothing(|post| memory::lend(&mut vec![9u8; 4096], post));
    assert!(
        matches!(
            causes,
            [LinkCause::Revoked(Revoked::Ended), LinkCause::Closed]
        ),
        "{causes:?}"
    );
}

#[test]
fn whose_memory_is_phantom_hears_of_that() {
    let space = PhantomSpace::new();
    let causes = exchange_of_nothing(|post| post(space.alloc(4096).unwrap()));
    assert!(
        matches!(
            causes,
            [LinkCause::Revoked(Revoked::Phantom), LinkCause::Closed]
        ),
        "{causes:?}"
    );
}

#[test]
fn a_rank_is_taken_once() {
    let mesh = Mesh::new(2);
    let _held = mesh.endpoint(1);
    let twice = std::panic::catch_unwind(|| mesh.endpoint(1).rank());
    assert!(twice.is_err());
    let outside = std::panic::catch_unwind(|| mesh.endpoint(2).rank());
    assert!(outside.is_err());
}
