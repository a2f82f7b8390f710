//! Much at once, in both directions, cut and placed as it comes.

mod common;

use std::thread;

use unisono_contract::{Direction, Endpoint, Frame, Lease, Opening, Piece, PostError, Token};

use common::{Driver, frame, pair};

/// Runs `play` on both ends, each on a thread.
fn both(play: impl Fn(u32, &mut Driver) + Sync) {
    let (zero, one) = pair();
    thread::scope(|scope| {
        for (rank, end) in [(0, zero), (1, one)] {
            let play = &play;
            scope.spawn(move || play(rank, &mut Driver::new(end)));
        }
    });
}

fn fill(seed: u64, bytes: &mut [u8]) {
    for (word, chunk) in bytes.chunks_mut(8).enumerate() {
        let value = (word as u64 ^ seed << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ value >> 29).to_le_bytes();
        chunk.copy_from_slice(&value[..chunk.len()]);
    }
}

#[test]
fn sixty_four_mebibytes_both_ways_at_once() {
    const LENGTH: usize = 64 << 20;
    both(|rank, driver| {
        let port = driver.endpoint.port(1 - rank, 0).unwrap();
        let mut bytes = vec![0; LENGTH];
        fill(rank.into(), &mut bytes);
        let (out, into) = (Lease::new(bytes), Lease::new(vec![0u8; LENGTH]));
        let frame = frame(1, &[out.piece()]);
        let end = &mut driver.endpoint;
        end.post_send(port, &frame, &[out.piece()], Token(1))
            .unwrap();
        end.post_recv(port, &frame, &[into.piece()], Token(2))
            .unwrap();
        driver.finish(2).unwrap();
        let mut expected = vec![0; LENGTH];
        fill((1 - rank).into(), &mut expected);
        assert!(
            into.into_inner() == expected,
            "rank {rank} received garbage"
        );
    });
}

