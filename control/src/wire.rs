//! What control connections say to each other, byte by byte.
//!
//! Each side begins with a **preamble** of 16 bytes: magic, wire version u16, reserved u16, rank u32. Frames follow:
//! length u32 (of what comes next), kind u8, payload. Everything is little endian.
//!
//! ```text
//! rank N                                       rank 0
//!   preamble, Hello{job, size, ...}      -->
//!                                        <--   preamble, Accepted{nonce}  (or Refuse, or Retry)
//!   Card{bytes}                          -->
//!                                        <--   Cards{of all ranks}        (once all have come)
//!   Barrier                              -->                              (its links stand)
//!                                        <--   Barrier                    (all links stand)
//!   Stalled{operation, call}             -->                              (it waits in vain)
//!   Heartbeat, Abort{cause}, Bye         <-->  Heartbeat, Abort{cause}, Bye
//! ```
//!
//! A stranger can say anything, so nothing is believed: the first wrong byte of a preamble ends the connection, a frame
//! above the [limit](Decoder::allow) of its time is refused by its length alone, and memory grows with bytes that have
//! arrived, never with bytes that were announced.

mod fields;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use unisono_core::Rank;

use crate::{Cause, Refusal, Stalled};
use fields::Fields;

/// The first bytes of every control connection.
pub(crate) const MAGIC: [u8; 8] = *b"\x93unisono";
/// What this code speaks. Another one is refused. Since 2 there is `Stalled`.
pub(crate) const VERSION: u16 = 2;
/// Bytes of a preamble.
pub(crate) const PREAMBLE: usize = 16;
/// Bytes of a card, at most.
pub(crate) const CARD_LIMIT: usize = 1024;
/// Frames that are no lists of cards are shorter.
pub(crate) const FRAME_LIMIT: usize = 16 * 1024;

/// The limit for frames to a rank of a group of `size`: all cards in one.
pub(crate) fn cards_limit(size: Rank) -> usize {
    FRAME_LIMIT + size as usize * (CARD_LIMIT + 4)
}

/// Who speaks, in which version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) version: u16,
    pub(crate) rank: Rank,
}

/// What a rank says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// What must be equal on all ranks.
    pub(crate) terms: Terms,
    /// Which process: the same one may come again after its connection broke, another one may not.
    pub(crate) instance: u64,
    /// The nonce found in the file of the rendezvous; 0: there is no file.
    pub(crate) ticket: u64,
    /// How long this rank will wait, in milliseconds.
    pub(crate) patience: u64,
    /// Features that this rank has, one bit each. Unknown bits are ignored.
    pub(crate) features: u64,
    /// Limits of this rank, by agreed position; the group uses the minimum of each.
    pub(crate) limits: Vec<u64>,
}

/// What must be equal on all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) size: Rank,
    pub(crate) job: String,
    pub(crate) transport: String,
    pub(crate) channels: u16,
    pub(crate) check: String,
    /// Of the data plane, whose frames are not converted.
    pub(crate) big_endian: bool,
}

impl Terms {
    /// The first thing in which `other`, of `rank`, is not like this, of rank 0.
    pub(crate) fn difference(&self, rank: Rank, other: &Terms) -> Option<Refusal> {
        let order = |big| if big { "big endian" } else { "little endian" };
        let quoted = |text: &str| format!("{text:?}");
        [
            ("job", quoted(&self.job), quoted(&other.job)),
            ("size", self.size.to_string(), other.size.to_string()),
            ("transport", self.transport.clone(), other.transport.clone()),
            (
                "number of channels",
                self.channels.to_string(),
                other.channels.to_string(),
            ),
            ("check", self.check.clone(), other.check.clone()),
            (
                "byte order",
                order(self.big_endian).to_owned(),
                order(other.big_endian).to_owned(),
            ),
        ]
        .into_iter()
        .find(|(_, ours, theirs)| ours != theirs)
        .map(|(what, ours, theirs)| Refusal::Differs {
            rank,
            what: what.to_owned(),
            ours,
            theirs,
        })
    }
}

/// What every rank gets when all have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cards {
    /// In rank order.
    pub(crate) cards: Vec<Vec<u8>>,
    /// Features that all ranks have.
    pub(crate) features: u64,
    /// The smallest limits of all.
    pub(crate) limits: Vec<u64>,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Hello(Box<Hello>),
    /// You are a rank of this group.
    Accepted {
        nonce: u64,
    },
    /// This is not the group you look for: look again.
    Retry,
    Card(Vec<u8>),
    Cards(Box<Cards>),
    /// I have arrived; from rank 0: all have.
    Barrier(u32),
    /// The group does not form; to rank 0: this rank cannot be part of it.
    Refuse(Box<Refusal>),
    Heartbeat,
    /// The group `epoch` has failed.
    Abort {
        epoch: u32,
        cause: Box<Cause>,
    },
    /// To rank 0: the sender has waited long for an operation of the group `epoch`.
    Stalled {
        epoch: u32,
        report: Box<Stalled>,
    },
    /// I leave, and nothing is wrong.
    Bye,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("it does not speak as a rank of a group")]
    Magic,
    #[error("a frame of {0} bytes is too long")]
    Long(usize),
    #[error("a frame of kind {0} cannot be read")]
    Frame(u8),
}

/// Writes the preamble.
pub(crate) fn put_preamble(out: &mut BytesMut, rank: Rank) {
    out.put_slice(&MAGIC);
    out.put_u16_le(VERSION);
    out.put_u16_le(0);
    out.put_u32_le(rank);
}

/// Writes one frame.
pub(crate) fn put_frame(out: &mut BytesMut, frame: &Frame) {
    let start = out.len();
    out.put_u32_le(0);
    fields::put(out, frame);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Makes messages of bytes as they come.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Where arriving bytes are appended.
    pub(crate) buffer: BytesMut,
    limit: usize,
}

impl Decoder {
    /// For a connection of which nothing is known.
    pub(crate) fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            limit: FRAME_LIMIT,
        }
    }

    /// Frames may be as long as this from now on.
    pub(crate) fn allow(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The preamble, once it is there.
    pub(crate) fn preamble(&mut self) -> Result<Option<Preamble>, WireError> {
        let known = self.buffer.len().min(MAGIC.len());
        if self.buffer[..known] != MAGIC[..known] {
            return Err(WireError::Magic);
        }
        if self.buffer.len() < PREAMBLE {
            return Ok(None);
        }
        let mut bytes = self.buffer.split_to(PREAMBLE);
        bytes.advance(MAGIC.len());
        let version = bytes.get_u16_le();
        bytes.advance(2);
        let rank = bytes.get_u32_le();
        Ok(Some(Preamble { version, rank }))
    }

    /// The next frame, once it is there.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Some(length) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.limit {
            return Err(WireError::Long(length));
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        let payload: Bytes = self.buffer.split_to(length).freeze();
        let kind = payload.first().copied().unwrap_or_default();
        Fields::new(payload)
            .frame()
            .map(Some)
            .ok_or(WireError::Frame(kind))
    }
}

#[cfg(test)]
mod tests;
