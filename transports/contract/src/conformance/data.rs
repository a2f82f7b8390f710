//! Bytes arrive: all of them, in order, where they belong.

use std::collections::VecDeque;

use super::{
    Make,
    pilot::{Slab, frame, run},
};
use crate::memory::Piece;

/// Messages arrive in the order they were sent. All have the same frame, so only their bytes tell.
pub fn order(make: Make<'_>) {
    const MESSAGES: u64 = 500;
    const LENGTH: usize = 48;
    run("order", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        let frame = frame(0, 1, LENGTH);
        let mut flying = VecDeque::new();
        for message in 0..MESSAGES {
            if pilot.rank == 0 {
                let slab = Slab::filled(message, LENGTH);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                flying.push_back((message, token, slab));
            } else {
                let slab = Slab::new(LENGTH);
                let token = pilot.recv(port, &frame, &[slab.piece()]);
                flying.push_back((message, token, slab));
            }
            // Sometimes everything in flight is waited for, so windows of all widths occur.
            let keep = if message % 37 == 0 { 0 } else { 8 };
            while flying.len() > keep || (message + 1 == MESSAGES && !flying.is_empty()) {
                let Some((message, token, slab)) = flying.pop_front() else {
                    break;
                };
                pilot.finish(token, "the next message in order");
                slab.assert_holds(message, &format!("message {message}"));
            }
        }
    });
}

/// Messages of every kind of size arrive whole, the empty one included, and nothing beside them is
/// written.
pub fn sizes(make: Make<'_>) {
    const SIZES: &[usize] = &[
        0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 0, 127, 1000, 4095, 4096, 4097, 16_384, 65_535,
        65_536, 65_537, 262_147, 0, 1_048_579, 5,
    ];
    run("sizes", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        for (length, message) in SIZES.iter().copied().zip(0..) {
            let frame = frame(7, message, length);
            let what = format!("a message of {length} bytes");
            let seed = u64::from(message) + 1000;
            if pilot.rank == 0 {
                let slab = Slab::filled(seed, length);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                pilot.finish(token, &what);
                slab.assert_holds(seed, "the sender's memory");
            } else {
                let slab = Slab::new(length);
                let token = pilot.recv(port, &frame, &[slab.piece()]);
                pilot.finish(token, &what);
                slab.assert_holds(seed, &what);
            }
        }
    });
}

/// Gather lists are cut differently on both sides, up to the limit, with empty pieces among them.
pub fn gather_lists(make: Make<'_>) {
    const LENGTH: usize = 10_007;
    run("gather_lists", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        let most = pilot.endpoint().limits().pieces.min(16);
        let mut message = 0;
        for here in 1..=most {
            for there in 1..=most {
                let frame = frame(0, message, LENGTH);
                let what = format!("{here} pieces into {there}");
                let seed = u64::from(message);
                if pilot.rank == 0 {
                    let slab = Slab::filled(seed, LENGTH);
                    let token = pilot.send(port, &frame, &cut(slab.piece(), here, 3));
                    pilot.finish(token, &what);
                } else {
                    let slab = Slab::new(LENGTH);
                    let token = pilot.recv(port, &frame, &cut(slab.piece(), there, 11));
                    pilot.finish(token, &what);
                    slab.assert_holds(seed, &what);
                }
                message += 1;
            }
        }
        // Zero bytes in no piece at all, and in empty ones.
        for list in [&[][..], &[Piece::EMPTY][..], &[Piece::EMPTY; 2][..]] {
            let frame = frame(0, message, 0);
            let token = if pilot.rank == 0 {
                pilot.send(port, &frame, list)
            } else {
                pilot.recv(port, &frame, list)
            };
            pilot.finish(token, "a message of no pieces");
            message += 1;
        }
    });
}

/// `piece` in `parts` of uneven length; the second of four or more is empty.
fn cut(piece: Piece, parts: usize, skew: usize) -> Vec<Piece> {
    let mut rest = piece;
    let mut list = Vec::with_capacity(parts);
    for part in 0..parts {
        let length = match parts - part {
            1 => rest.len(),
            _ if parts > 3 && part == 1 => 0,
            left => (rest.len() / left * (1 + part % 2)).min(rest.len()) / skew * skew,
        };
        list.push(rest.slice(0..length));
        rest = rest.slice(length..rest.len());
    }
    list
}

/// Both ranks send before they receive: neither waits for the other's receive to post its own.
pub fn both_directions(make: Make<'_>) {
    const LENGTH: usize = 300_000;
    run("both_directions", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        let (mine, theirs) = (u64::from(pilot.rank), u64::from(1 - pilot.rank));
        for round in 0..10_u64 {
            let frame = frame(round, 0, LENGTH);
            let out = Slab::filled(mine * 100 + round, LENGTH);
            let into = Slab::new(LENGTH);
            let sent = pilot.send(port, &frame, &[out.piece()]);
            let received = pilot.recv(port, &frame, &[into.piece()]);
            pilot.finish(sent, "a send crossing another");
            pilot.finish(received, "a receive crossing another");
            into.assert_holds(theirs * 100 + round, "a crossing message");
        }
    });
}
