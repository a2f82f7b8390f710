//! The sending side of a port.
//!
//! ```text
//! posts --> stage: headers, leads, whole small messages --> one send
//!      \--> body:  payload of the large message whose header ends the stage --> one gathered send
//! ```
//!
//! Small messages are copied behind each other into the stage, as many as there are, and go with
//! one `send`: cheaper than a gather of their parts. A large one is sent from where it lies.
//! Whatever the kernel does not take stays where it is and goes on from there.

use std::io::IoSlice;

use smallvec::SmallVec;
use unisono_contract::memory::{read_all, total};
use unisono_contract::posts::Posts;
use unisono_contract::{Completion, Completions, Direction, Frame, LinkCause, Piece, Port, Token};

use crate::buffer::{Buffer, PIECES, Pieces, gather, window};
use crate::socket::{Moved, Socket};
use crate::wire::{ALIGN, LONGEST, encode, header_bytes, lead, pad};

/// Messages up to this many bytes, header included, are copied into the stage.
const SMALL: usize = 16 << 10;
/// Room for small messages that wait for the kernel.
const STAGE: usize = 2 * SMALL;
/// The most that one visit sends, so that a port with much to send does not hold up others.
const VISIT: usize = 1 << 20;

static ZEROS: [u8; ALIGN] = [0; ALIGN];

/// Posted sends of one port.
pub(crate) struct Outgoing {
    posts: Posts<SendPost>,
    /// Posts before this position have been staged.
    staged: u64,
    stage: Buffer,
    /// Payload and padding of the last staged post, if that is large: bytes sent of it.
    body: Option<usize>,
    /// Position in the stream behind all that is staged.
    queued: u64,
    /// Position in the stream behind all that the kernel has.
    written: u64,
    /// The kernel took less than it was given: it has no room.
    blocked: bool,
    failed: Option<LinkCause>,
}

struct SendPost {
    token: Token,
    frame: Frame,
    data: Pieces,
    /// Position in the stream behind this message, once it is staged.
    end: u64,
    /// Zeros behind the payload.
    tail: usize,
}

impl Outgoing {
    pub(crate) fn new(depth: usize) -> Self {
        let post = || SendPost {
            token: Token(0),
            frame: Frame::default(),
            data: Pieces::new(),
            end: 0,
            tail: 0,
        };
        Self {
            posts: Posts::new(depth, post),
            staged: 0,
            stage: Buffer::new(STAGE),
            body: None,
            queued: 0,
            written: 0,
            blocked: false,
            failed: None,
        }
    }

