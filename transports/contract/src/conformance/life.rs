//! Ends: of a peer, of an operation, of an endpoint.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    Make,
    pilot::{Pilot, Slab, assert_closed, frame, run},
};
use crate::{
    endpoint::{Direction, Port, PostError, Token},
    frame::Frame,
    memory::Piece,
};

/// A peer sends, sees its sends complete, and leaves: all of it is received, then the port is
/// closed. What it had not sent completely arrives whole or not at all.
pub fn close_in_flight(make: Make<'_>) {
    const MESSAGES: u32 = 40;
    const LENGTH: usize = 5000;
    run("close_in_flight", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        if pilot.rank == 0 {
            let slab = Slab::filled(3, LENGTH);
            let sent: Vec<_> = (0..MESSAGES)
                .map(|message| pilot.send(port, &frame(0, message, LENGTH), &[slab.piece()]))
                .collect();
            pilot.finish_all(&sent, "sends before leaving");
            // One more, not waited for. Its memory goes with `unsent`, right after the endpoint.
            let unsent = Slab::filled(4, LENGTH);
            pilot.send(port, &frame(0, MESSAGES, LENGTH), &[unsent.piece()]);
            pilot.leave();
        } else {
            for message in 0..MESSAGES {
                let slab = Slab::new(LENGTH);
                let token = pilot.recv(port, &frame(0, message, LENGTH), &[slab.piece()]);
                let what = format!("message {message}, sent before the peer left");
                pilot.finish(token, &what);
                slab.assert_holds(3, &what);
            }
            let slab = Slab::new(LENGTH);
            let last = attempt(
                pilot,
                Direction::Recv,
                port,
                &frame(0, MESSAGES, LENGTH),
                slab.piece(),
            );
            match last {
                // In full it may arrive: the transport had it all.
                Ok(()) => slab.assert_holds(4, "a message its sender did not wait for"),
                Err(error) => assert_closed(&error, port, 0),
            }
            let beyond = frame(0, MESSAGES + 1, LENGTH);
            match attempt(pilot, Direction::Recv, port, &beyond, slab.piece()) {
                Ok(()) => panic!("received a message nobody sent"),
                Err(error) => assert_closed(&error, port, 0),
            }
        }
    });
}

/// Posts and waits for the end of it, whether the post or a poll finds the port broken.
fn attempt(
    pilot: &mut Pilot<'_>,
    direction: Direction,
    port: Port,
    frame: &Frame,
    piece: Piece,
) -> Result<(), crate::LinkError> {
    match pilot.offer(direction, port, frame, &[piece]) {
        Ok(token) => pilot.outcome(token, "the last message or a closed port"),
        Err(PostError::Link(error)) => Err(error),
        Err(PostError::Full) => panic!("full with nothing outstanding"),
    }
}

/// A peer that leaves when all is done disturbs nobody: an idle port is no error.
pub fn quiet_departure(make: Make<'_>) {
    let gone = AtomicBool::new(false);
    run("quiet_departure", make, 3, &|pilot| {
        if pilot.rank == 0 {
            for peer in [1, 2] {
                exchange(pilot, peer, 0);
            }
            pilot.leave();
            gone.store(true, Ordering::Release);
            return;
        }
        exchange(pilot, 0, 0);
        pilot.until("rank 0 to leave", |_| gone.load(Ordering::Acquire));
        for sequence in 1..20 {
            exchange(pilot, 3 - pilot.rank, sequence); // Panics on any error.
        }
    });
}

/// One message each way.
fn exchange(pilot: &mut Pilot<'_>, peer: u32, sequence: u64) {
    const LENGTH: usize = 500;
    let port = pilot.port(peer, 0);
    let frame = frame(sequence, 0, LENGTH);
    let (out, into) = (Slab::filled(sequence, LENGTH), Slab::new(LENGTH));
    let tokens: [Token; 2] = [
        pilot.recv(port, &frame, &[into.piece()]),
        pilot.send(port, &frame, &[out.piece()]),
    ];
    pilot.finish_all(&tokens, &format!("an exchange with rank {peer}"));
    into.assert_holds(sequence, "an exchange");
}

