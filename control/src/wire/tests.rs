//! Frames come back as they were sent, and nothing else comes out of other bytes.

use proptest::prelude::*;

use super::*;
use crate::{Kind, Operation};

pub(crate) fn hello(size: Rank) -> Hello {
    Hello {
        terms: Terms {
            size,
            job: "job 7".into(),
            transport: "tcp".into(),
            channels: 2,
            check: "default".into(),
            big_endian: false,
        },
        instance: 5,
        ticket: 0,
        patience: 60_000,
        features: 3,
        limits: vec![4096, 7],
    }
}

fn samples() -> Vec<Frame> {
    let refusals = [
        Refusal::Missing {
            ranks: vec![1, 2],
            millis: 5,
        },
        Refusal::Unready {
            ranks: vec![],
            millis: 5,
        },
        Refusal::Duplicate {
            rank: 1,
            first: "a".into(),
            second: "b".into(),
        },
        Refusal::OutOfRange { rank: 9, size: 3 },
        hello(3).terms.difference(2, &hello(4).terms).unwrap(),
        Refusal::Lost { rank: 3 },
        Refusal::Connect {
            rank: 1,
            text: "no".into(),
        },
    ];
    let kinds = [
        Kind::Lost { rank: 1 },
        Kind::Mismatch {
            rank: 2,
            field: "count".into(),
            mine: "1".into(),
            theirs: "2".into(),
        },
        Kind::Deadline {
            millis: 300,
            waiting_for: vec![0, 4],
        },
        Kind::Left,
        Kind::Panicked,
        Kind::Other {
            text: "anything".into(),
        },
    ];
    let operation = Operation {
        name: "all_reduce",
        sequence: 17,
    };
    let causes = kinds.into_iter().flat_map(|kind| {
        [None, Some(operation)].map(|operation| Cause::new(3, operation, kind.clone()))
    });
    let mut frames = vec![
        Frame::Hello(Box::new(hello(3))),
        Frame::Accepted { nonce: u64::MAX },
        Frame::Retry,
        Frame::Card(vec![1; CARD_LIMIT]),
        Frame::Cards(Box::new(Cards {
            cards: vec![vec![], vec![1, 2], vec![3; CARD_LIMIT]],
            features: 1,
            limits: vec![9],
        })),
        Frame::Barrier(7),
        Frame::Heartbeat,
        Frame::Bye,
        Frame::Stalled {
            epoch: 0,
            report: Box::new(crate::cause::stalled::tests::report(9, "3")),
        },
    ];
    frames.extend(refusals.map(|refusal| Frame::Refuse(Box::new(refusal))));
    frames.extend(causes.map(|cause| Frame::Abort {
        epoch: 0,
        cause: Box::new(cause),
    }));
    frames
}

#[test]
fn every_frame_comes_back_whole_however_it_is_cut() {
    let frames = samples();
    let mut bytes = BytesMut::new();
    put_preamble(&mut bytes, 5);
    frames.iter().for_each(|frame| put_frame(&mut bytes, frame));
    for step in [1, 7, 4096] {
        let mut decoder = Decoder::new();
        let (mut preamble, mut back) = (None, Vec::new());
        for part in bytes.chunks(step) {
            decoder.buffer.put_slice(part);
            if preamble.is_none() {
                preamble = decoder.preamble().unwrap();
            }
            while preamble.is_some()
                && let Some(frame) = decoder.frame().unwrap()
            {
                back.push(frame);
            }
        }
        let version = VERSION;
        assert_eq!(preamble, Some(Preamble { version, rank: 5 }));
        assert_eq!(back, frames);
        assert!(decoder.buffer.is_empty());
    }
}

#[test]
fn the_first_wrong_byte_ends_a_preamble() {
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x93unix", b"\0"] {
        let mut decoder = Decoder::new();
        decoder.buffer.put_slice(bytes);
        assert_eq!(decoder.preamble(), Err(WireError::Magic));
    }
    let mut half = Decoder::new();
    half.buffer.put_slice(&MAGIC[..5]);
    assert_eq!(half.preamble(), Ok(None));
}

#[test]
fn a_long_frame_is_refused_by_its_length_alone() {
    let mut decoder = Decoder::new();
    decoder.buffer.put_u32_le(u32::MAX);
    assert_eq!(decoder.frame(), Err(WireError::Long(u32::MAX as usize)));
    let cards = Frame::Cards(Box::new(Cards {
        cards: vec![vec![0; CARD_LIMIT]; 100],
        features: 0,
        limits: vec![],
    }));
    let mut bytes = BytesMut::new();
    put_frame(&mut bytes, &cards);
    let mut decoder = Decoder::new();
    decoder.buffer.put_slice(&bytes);
    assert!(decoder.frame().is_err());
    decoder.allow(cards_limit(100));
    assert_eq!(decoder.frame(), Ok(Some(cards)));
}

#[test]
fn a_frame_with_something_missing_or_behind_it_is_none() {
    for frame in samples() {
        let mut bytes = BytesMut::new();
        put_frame(&mut bytes, &frame);
        for length in [bytes.len() - 5, bytes.len() - 3] {
            let mut decoder = Decoder::new();
            decoder.buffer.put_u32_le(length as u32);
            decoder.buffer.put_slice(&bytes[4..]);
            decoder.buffer.put_slice(&[0; 8]);
            assert!(decoder.frame().is_err(), "{frame:?} with {length} bytes");
        }
    }
}

#[test]
fn long_texts_are_cut_and_no_control_character_is_printed() {
    let abort = |text: String| Frame::Abort {
        epoch: 0,
        cause: Box::new(Cause::new(0, None, Kind::Other { text })),
    };
    let back = |frame: &Frame| {
        let mut decoder = Decoder::new();
        put_frame(&mut decoder.buffer, frame);
        decoder.frame()
    };
    assert_eq!(
        back(&abort("ä".repeat(5000))),
        Ok(Some(abort("ä".repeat(512))))
    );
    assert_eq!(
        back(&abort("two\nlines\u{1b}".into())),
        Ok(Some(abort("two lines ".into())))
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new();
        decoder.buffer.put_slice(&bytes);
        let _ = decoder.preamble();
        for kind in 0..12u8 {
            let mut decoder = Decoder::new();
            decoder.buffer.put_u32_le(bytes.len() as u32 + 1);
            decoder.buffer.put_u8(kind);
            decoder.buffer.put_slice(&bytes);
            let _ = decoder.frame();
        }
    }
}