/// Sizes around every limit, at every alignment of either end, with and without an opening, many
/// in flight: the stream never loses its place.
#[test]
fn messages_of_all_sizes_at_all_alignments_follow_each_other() {
    const MESSAGES: u64 = 4000;
    const ROOM: usize = 600_000;
    let shape = |number: u64| {
        let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |bound: u64| {
            random = (random ^ random >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (random >> 33) % bound
        };
        let around = [0, 33, 64, 4096, 16 << 10, 64 << 10, (32 << 10) + 64];
        let length = match below(40) {
            0 => below(500_000),
            1..20 => (around[below(7) as usize] + below(130)).saturating_sub(65),
            _ => below(300),
        } as usize;
        let offset = below(64) as usize;
        let cut = below(length as u64 + 1) as usize;
        let opening = (below(3) == 0).then(|| Opening {
            count: number,
            ..Opening::default()
        });
        (length, offset, cut, opening)
    };
    both(|rank, driver| {
        let port = driver.endpoint.port(1 - rank, 0).unwrap();
        let depth = driver.endpoint.limits().depth;
        let slots: Vec<_> = (0..depth)
            .map(|_| (vec![0u8; ROOM], vec![0u8; ROOM]))
            .collect();
        let mut slots: Vec<_> = slots
            .into_iter()
            .map(|(out, into)| (Lease::new(out), Lease::new(into)))
            .collect();
        let (mut sent, mut received) = (0, 0);
        let (mut sends, mut receives) = (0, 0);
        let place = |piece: Piece, number: u64, by: u64| {
            let (length, offset, cut, opening) = shape(number);
            let offset = (offset + by as usize) % 64;
            let list = [
                piece.slice(offset..offset + cut),
                piece.slice(offset + cut..offset + length),
            ];
            let frame = Frame {
                length: length as u64,
                sequence: number,
                opening,
                ..Frame::default()
            };
            (list, frame)
        };
        while received < MESSAGES || sent < MESSAGES {
            while sends < MESSAGES && sends - sent < depth as u64 {
                let slot = &mut slots[(sends % depth as u64) as usize].0;
                let (list, frame) = place(slot.piece(), sends, 0);
                for (part, piece) in list.iter().enumerate() {
                    let seed = sends << 2 | u64::from(rank) << 1 | part as u64;
                    piece.write(|bytes| fill(seed, bytes)).unwrap();
                }
                let end = &mut driver.endpoint;
                end.post_send(port, &frame, &list, Token(sends)).unwrap();
                sends += 1;
            }
            while receives < MESSAGES && receives - received < depth as u64 {
                let slot = &mut slots[(receives % depth as u64) as usize].1;
                let (list, frame) = place(slot.piece(), receives, 17 + u64::from(rank) * 5);
                for piece in &list {
                    piece.write(|bytes| bytes.fill(0xee)).unwrap();
                }
                let end = &mut driver.endpoint;
                end.post_recv(port, &frame, &list, Token(receives)).unwrap();
                receives += 1;
            }
            for completion in driver.finish(1).unwrap() {
                let number = completion.token.0;
                if completion.direction == Direction::Send {
                    assert_eq!(number, sent, "sends complete in order");
                    sent += 1;
                    continue;
                }
                assert_eq!(number, received, "receives complete in order");
                received += 1;
                let slot = &mut slots[(number % depth as u64) as usize].1;
                let (list, _) = place(slot.piece(), number, 17 + u64::from(rank) * 5);
                for (part, piece) in list.iter().enumerate() {
                    let mut expected = vec![0; piece.len()];
                    fill(
                        number << 2 | u64::from(1 - rank) << 1 | part as u64,
                        &mut expected,
                    );
                    let same = piece.read(|bytes| bytes == expected).unwrap();
                    assert!(same, "message {number}, part {part}");
                }
            }
        }
    });
}

#[test]
fn a_receiver_that_posts_nothing_holds_the_sender_back() {
    let (zero, one) = pair();
    let (mut zero, mut one) = (Driver::new(zero), Driver::new(one));
    let to = zero.endpoint.port(1, 0).unwrap();
    let out = Lease::new(vec![1u8; 1 << 20]);
    let frame = frame(0, &[out.piece()]);
    let mut done = Vec::new();
    let mut posted = 0;
    // More than kernels buffer.
    for _ in 0..200 {
        match zero
            .endpoint
            .post_send(to, &frame, &[out.piece()], Token(posted))
        {
            Ok(()) => posted += 1,
            Err(PostError::Full) => {}
            Err(error) => panic!("{error}"),
        }
        zero.endpoint.poll(&mut done).unwrap();
    }
    let held = posted as usize - done.len();
    assert_eq!(
        held,
        zero.endpoint.limits().depth,
        "the sender is held back"
    );
    let from = one.endpoint.port(0, 0).unwrap();
    let into = Lease::new(vec![0u8; 1 << 20]);
    for _ in 0..posted {
        one.endpoint
            .post_recv(from, &frame, &[into.piece()], Token(0))
            .unwrap();
        while one.endpoint.poll(&mut done).is_ok()
            && done.last().map(|d| d.direction) != Some(Direction::Recv)
        {
            zero.endpoint.poll(&mut done).unwrap();
        }
        done.clear();
    }
    assert_eq!(into.into_inner(), vec![1; 1 << 20]);
}

/// The endpoint that goes has something unread; a careless close would answer that with a reset,
/// and the reset would discard what it had sent.
#[test]
fn what_was_sent_arrives_although_the_sender_left_with_something_unread() {
    const LENGTH: usize = 64 << 10;
    let (mut zero, one) = pair();
    let mut one = Driver::new(one);
    let (to, from) = (zero.port(1, 0).unwrap(), one.endpoint.port(0, 0).unwrap());
    let mut bytes = vec![0; LENGTH];
    fill(3, &mut bytes);
    let out = Lease::new(bytes.clone());
    let frame = |number| frame(number, &[out.piece()]);
    for number in 0..3 {
        let end = &mut one.endpoint;
        end.post_send(from, &frame(number), &[out.piece()], Token(number))
            .unwrap();
        one.finish(1).unwrap();
    }
    let mut sent = Vec::new();
    for number in 0..500 {
        match zero.post_send(to, &frame(number), &[out.piece()], Token(number)) {
            Ok(()) => zero.poll(&mut sent).unwrap(),
            Err(PostError::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent.len() > 10, "{} messages fit", sent.len());
    drop(zero);
    for number in 0..sent.len() as u64 {
        let into = Lease::new(vec![0u8; LENGTH]);
        one.endpoint
            .post_recv(from, &frame(number), &[into.piece()], Token(number))
            .unwrap();
        one.finish(1).unwrap();
        assert!(into.into_inner() == bytes, "message {number}");
    }
}
