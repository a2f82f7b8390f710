//! FIFOs: the way of messages from one rank to another on a channel.
//!
//! Each message is in exactly one of these queues, and moves from left to right:
//!
//! | queue | of |
//! |---|---|
//! | `queued` | the sender's core |
//! | `held` | messages that may not leave before a receive is posted ([`Unposted::Block`]) |
//! | `flight` | the wire |
//! | `inbox` | the receiver, no receive being posted |

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use unisono_contract::{
    Completion, Direction, Frame, LinkCause, Piece, Port, Revoked, Token, frame::Mismatch,
};
use unisono_core::Rank;

use super::{Happening, Unposted, World};
use crate::payload::Payload;

/// Which FIFO: group, sender, receiver, channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FifoKey {
    pub(crate) group: u32,
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    pub(crate) channel: u16,
}

/// A message under way.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) frame: Frame,
    pub(crate) payload: Payload,
    pub(crate) fingerprint: u64,
    /// When it had left the sender altogether.
    pub(crate) left: u64,
    /// Its payload is not what was sent.
    pub(crate) is_corrupt: bool,
}

/// A receive that waits for its message.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) expect: Frame,
    pub(crate) into: SmallVec<[Piece; 2]>,
    pub(crate) token: Token,
}

/// A FIFO.
#[derive(Debug)]
pub(crate) struct Fifo {
    pub(crate) key: FifoKey,
    pub(crate) link: u32,
    /// The sender's name for it, and the receiver's, once they have opened it.
    pub(crate) ports: [Option<Port>; 2],
    pub(crate) queued: VecDeque<Message>,
    pub(crate) held: VecDeque<Message>,
    pub(crate) flight: VecDeque<Message>,
    pub(crate) inbox: VecDeque<Message>,
    pub(crate) posted: VecDeque<Posted>,
    /// Sends that are not complete.
    pub(crate) sending: VecDeque<Token>,
    /// Receives whose message the receiver's core is at.
    pub(crate) receiving: VecDeque<Token>,
    pub(crate) last_arrival: u64,
    /// Receives posted so far, and messages that have left.
    pub(crate) granted: u64,
    pub(crate) departed: u64,
    /// Completions so far, sends and receives.
    pub(crate) completed: [u64; 2],
    /// The sender has withdrawn: when all is on the wire, the end follows.
    pub(crate) is_ending: bool,
    /// No message follows those in the inbox.
    pub(crate) is_closed: bool,
    /// Nobody receives: sends fail.
    pub(crate) is_gone: bool,
    /// The FIFO is broken, for both ends.
    pub(crate) broken: Option<LinkCause>,
}

impl World {
    /// The FIFO of `key`, which `rank` calls `port`.
    pub(crate) fn open(&mut self, key: FifoKey, rank: Rank, port: Port) -> u32 {
        let index = match self.fifo_index.get(&key) {
            Some(index) => *index,
            None => {
                let link = self.link(key.from, key.to);
                let index = self.fifos.len() as u32;
                self.fifos.push(Fifo {
                    key,
                    link,
                    ports: [None; 2],
                    queued: VecDeque::new(),
                    held: VecDeque::new(),
                    flight: VecDeque::new(),
                    inbox: VecDeque::new(),
                    posted: VecDeque::new(),
                    sending: VecDeque::new(),
                    receiving: VecDeque::new(),
                    last_arrival: 0,
                    granted: 0,
                    departed: 0,
                    completed: [0; 2],
                    is_ending: false,
                    is_closed: false,
                    is_gone: false,
                    broken: None,
                });
                self.fifo_index.insert(key, index);
                index
            }
        };
        self.fifos[index as usize].ports[usize::from(rank == key.to)] = Some(port);
        index
    }

    /// Posts a send; the memory is read at once.
    pub(crate) fn post_send(
        &mut self,
        index: u32,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), LinkCause> {
        let fifo = &self.fifos[index as usize];
        let from = fifo.key.from;
        if let Some(cause) = &fifo.broken {
            return Err(cause.clone());
        }
        if fifo.is_gone || self.ranks[from as usize].dead.is_some() {
            return Err(LinkCause::Closed);
        }
        let (payload, fingerprint) = Payload::load(data, &mut self.pool, &self.phantoms)?;
        let message = Message {
            frame: *frame,
            payload,
            fingerprint,
            left: 0,
            is_corrupt: false,
        };
        let handed_over = self.core(from, self.now, self.overhead_ps);
        let now = self.now;
        let fifo = &mut self.fifos[index as usize];
        fifo.sending.push_back(token);
        if handed_over > now {
            fifo.queued.push_back(message);
            self.schedule(handed_over, Happening::HandOver(index));
        } else {
            self.hand_over(index, message);
        }
        Ok(())
    }

    /// Posts a receive; a message that is there already is received at once.
    pub(crate) fn post_recv(
        &mut self,
        index: u32,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), LinkCause> {
        let fifo = &mut self.fifos[index as usize];
        if let Some(cause) = &fifo.broken {
            return Err(cause.clone());
        }
        if self.ranks[fifo.key.to as usize].dead.is_some() {
            return Err(LinkCause::Closed);
        }
        let posted = Posted {
            expect: *expect,
            into: SmallVec::from_slice(into),
            token,
        };
        fifo.granted += 1;
        if let Some(message) = fifo.inbox.pop_front() {
            self.deliver(index, posted, message);
        } else if fifo.is_closed {
            return Err(LinkCause::Closed);
        } else {
            fifo.posted.push_back(posted);
            if let Some(message) = fifo.held.pop_front() {
                self.transmit(index, message);
                self.end_if_empty(index);
            }
        }
        Ok(())
    }

