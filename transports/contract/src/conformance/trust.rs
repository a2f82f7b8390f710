//! Nothing is believed that was not compared.

use super::{
    Make,
    pilot::{Slab, frame, run},
};
use crate::{
    endpoint::{Direction, LinkCause},
    frame::{Field, Frame, Opening},
};

/// Limits are usable, and asking for a port twice gives the same one.
pub fn limits(make: Make<'_>) {
    run("limits", make, 3, &|pilot| {
        let limits = pilot.endpoint().limits().clone();
        assert!(limits.pieces >= 2, "two pieces at least: {limits:?}");
        assert!(limits.depth >= 1, "one post at least: {limits:?}");
        assert!(!limits.name.is_empty(), "a name for people");
        let peers: Vec<_> = (0..3).filter(|peer| *peer != pilot.rank).collect();
        let mut ports = Vec::new();
        for (peer, channel) in peers.iter().flat_map(|peer| [(*peer, 0), (*peer, 1)]) {
            let port = pilot.port(peer, channel);
            assert_eq!(port, pilot.port(peer, channel), "the same port each time");
            assert!(
                !ports.contains(&port),
                "every peer and channel its own port"
            );
            ports.push(port);
        }
    });
}

/// A frame that disagrees in any field is reported to the receiver with both values, its memory is
/// not touched, and other ports go on.
pub fn mismatch(make: Make<'_>) {
    const LENGTH: usize = 4096;
    let base = frame(10, 0, LENGTH);
    let opening = base.opening.unwrap_or_default();
    let with = |opening: Opening| Frame {
        opening: Some(opening),
        check: opening.check(),
        ..base
    };
    let plain = Frame {
        opening: None,
        message: 3,
        ..base
    };
    let cases = [
        (
            Field::Collective,
            base,
            with(Opening {
                collective: 9,
                ..opening
            }),
        ),
        (
            Field::Dtype,
            base,
            with(Opening {
                dtype: 9,
                ..opening
            }),
        ),
        (Field::Op, base, with(Opening { op: 900, ..opening })),
        (
            Field::Root,
            base,
            with(Opening {
                root: 90_000,
                ..opening
            }),
        ),
        (
            Field::Count,
            base,
            with(Opening {
                count: 1 << 50,
                ..opening
            }),
        ),
        (
            Field::Plan,
            base,
            with(Opening {
                plan: 1 << 60,
                ..opening
            }),
        ),
        (
            Field::Sequence,
            base,
            Frame {
                sequence: 1 << 40,
                ..base
            },
        ),
        (
            Field::Message,
            plain,
            Frame {
                message: 4,
                ..plain
            },
        ),
        (
            Field::Group,
            plain,
            Frame {
                group: 1 << 20,
                ..plain
            },
        ),
        (Field::Epoch, plain, Frame { epoch: 1, ..plain }),
        (
            Field::Check,
            plain,
            Frame {
                check: !plain.check,
                ..plain
            },
        ),
        (Field::Length, base, Frame { length: 64, ..base }),
        (
            Field::Length,
            plain,
            Frame {
                length: LENGTH as u64 + 1,
                ..plain
            },
        ),
        (Field::Length, plain, Frame { length: 0, ..plain }),
    ];
    for (field, mine, theirs) in cases {
        one_mismatch(make, field, &mine, &theirs);
    }
}

fn one_mismatch(make: Make<'_>, field: Field, mine: &Frame, theirs: &Frame) {
    let expected = match mine.compare(theirs) {
        Err(mismatch) if mismatch.field == field => mismatch,
        other => panic!("the suite's own frames: {other:?}"),
    };
    run("mismatch", make, 2, &|pilot| {
        let peer = 1 - pilot.rank;
        let (broken, whole) = (pilot.port(peer, 0), pilot.port(peer, 1));
        let out = Slab::filled(1, theirs.length as usize);
        let into = Slab::new(mine.length as usize);
        if pilot.rank == 0 {
            pilot.send(broken, theirs, &[out.piece()]); // Does not complete; nobody waits for it.
        } else {
            let token = pilot.recv(broken, mine, &[into.piece()]);
            let found = match pilot.outcome(token, &format!("a mismatch of {field}")) {
                Ok(()) => panic!("a message with another {field} was accepted"),
                Err(error) => error,
            };
            assert_eq!((found.port, found.peer), (broken, peer), "{found}");
            match found.cause {
                LinkCause::Mismatch(found) => assert_eq!(found, expected, "{found}"),
                other => panic!("a mismatch of {field} was reported as: {other}"),
            }
            let again = pilot.offer(Direction::Recv, broken, mine, &[into.piece()]);
            assert!(again.is_err(), "a broken port takes posts");
        }
        let frame = frame(11, 0, 100);
        let (there, here) = (Slab::filled(2, 100), Slab::new(100));
        let tokens = [
            pilot.send(whole, &frame, &[there.piece()]),
            pilot.recv(whole, &frame, &[here.piece()]),
        ];
        pilot.finish_all(&tokens, "a channel beside a broken one");
        here.assert_holds(2, "a channel beside a broken one");
        into.assert_untouched(&format!("mismatch of {field}"));
    });
}
