//! Nobody is lost, blocked or overtaken when one side is slow.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use super::{
    Make,
    pilot::{Slab, frame, run},
};
use crate::{
    endpoint::{Direction, PostError},
    host::WaitSet,
};

/// `limits().depth` posts fit in each direction while the peer does nothing; a post beyond that is
/// taken or refused as full; all that were taken arrive.
pub fn back_pressure(make: Make<'_>) {
    const LENGTH: usize = 1000;
    const MOST: usize = 2000;
    let count = AtomicUsize::new(0);
    run("back_pressure", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        let depth = pilot.endpoint().limits().depth.min(MOST);
        if pilot.rank == 0 {
            let slab = Slab::filled(5, LENGTH);
            let mut sent = Vec::new();
            while sent.len() < MOST {
                let frame = frame(0, sent.len() as u32, LENGTH);
                match pilot.offer(Direction::Send, port, &frame, &[slab.piece()]) {
                    Ok(token) => sent.push(token),
                    Err(PostError::Full) => break,
                    Err(PostError::Link(error)) => panic!("send refused: {error}"),
                }
            }
            assert!(
                sent.len() >= depth,
                "{} sends fit, depth {depth}",
                sent.len()
            );
            count.store(sent.len(), Ordering::Release);
            pilot.finish_all(&sent, "sends that the peer was slow to receive");
        } else {
            pilot.until("the peer's sends", |_| count.load(Ordering::Acquire) > 0);
            let count = count.load(Ordering::Acquire);
            let mut message = 0;
            while message < count {
                let slabs: Vec<_> = (message..count.min(message + depth))
                    .map(|_| Slab::new(LENGTH))
                    .collect();
                let mut received = Vec::new();
                for slab in &slabs {
                    let frame = frame(0, message as u32, LENGTH);
                    match pilot.offer(Direction::Recv, port, &frame, &[slab.piece()]) {
                        Ok(token) => received.push(token),
                        Err(error) => panic!("receive {} of {depth}: {error}", received.len()),
                    }
                    message += 1;
                }
                pilot.finish_all(&received, "what the peer had sent before");
                for slab in &slabs {
                    slab.assert_holds(5, "a message held back");
                }
            }
        }
    });
}

/// A message waits for its receive, however late, whatever its size.
pub fn late_receives(make: Make<'_>) {
    run("late_receives", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        for (length, message) in [0, 10, 5000, 600_000].into_iter().zip(0..) {
            let frame = frame(0, message, length);
            let seed = u64::from(message);
            if pilot.rank == 0 {
                let slab = Slab::filled(seed, length);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a send to a late receive");
            } else {
                pilot.poll_for(Duration::from_millis(5));
                let slab = Slab::new(length);
                let token = pilot.recv(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a late receive");
                slab.assert_holds(seed, "a late receive");
            }
        }
    });
}

/// A receive never completes before its message was sent, also an empty one.
pub fn late_sends(make: Make<'_>) {
    const SIZES: [usize; 4] = [0, 10, 5000, 600_000];
    let posted = AtomicUsize::new(0);
    run("late_sends", make, 2, &|pilot| {
        let port = pilot.port(1 - pilot.rank, 0);
        for (message, length) in SIZES.into_iter().enumerate() {
            let frame = frame(0, message as u32, length);
            if pilot.rank == 0 {
                pilot.poll_for(Duration::from_millis(5));
                let slab = Slab::filled(1, length);
                posted.store(message + 1, Ordering::SeqCst);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a late send");
            } else {
                let slab = Slab::new(length);
                let token = pilot.recv(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a message sent late");
                assert!(
                    posted.load(Ordering::SeqCst) > message,
                    "received {length} bytes before they were sent"
                );
                slab.assert_holds(1, "a message sent late");
            }
        }
    });
}

/// After a send completion the memory is the sender's: what it writes there is not sent, and what
/// was there before is, also if the receive comes much later.
pub fn send_completion(make: Make<'_>) {
    /// Says so when the receiver leaves, also by a panic.
    struct Leaving<'a>(&'a AtomicBool);

    impl Drop for Leaving<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    let left = AtomicBool::new(false);
    run("send_completion", make, 2, &|pilot| {
        let _leaving = (pilot.rank == 1).then(|| Leaving(&left));
        let port = pilot.port(1 - pilot.rank, 0);
        let mut kept = Vec::new(); // Lent to the end: late reads find the new bytes, no error.
        for (length, message) in [1, 64, 4000, 100_000, 600_000].into_iter().zip(0..) {
            let frame = frame(0, message, length);
            let seed = u64::from(message);
            if pilot.rank == 0 {
                let slab = Slab::filled(seed, length);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a send completion");
                slab.fill(seed + 77);
                kept.push(slab);
            } else {
                // Without a poll: a transport may complete the send, but not by our doing.
                thread::sleep(Duration::from_millis(10));
                let slab = Slab::new(length);
                let token = pilot.recv(port, &frame, &[slab.piece()]);
                pilot.finish(token, "a late receive");
                slab.assert_holds(seed, "a message whose send had completed");
            }
        }
        if pilot.rank == 0 {
            // A sender that has gone would hide what is wrong with its messages.
            pilot.until("the receiver to leave", |_| left.load(Ordering::Acquire));
        }
    });
}

