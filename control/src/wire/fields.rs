//! The payload of each frame, field by field. Reading gives `None` at the first byte that cannot be right.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use unisono_core::{Collective, Rank};

use super::{CARD_LIMIT, Cards, Frame, Hello, Terms};
use crate::{Cause, Kind, Operation, Refusal, Stalled};

/// Bytes of a text, at most; longer ones are cut.
const TEXT_LIMIT: usize = 1024;
/// Ranks in a list, at most; longer lists are cut.
const LIST_LIMIT: usize = 1024;
/// Limits that a hello carries, at most.
const LIMITS: usize = 16;
/// Fields of a call, at most; longer calls are cut.
const FIELDS: usize = 7;

const HELLO: u8 = 1;
const ACCEPTED: u8 = 2;
const RETRY: u8 = 3;
const CARD: u8 = 4;
const CARDS: u8 = 5;
const BARRIER: u8 = 6;
const REFUSE: u8 = 7;
const HEARTBEAT: u8 = 8;
const ABORT: u8 = 9;
const BYE: u8 = 10;
const STALLED: u8 = 11;

/// Writes kind and payload.
pub(super) fn put(out: &mut BytesMut, frame: &Frame) {
    match frame {
        Frame::Hello(hello) => {
            out.put_u8(HELLO);
            put_hello(out, hello);
        }
        Frame::Accepted { nonce } => {
            out.put_u8(ACCEPTED);
            out.put_u64_le(*nonce);
        }
        Frame::Retry => out.put_u8(RETRY),
        Frame::Card(card) => {
            out.put_u8(CARD);
            put_bytes(out, card);
        }
        Frame::Cards(cards) => {
            out.put_u8(CARDS);
            out.put_u64_le(cards.features);
            put_limits(out, &cards.limits);
            out.put_u32_le(cards.cards.len() as u32);
            cards.cards.iter().for_each(|card| put_bytes(out, card));
        }
        Frame::Barrier(number) => {
            out.put_u8(BARRIER);
            out.put_u32_le(*number);
        }
        Frame::Refuse(refusal) => {
            out.put_u8(REFUSE);
            put_refusal(out, refusal);
        }
        Frame::Heartbeat => out.put_u8(HEARTBEAT),
        Frame::Abort { epoch, cause } => {
            out.put_u8(ABORT);
            out.put_u32_le(*epoch);
            put_cause(out, cause);
        }
        Frame::Bye => out.put_u8(BYE),
        Frame::Stalled { epoch, report } => {
            out.put_u8(STALLED);
            out.put_u32_le(*epoch);
            put_stalled(out, report);
        }
    }
}

fn put_hello(out: &mut BytesMut, hello: &Hello) {
    let terms = &hello.terms;
    out.put_u32_le(terms.size);
    put_text(out, &terms.job);
    put_text(out, &terms.transport);
    out.put_u16_le(terms.channels);
    put_text(out, &terms.check);
    out.put_u8(terms.big_endian.into());
    out.put_u64_le(hello.instance);
    out.put_u64_le(hello.ticket);
    out.put_u64_le(hello.patience);
    out.put_u64_le(hello.features);
    put_limits(out, &hello.limits);
}

fn put_refusal(out: &mut BytesMut, refusal: &Refusal) {
    match refusal {
        Refusal::Missing { ranks, millis } => {
            out.put_u8(1);
            put_ranks(out, ranks);
            out.put_u64_le(*millis);
        }
        Refusal::Unready { ranks, millis } => {
            out.put_u8(2);
            put_ranks(out, ranks);
            out.put_u64_le(*millis);
        }
        Refusal::Duplicate {
            rank,
            first,
            second,
        } => {
            out.put_u8(3);
            out.put_u32_le(*rank);
            put_text(out, first);
            put_text(out, second);
        }
        Refusal::OutOfRange { rank, size } => {
            out.put_u8(4);
            out.put_u32_le(*rank);
            out.put_u32_le(*size);
        }
        Refusal::Differs {
            rank,
            what,
            ours,
            theirs,
        } => {
            out.put_u8(5);
            out.put_u32_le(*rank);
            put_text(out, what);
            put_text(out, ours);
            put_text(out, theirs);
        }
        Refusal::Lost { rank } => {
            out.put_u8(6);
            out.put_u32_le(*rank);
        }
        Refusal::Connect { rank, text } => {
            out.put_u8(7);
            out.put_u32_le(*rank);
            put_text(out, text);
        }
    }
}