    /// Nothing is posted whose completion has not been told.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.posts.is_empty()
    }

    /// Posts a send and gives it to the kernel, if that takes it. `false`: as much is outstanding
    /// as may be.
    pub(crate) fn post(
        &mut self,
        socket: &mut Socket,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<bool, LinkCause> {
        debug_assert_eq!(total(data) as u64, frame.length);
        if let Some(cause) = &self.failed {
            return Err(cause.clone());
        }
        if self.posts.is_full() {
            return Ok(false);
        }
        let was_idle = !self.has_unwritten();
        self.posts.push(|post| {
            post.token = token;
            post.frame = *frame;
            post.data.clear();
            post.data.extend_from_slice(data);
        });
        // Behind others it waits for the next poll, and then goes with them.
        if was_idle {
            self.write(socket)?;
        }
        Ok(true)
    }

    /// Sends what can be sent and tells, in order, what is complete.
    pub(crate) fn progress(
        &mut self,
        socket: &mut Socket,
        port: Port,
        done: &mut Completions,
    ) -> Result<(), LinkCause> {
        let wrote = if self.has_unwritten() {
            self.write(socket)
        } else {
            Ok(())
        };
        self.tell(port, done);
        wrote
    }

    /// Tells, in order, what is complete.
    #[inline]
    pub(crate) fn tell(&mut self, port: Port, done: &mut Completions) {
        while self.has_finished(self.posts.first()) {
            done.push(Completion {
                port,
                direction: Direction::Send,
                token: self.posts.at(self.posts.first()).token,
            });
            self.posts.pop();
        }
    }

    /// A poll would find something without the kernel's telling.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.has_finished(self.posts.first()) || (self.has_unwritten() && !self.blocked)
    }

    /// Something waits for the kernel to have room.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.staged != self.posts.end() || self.written != self.queued
    }

    /// Takes back everything that the kernel does not have in full; `true`: something was taken
    /// back, and the stream ends in the middle. What is complete is still told.
    pub(crate) fn withdraw(&mut self) -> bool {
        let mut finished = self.posts.first();
        while self.has_finished(finished) {
            finished += 1;
        }
        let any = finished != self.posts.end();
        self.posts.truncate(finished);
        if any {
            self.staged = finished;
            self.stage.restart(self.written);
            self.body = None;
            self.queued = self.written;
        }
        any
    }

    /// Breaks this direction: nothing more is sent.
    pub(crate) fn fail(&mut self, cause: LinkCause) -> LinkCause {
        self.withdraw();
        self.failed = Some(cause.clone());
        cause
    }

    #[inline]
    fn has_finished(&mut self, position: u64) -> bool {
        position < self.staged && self.posts.at(position).end <= self.written
    }

    /// Gives to the kernel what it takes.
    #[inline]
    fn write(&mut self, socket: &mut Socket) -> Result<(), LinkCause> {
        match self.try_write(socket) {
            Ok(()) => Ok(()),
            Err(cause) => {
                socket.finish();
                Err(self.fail(cause))
            }
        }
    }

    fn try_write(&mut self, socket: &mut Socket) -> Result<(), LinkCause> {
        let mut visit = VISIT;
        self.blocked = false;
        while visit > 0 {
            self.fill_stage()?;
            let (asked, moved) = match self.body {
                Some(sent) => self.write_body(socket, sent, visit)?,
                None if self.stage.is_empty() => return Ok(()),
                None => (self.stage.len(), socket.send(self.stage.filled())?),
            };
            let bytes = match moved {
                Moved::Bytes(bytes) => bytes,
                Moved::Blocked | Moved::End => 0,
            };
            self.advance(bytes);
            if bytes < asked {
                self.blocked = true;
                return Ok(());
            }
            visit = visit.saturating_sub(bytes);
        }
        Ok(())
    }

    /// Stages waiting posts while there is room, up to a large one.
    #[inline]
    fn fill_stage(&mut self) -> Result<(), LinkCause> {
        if self.body.is_some() || self.staged == self.posts.end() {
            return Ok(());
        }
        if self.stage.is_empty() {
            self.stage.restart(self.queued);
        }
        while self.body.is_none() && self.staged != self.posts.end() {
            let post = self.posts.at(self.staged);
            let header = header_bytes(&post.frame);
            let payload = post.frame.length as usize;
            let room = self.stage.room();
            if header + payload <= SMALL {
                post.tail = pad((header + payload) as u64);
                let size = header + payload + post.tail;
                if room.len() < size {
                    break;
                }
                encode(&post.frame, 0, room);
                gather(&post.data, &mut room[header..])?;
                room[header + payload..size].fill(0);
                self.stage.extend(size);
                self.queued += size as u64;
            } else {
                if room.len() < LONGEST {
                    break;
                }
                let address = post.data.iter().find(|piece| !piece.is_empty());
                let address = address.map_or(0, Piece::addr);
                let lead = lead(address, self.queued + header as u64);
                let head = encode(&post.frame, lead, room);
                post.tail = pad((head + payload) as u64);
                self.stage.extend(head);
                self.body = Some(0);
                self.queued += (head + payload + post.tail) as u64;
            }
            post.end = self.queued;
            self.staged += 1;
        }
        Ok(())
    }

    /// Sends the rest of the stage and of the large message behind it; gives the bytes asked for
    /// and what came of it.
    fn write_body(
        &mut self,
        socket: &mut Socket,
        sent: usize,
        visit: usize,
    ) -> Result<(usize, Moved), LinkCause> {
        let post = self.posts.at(self.staged - 1);
        let payload = post.frame.length as usize;
        let take = visit.min(payload.saturating_sub(sent));
        let part = window(&post.data, sent, take);
        let tail = if sent + take < payload {
            0
        } else {
            post.tail - sent.saturating_sub(payload)
        };
        let stage = self.stage.filled();
        let asked = stage.len() + take + tail;
        let moved = read_all(&part, |pieces| {
            let mut slices: SmallVec<[IoSlice<'_>; PIECES + 2]> = SmallVec::new();
            slices.push(IoSlice::new(stage));
            slices.extend(pieces.iter().copied());
            slices.push(IoSlice::new(&ZEROS[..tail]));
            socket.send_vectored(&slices)
        })??;
        Ok((asked, moved))
    }

    /// The kernel took `bytes` more.
    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.written += bytes as u64;
        let staged = bytes.min(self.stage.len());
        self.stage.consume(staged);
        if let Some(sent) = &mut self.body {
            *sent += bytes - staged;
            if self.written == self.queued {
                self.body = None;
            }
        }
    }
}