/// A channel that is stuck does not hold up another, in either direction.
pub fn channels(make: Make<'_>) {
    const LARGE: usize = 400_000;
    let passed = AtomicBool::new(false);
    run("channels", make, 2, &|pilot| {
        let peer = 1 - pilot.rank;
        let (stuck, free) = (pilot.port(peer, 0), pilot.port(peer, 1));
        assert_ne!(stuck, free, "two channels are two ports");
        let large = frame(0, 0, LARGE);
        let out = Slab::filled(1, LARGE);
        let into = Slab::new(LARGE);
        let sent = (pilot.rank == 0).then(|| pilot.send(stuck, &large, &[out.piece()]));
        for message in 0..20 {
            let frame = frame(0, message, 3000);
            let (there, here) = (Slab::filled(message.into(), 3000), Slab::new(3000));
            let tokens = [
                pilot.send(free, &frame, &[there.piece()]),
                pilot.recv(free, &frame, &[here.piece()]),
            ];
            pilot.finish_all(&tokens, "a channel beside a stuck one");
            here.assert_holds(message.into(), "a channel beside a stuck one");
        }
        match sent {
            Some(token) => {
                pilot.until("the other channel", |_| passed.load(Ordering::Acquire));
                pilot.finish(token, "a send that was stuck");
            }
            None => {
                passed.store(true, Ordering::Release);
                let token = pilot.recv(stuck, &large, &[into.piece()]);
                pilot.finish(token, "a message that was stuck");
                into.assert_holds(1, "a message that was stuck");
            }
        }
    });
}

/// A message that no receive is posted for is told of, if the transport tells of any: also to who sleeps and on a port
/// that only the sender has opened, again until it is claimed, and not afterwards. Then it is received whole.
pub fn unclaimed(make: Make<'_>) {
    const SIZES: [usize; 4] = [10, 0, 5000, 600_000];
    let claimed = AtomicUsize::new(0);
    run("unclaimed", make, 2, &|pilot| {
        let peer = 1 - pilot.rank;
        let last = frame(1, 0, 100);
        let (there, here) = (Slab::filled(9, 100), Slab::new(100));
        let awaited = pilot.port(peer, 1);
        let expected = (pilot.rank == 1).then(|| pilot.recv(awaited, &last, &[here.piece()]));
        for (message, length) in SIZES.into_iter().enumerate() {
            let frame = frame(message as u64, 0, length);
            if pilot.rank == 0 {
                let port = pilot.port(peer, 0);
                let slab = Slab::filled(1, length);
                let token = pilot.send(port, &frame, &[slab.piece()]);
                pilot.until("the message to be claimed", |_| {
                    claimed.load(Ordering::Acquire) > message
                });
                pilot.finish(token, "a message that was claimed");
                continue;
            }
            if let Some(found) = pilot.unclaimed("a message that is not expected") {
                let port = pilot.port(peer, 0);
                for found in [found, pilot.unclaimed("it once more").unwrap_or_default()] {
                    let found: Vec<_> = found.iter().map(|f| (f.port, f.peer, f.frame)).collect();
                    assert_eq!(found, [(port, peer, frame)], "told of {length} bytes");
                }
            }
            let slab = Slab::new(length);
            let port = pilot.port(peer, 0);
            let token = pilot.recv(port, &frame, &[slab.piece()]);
            let mut found = Vec::new();
            pilot.endpoint().unclaimed(&mut WaitSet::new(), &mut found);
            assert_eq!(found, [], "told of what a receive was posted for");
            // Large messages need both ends to move.
            claimed.store(message + 1, Ordering::Release);
            pilot.finish(token, "a message that lay there");
            slab.assert_holds(1, "a message that lay there");
        }
        match expected {
            None => {
                let token = pilot.send(awaited, &last, &[there.piece()]);
                pilot.finish(token, "a message that is expected");
            }
            Some(token) => {
                pilot.finish(token, "the expected message");
                here.assert_holds(9, "the expected message");
            }
        }
    });
}

/// More ranks than cores, everyone with everyone: nobody starves, no wake-up is lost.
pub fn oversubscription(make: Make<'_>) {
    const LENGTH: usize = 2000;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let ranks = (2 * cores + 2).clamp(6, 16);
    run("oversubscription", make, ranks, &|pilot| {
        let me = u64::from(pilot.rank);
        let peers: Vec<_> = (0..ranks as u32)
            .filter(|peer| *peer != pilot.rank)
            .collect();
        for round in 0..20 {
            let frame = frame(round, 0, LENGTH);
            let mut flying = Vec::new();
            for peer in &peers {
                let port = pilot.port(*peer, 0);
                let into = Slab::new(LENGTH);
                let out = Slab::filled(me << 32 | u64::from(*peer) << 8 | round, LENGTH);
                let received = pilot.recv(port, &frame, &[into.piece()]);
                let sent = pilot.send(port, &frame, &[out.piece()]);
                flying.push((*peer, received, sent, into, out));
            }
            for (peer, received, sent, into, _out) in &flying {
                pilot.finish(*received, &format!("round {round} from rank {peer}"));
                pilot.finish(*sent, &format!("round {round} to rank {peer}"));
                into.assert_holds(u64::from(*peer) << 32 | me << 8 | round, "everyone's turn");
            }
        }
    });
}