fn put_cause(out: &mut BytesMut, cause: &Cause) {
    out.put_u32_le(cause.origin);
    match &cause.operation {
        None => out.put_u8(0),
        Some(operation) => {
            out.put_u8(1);
            put_operation(out, operation);
        }
    }
    match &cause.kind {
        Kind::Lost { rank } => {
            out.put_u8(1);
            out.put_u32_le(*rank);
        }
        Kind::Mismatch {
            rank,
            field,
            mine,
            theirs,
        } => {
            out.put_u8(2);
            out.put_u32_le(*rank);
            put_text(out, field);
            put_text(out, mine);
            put_text(out, theirs);
        }
        Kind::Deadline {
            millis,
            waiting_for,
        } => {
            out.put_u8(3);
            out.put_u64_le(*millis);
            put_ranks(out, waiting_for);
        }
        Kind::Left => out.put_u8(4),
        Kind::Panicked => out.put_u8(5),
        Kind::Other { text } => {
            out.put_u8(6);
            put_text(out, text);
        }
    }
}

fn put_stalled(out: &mut BytesMut, report: &Stalled) {
    put_operation(out, &report.operation);
    let call = &report.call[..report.call.len().min(FIELDS)];
    out.put_u8(call.len() as u8);
    for (field, value) in call {
        put_text(out, field);
        put_text(out, value);
    }
}

fn put_operation(out: &mut BytesMut, operation: &Operation) {
    put_text(out, operation.name);
    out.put_u64_le(operation.sequence);
}