    /// The next message of a FIFO is there.
    pub(super) fn arrive(&mut self, index: u32) {
        let fifo = &mut self.fifos[index as usize];
        let Some(message) = fifo.flight.pop_front() else {
            return;
        };
        let crashed = self.ranks[fifo.key.from as usize].dead;
        if crashed.is_some_and(|at| message.left > at) {
            self.lose(message); // it was not out when its sender stopped
            return;
        }
        if fifo.broken.is_some() || self.ranks[fifo.key.to as usize].dead.is_some() {
            message.payload.give_back(&mut self.pool);
        } else if let Some(posted) = fifo.posted.pop_front() {
            self.deliver(index, posted, message);
        } else if self.settings.unposted == Unposted::Drop {
            self.lose(message);
        } else {
            fifo.inbox.push_back(message);
        }
    }

    /// A message meets its receive.
    fn deliver(&mut self, index: u32, posted: Posted, message: Message) {
        let stored = check(&posted, &message).and_then(|()| {
            let stored = message.payload.store(&posted.into, &mut self.phantoms);
            stored.map_err(|revoked: Revoked| revoked.into())
        });
        message.payload.give_back(&mut self.pool);
        if let Err(cause) = stored {
            self.break_for_receiver(index, cause);
            return;
        }
        let to = self.fifos[index as usize].key.to;
        let done = self.core(to, self.now, self.overhead_ps);
        let now = self.now;
        self.note_completion(index, Direction::Recv, done, message.fingerprint);
        let fifo = &mut self.fifos[index as usize];
        fifo.receiving.push_back(posted.token);
        if done > now {
            self.schedule(done, Happening::Received(index));
        } else {
            self.received(index);
        }
    }

    pub(super) fn note_completion(
        &mut self,
        index: u32,
        direction: Direction,
        at: u64,
        fingerprint: u64,
    ) {
        let fifo = &mut self.fifos[index as usize];
        let side = direction as usize;
        let count = fifo.completed[side];
        fifo.completed[side] += 1;
        let key = fifo.key;
        let whose = u64::from(key.from) << 32 | u64::from(key.to);
        let which = count << 24 | u64::from(key.channel) << 8 | u64::from(key.group) << 1;
        self.note(at, whose, which | side as u64, fingerprint);
    }

    pub(super) fn received(&mut self, index: u32) {
        let fifo = &mut self.fifos[index as usize];
        let (rank, port) = (fifo.key.to, fifo.ports[1]);
        if let (Some(token), Some(port)) = (fifo.receiving.pop_front(), port) {
            let seat = self.seat(self.fifos[index as usize].key.group, rank);
            self.complete(seat, rank, port, Direction::Recv, token);
        }
    }

    pub(super) fn sent(&mut self, index: u32) {
        let fifo = &mut self.fifos[index as usize];
        let (rank, port) = (fifo.key.from, fifo.ports[0]);
        if let (Some(token), Some(port)) = (fifo.sending.pop_front(), port) {
            let seat = self.seat(self.fifos[index as usize].key.group, rank);
            self.complete(seat, rank, port, Direction::Send, token);
        }
    }

    fn complete(
        &mut self,
        seat: usize,
        rank: Rank,
        port: Port,
        direction: Direction,
        token: Token,
    ) {
        if self.ranks[rank as usize].dead.is_some() {
            return;
        }
        self.seats[seat].done.push(Completion {
            port,
            direction,
            token,
        });
        self.tell(seat, rank);
    }

    /// The endpoint of a seat has something to poll.
    fn tell(&mut self, seat: usize, rank: Rank) {
        self.signals.seats[seat].news.store(true, Ordering::Release);
        self.fire(rank);
    }

    /// One side of a FIFO (0: the sender) hears that it is broken.
    pub(super) fn fail(&mut self, index: u32, side: usize, cause: LinkCause) {
        let Fifo { key, ports, .. } = &self.fifos[index as usize];
        let (rank, group) = ([key.from, key.to][side], key.group);
        if let (Some(port), None) = (ports[side], self.ranks[rank as usize].dead) {
            let seat = self.seat(group, rank);
            self.seats[seat].failures.push_back((port, cause));
            self.tell(seat, rank);
        }
    }

    pub(super) fn lose(&mut self, message: Message) {
        self.lost += 1;
        message.payload.give_back(&mut self.pool);
    }
}

fn check(posted: &Posted, message: &Message) -> Result<(), LinkCause> {
    posted
        .expect
        .compare(&message.frame)
        .map_err(|m: Mismatch| LinkCause::from(m))?;
    if message.is_corrupt {
        let kind = std::io::ErrorKind::InvalidData;
        let error = std::io::Error::new(kind, "the checksum of a message is wrong");
        return Err(error.into());
    }
    Ok(())
}