/// A peer that goes away with something posted to it is named, once; ports to others go on.
pub fn peer_death(make: Make<'_>) {
    const LENGTH: usize = 200_000;
    run("peer_death", make, 3, &|pilot| {
        if pilot.rank == 0 {
            for peer in [1, 2] {
                pilot.port(peer, 0);
            }
            pilot.leave();
            return;
        }
        let port = pilot.port(0, 0);
        let into = Slab::new(LENGTH);
        let found = match pilot.offer(Direction::Recv, port, &frame(0, 0, LENGTH), &[into.piece()])
        {
            Ok(_) => pilot.failure("the death of rank 0"),
            Err(PostError::Link(error)) => error,
            Err(PostError::Full) => panic!("full with nothing outstanding"),
        };
        assert_closed(&found, port, 0);
        let again = pilot.offer(Direction::Send, port, &frame(0, 0, LENGTH), &[into.piece()]);
        assert!(again.is_err(), "a port to a dead peer takes posts");
        into.assert_untouched("a receive from a dead peer");
        for sequence in 0..20 {
            exchange(pilot, 3 - pilot.rank, sequence); // Panics if the death were told again.
        }
    });
}

/// After a quiet `quiesce` posted memory is neither written nor read, and a port that had nothing
/// posted still works.
pub fn quiesce(make: Make<'_>) {
    const LENGTH: usize = 100_000;
    let quiet = AtomicBool::new(false);
    run("quiesce", make, 2, &|pilot| {
        let peer = 1 - pilot.rank;
        let (port, other) = (pilot.port(peer, 0), pilot.port(peer, 1));
        let frame = frame(0, 0, LENGTH);
        if pilot.rank == 0 {
            let (out, into) = (Slab::filled(1, LENGTH), Slab::new(LENGTH));
            pilot.recv(port, &frame, &[into.piece()]);
            pilot.send(port, &frame, &[out.piece()]);
            pilot.calm();
            out.fill(2); // Ours again: the peer must not get this.
            quiet.store(true, Ordering::Release);
            pilot.poll_for(Duration::from_millis(30));
            into.assert_untouched("a receive withdrawn before the peer sent");
        } else {
            pilot.until("the peer to quiesce", |_| quiet.load(Ordering::Acquire));
            let (out, into) = (Slab::filled(3, LENGTH), Slab::new(LENGTH));
            // Closed, or sent in full before: both are an answer. Never what came after.
            match attempt(pilot, Direction::Recv, port, &frame, into.piece()) {
                Ok(()) => into.assert_holds(1, "a send finished by quiesce"),
                Err(error) => assert_closed(&error, port, 0),
            }
            let _ = pilot.offer(Direction::Send, port, &frame, &[out.piece()]);
            pilot.poll_for(Duration::from_millis(10));
        }
        let small = super::pilot::frame(5, 0, 10);
        let (out, into) = (Slab::filled(9, 10), Slab::new(10));
        let tokens = [
            pilot.recv(other, &small, &[into.piece()]),
            pilot.send(other, &small, &[out.piece()]),
        ];
        pilot.finish_all(&tokens, "a port that had nothing posted");
        into.assert_holds(9, "a port that had nothing posted");
    });
}

/// Worlds come and go, some with messages in flight, and descriptors do not pile up.
pub fn release(make: Make<'_>) {
    const ROUNDS: u64 = 96;
    /// Descriptors that other tests of the process may have opened meanwhile.
    const SLACK: usize = 64;
    let before = descriptors();
    for round in 0..ROUNDS {
        run("release", make, 2, &|pilot| {
            exchange(pilot, 1 - pilot.rank, round);
            let port = pilot.port(1 - pilot.rank, 1);
            let slab = Slab::filled(0, 1000);
            let frame = frame(round, 0, 1000);
            // In flight when the endpoint and then the memory go.
            let _ = pilot.offer(Direction::Send, port, &frame, &[slab.piece()]);
            pilot.leave();
        });
    }
    if let (Some(before), Some(after)) = (before, descriptors()) {
        assert!(
            after < before + SLACK,
            "release: {before} descriptors before, {after} after {ROUNDS} worlds"
        );
    }
}

/// Open descriptors of this process, where the system tells.
fn descriptors() -> Option<usize> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count())
}