fn put_text(out: &mut BytesMut, text: &str) {
    let mut end = text.len().min(TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_bytes(out, &text.as_bytes()[..end]);
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u16_le(bytes.len() as u16);
    out.put_slice(bytes);
}

fn put_ranks(out: &mut BytesMut, ranks: &[Rank]) {
    let ranks = &ranks[..ranks.len().min(LIST_LIMIT)];
    out.put_u16_le(ranks.len() as u16);
    ranks.iter().for_each(|rank| out.put_u32_le(*rank));
}

fn put_limits(out: &mut BytesMut, limits: &[u64]) {
    let limits = &limits[..limits.len().min(LIMITS)];
    out.put_u8(limits.len() as u8);
    limits.iter().for_each(|limit| out.put_u64_le(*limit));
}

/// A payload being read.
pub(super) struct Fields(Bytes);

impl Fields {
    pub(super) fn new(payload: Bytes) -> Self {
        Self(payload)
    }

    /// The frame, if the payload is one, whole and with nothing behind it.
    pub(super) fn frame(mut self) -> Option<Frame> {
        let frame = match self.u8()? {
            HELLO => Frame::Hello(Box::new(self.hello()?)),
            ACCEPTED => Frame::Accepted { nonce: self.u64()? },
            RETRY => Frame::Retry,
            CARD => Frame::Card(self.bytes(CARD_LIMIT)?),
            CARDS => Frame::Cards(Box::new(self.cards()?)),
            BARRIER => Frame::Barrier(self.u32()?),
            REFUSE => Frame::Refuse(Box::new(self.refusal()?)),
            HEARTBEAT => Frame::Heartbeat,
            ABORT => Frame::Abort {
                epoch: self.u32()?,
                cause: Box::new(self.cause()?),
            },
            BYE => Frame::Bye,
            STALLED => Frame::Stalled {
                epoch: self.u32()?,
                report: Box::new(self.stalled()?),
            },
            _ => return None,
        };
        self.0.is_empty().then_some(frame)
    }

    fn hello(&mut self) -> Option<Hello> {
        Some(Hello {
            terms: Terms {
                size: self.u32()?,
                job: self.text()?,
                transport: self.text()?,
                channels: self.u16()?,
                check: self.text()?,
                big_endian: self.u8()? != 0,
            },
            instance: self.u64()?,
            ticket: self.u64()?,
            patience: self.u64()?,
            features: self.u64()?,
            limits: self.limits()?,
        })
    }

    fn cards(&mut self) -> Option<Cards> {
        let features = self.u64()?;
        let limits = self.limits()?;
        let count = self.u32()?;
        // Grows with the bytes that are there, whatever the count claims.
        let mut cards = Vec::new();
        for _ in 0..count {
            cards.push(self.bytes(CARD_LIMIT)?);
        }
        Some(Cards {
            cards,
            features,
            limits,
        })
    }

    fn refusal(&mut self) -> Option<Refusal> {
        Some(match self.u8()? {
            1 => Refusal::Missing {
                ranks: self.ranks()?,
                millis: self.u64()?,
            },
            2 => Refusal::Unready {
                ranks: self.ranks()?,
                millis: self.u64()?,
            },
            3 => Refusal::Duplicate {
                rank: self.u32()?,
                first: self.text()?,
                second: self.text()?,
            },
            4 => Refusal::OutOfRange {
                rank: self.u32()?,
                size: self.u32().filter(|size| *size > 0)?,
            },
            5 => Refusal::Differs {
                rank: self.u32()?,
                what: self.text()?,
                ours: self.text()?,
                theirs: self.text()?,
            },
            6 => Refusal::Lost { rank: self.u32()? },
            7 => Refusal::Connect {
                rank: self.u32()?,
                text: self.text()?,
            },
            _ => return None,
        })
    }

    fn cause(&mut self) -> Option<Cause> {
        let origin = self.u32()?;
        let operation = match self.u8()? {
            0 => None,
            _ => Some(self.operation()?),
        };
        let kind = match self.u8()? {
            1 => Kind::Lost { rank: self.u32()? },
            2 => Kind::Mismatch {
                rank: self.u32()?,
                field: self.text()?,
                mine: self.text()?,
                theirs: self.text()?,
            },
            3 => Kind::Deadline {
                millis: self.u64()?,
                waiting_for: self.ranks()?,
            },
            4 => Kind::Left,
            5 => Kind::Panicked,
            6 => Kind::Other { text: self.text()? },
            _ => return None,
        };
        Some(Cause::new(origin, operation, kind))
    }

    fn stalled(&mut self) -> Option<Stalled> {
        let operation = self.operation()?;
        let count = usize::from(self.u8()?);
        if count > FIELDS {
            return None;
        }
        let call = (0..count).map(|_| Some((self.text()?, self.text()?)));
        Some(Stalled {
            operation,
            call: call.collect::<Option<_>>()?,
        })
    }

    fn operation(&mut self) -> Option<Operation> {
        Some(Operation {
            name: known_name(&self.text()?),
            sequence: self.u64()?,
        })
    }

    fn u8(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.0.try_get_u16_le().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.0.try_get_u32_le().ok()
    }

    fn u64(&mut self) -> Option<u64> {
        self.0.try_get_u64_le().ok()
    }

    fn bytes(&mut self, limit: usize) -> Option<Vec<u8>> {
        let length = usize::from(self.u16()?);
        if length > limit || length > self.0.len() {
            return None;
        }
        Some(self.0.split_to(length).to_vec())
    }

    /// A text of one line, as it may be printed: whoever sent it.
    fn text(&mut self) -> Option<String> {
        let text = String::from_utf8(self.bytes(TEXT_LIMIT)?).ok()?;
        Some(text.replace(char::is_control, " "))
    }

    fn ranks(&mut self) -> Option<Vec<Rank>> {
        let count = usize::from(self.u16()?);
        if count > LIST_LIMIT {
            return None;
        }
        (0..count).map(|_| self.u32()).collect()
    }

    fn limits(&mut self) -> Option<Vec<u64>> {
        let count = usize::from(self.u8()?);
        if count > LIMITS {
            return None;
        }
        (0..count).map(|_| self.u64()).collect()
    }
}

/// The name of an operation as this program spells it.
fn known_name(name: &str) -> &'static str {
    Collective::ALL
        .into_iter()
        .chain([Collective::Send, Collective::Recv])
        .map(Collective::name)
        .chain(["send_recv"])
        .find(|known| *known == name)
        .unwrap_or("an operation")
}
