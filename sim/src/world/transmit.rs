//! From the sender's core onto the wire, and how a wire ends.

use unisono_contract::{Direction, Frame, LinkCause};
use unisono_core::Rank;

use super::{Happening, Message, Unposted, World};
use crate::fault::Part;
use crate::record::Record;

impl World {
    pub(super) fn hand_over_next(&mut self, index: u32) {
        if let Some(message) = self.fifos[index as usize].queued.pop_front() {
            self.hand_over(index, message);
            self.end_if_empty(index);
        }
    }

    /// The sender's core has done with a message.
    pub(super) fn hand_over(&mut self, index: u32, message: Message) {
        let fifo = &mut self.fifos[index as usize];
        let from = fifo.key.from;
        if self.ranks[from as usize].dead.is_some() {
            return self.lose(message);
        }
        if fifo.is_gone || fifo.broken.is_some() {
            return message.payload.give_back(&mut self.pool);
        }
        let may_leave = self.settings.unposted != Unposted::Block
            || (fifo.held.is_empty() && fifo.granted > fifo.departed);
        if may_leave {
            self.transmit(index, message);
        } else {
            fifo.held.push_back(message);
        }
    }

    /// Puts a message on its link.
    pub(super) fn transmit(&mut self, index: u32, mut message: Message) {
        let fifo = &mut self.fifos[index as usize];
        let bytes = message.frame.length;
        let (link, key) = (fifo.link, fifo.key);
        fifo.departed += 1;
        let Some(passage) = self.pass(link, bytes) else {
            return self.lose(message); // its send never completes
        };
        let fingerprint = message.fingerprint;
        self.note_completion(index, Direction::Send, passage.end, fingerprint);
        self.schedule(passage.end, Happening::Sent(index));
        if self.settings.record {
            self.records.push(Record::Message {
                from: key.from,
                to: key.to,
                channel: key.channel,
                start_ps: passage.start,
                end_ps: passage.end,
                arrival_ps: (!passage.is_lost).then_some(passage.arrival),
                bytes,
                operation: message.frame.sequence,
                message: message.frame.message,
            });
        }
        if passage.is_lost {
            return self.lose(message);
        }
        message.left = passage.end;
        match passage.corrupt {
            None => {}
            Some((Part::Payload, _)) => message.is_corrupt = true,
            Some((Part::Frame, word)) => corrupt(&mut message.frame, word),
        }
        let copies = if passage.is_double { 2 } else { 1 };
        let fifo = &mut self.fifos[index as usize];
        // A FIFO stays one, whatever jitter and delays say.
        let arrival = passage.arrival.max(fifo.last_arrival);
        fifo.last_arrival = arrival;
        if copies == 2 {
            let twin = Message {
                frame: message.frame,
                payload: message.payload.twin(),
                ..message
            };
            fifo.flight.push_back(twin);
        }
        fifo.flight.push_back(message);
        for _ in 0..copies {
            self.schedule(arrival, Happening::Arrive(index));
        }
    }

    /// The endpoints of FIFOs `out` and `into` go: what has left arrives, and then the ends of these FIFOs hear of it.
    pub(crate) fn depart(&mut self, out: u32, into: u32) {
        let rank = self.fifos[out as usize].key.from;
        if self.ranks[rank as usize].dead.is_some() {
            return; // a crash is noticed when the control plane does
        }
        if !self.fifos[out as usize].is_ending {
            self.fifos[out as usize].is_ending = true;
            self.end_if_empty(out);
        }
        let fifo = &mut self.fifos[into as usize];
        fifo.posted.clear();
        fifo.receiving.clear();
        let latency = self.links[fifo.link as usize].latency_ps();
        self.schedule(self.now.saturating_add(latency), Happening::Gone(into));
    }

    /// Whether something is posted on these FIFOs by the sender of `out` that is not complete.
    pub(crate) fn is_busy(&self, out: u32, into: u32) -> bool {
        let (out, into) = (&self.fifos[out as usize], &self.fifos[into as usize]);
        !(out.sending.is_empty() && into.posted.is_empty() && into.receiving.is_empty())
    }

    /// When all of an ending FIFO is on the wire, the end follows.
    pub(super) fn end_if_empty(&mut self, index: u32) {
        let fifo = &self.fifos[index as usize];
        if fifo.is_ending && fifo.queued.is_empty() && fifo.held.is_empty() {
            let latency = self.links[fifo.link as usize].latency_ps();
            let at = self.now.saturating_add(latency).max(fifo.last_arrival);
            self.schedule(at, Happening::Close(index));
        }
    }

    pub(super) fn close(&mut self, index: u32) {
        let fifo = &mut self.fifos[index as usize];
        if std::mem::replace(&mut fifo.is_closed, true) {
            return;
        }
        if !fifo.posted.is_empty() {
            fifo.posted.clear();
            self.fail(index, 1, LinkCause::Closed);
        }
    }

    pub(super) fn gone(&mut self, index: u32) {
        let fifo = &mut self.fifos[index as usize];
        if std::mem::replace(&mut fifo.is_gone, true) {
            return;
        }
        if !(fifo.queued.is_empty() && fifo.held.is_empty()) {
            fifo.queued.clear();
            fifo.held.clear();
            self.fail(index, 0, LinkCause::Closed);
        }
    }

    /// The receiver of a FIFO gives up on it.
    pub(super) fn break_for_receiver(&mut self, index: u32, cause: LinkCause) {
        let fifo = &mut self.fifos[index as usize];
        fifo.broken = Some(cause.clone());
        fifo.posted.clear();
        fifo.inbox.clear();
        self.fail(index, 1, cause);
    }

    /// Both ends of all FIFOs from `from` to `to` find their link broken.
    pub(super) fn break_link(&mut self, from: Rank, to: Rank, cause: &LinkCause) {
        for index in 0..self.fifos.len() {
            let fifo = &mut self.fifos[index];
            if (fifo.key.from, fifo.key.to) != (from, to) || fifo.broken.is_some() {
                continue;
            }
            fifo.broken = Some(cause.clone());
            let waits = [!fifo.sending.is_empty(), !fifo.posted.is_empty()];
            fifo.sending.clear();
            fifo.posted.clear();
            fifo.queued.clear();
            fifo.held.clear();
            for side in [0, 1] {
                if waits[side] {
                    self.fail(index as u32, side, cause.clone());
                }
            }
        }
    }
}

/// Flips a bit of a header.
fn corrupt(frame: &mut Frame, word: u64) {
    let bit = word >> 8;
    match word % 6 {
        0 => frame.length ^= 1 << (bit % 56),
        1 => frame.sequence ^= 1 << (bit % 64),
        2 => frame.message ^= 1 << (bit % 32),
        3 => frame.group ^= 1 << (bit % 32),
        4 => frame.epoch ^= 1 << (bit % 32),
        _ => frame.check ^= 1 << (bit % 32),
    }
}
