//! The receiving side of a port.
//!
//! ```text
//! kernel --> buffer: headers, small messages --(checked)--> copied to the posted pieces
//!       \--> the posted pieces of a large message, after its header was checked;
//!            what follows it spills into the buffer, with the same call
//! ```
//!
//! Nothing is read while nothing is posted: then the kernel's buffer fills and holds the sender
//! back. Only who wants to know what lies there reads ahead, not much further than a header.

use std::io::IoSliceMut;

use smallvec::SmallVec;
use unisono_contract::memory::write_all;
use unisono_contract::posts::Posts;
use unisono_contract::{Completion, Completions, Direction, Frame, LinkCause, Piece, Port, Token};

use crate::buffer::{Buffer, PIECES, Pieces, scatter, window};
use crate::socket::{Moved, Socket};
use crate::wire::{LONGEST, decode};

/// Payloads up to this many bytes are read through the buffer, with what comes before and after
/// them; of longer ones only the header is read first.
const SMALL: u64 = 16 << 10;
/// The most that is read into the buffer at once.
const BUFFER: usize = 64 << 10;
/// The most that is read behind a message when it is not known yet what follows.
const PEEK: usize = 4 << 10;
/// The most that one visit reads, so that a port to which much comes does not hold up others.
const VISIT: usize = 1 << 20;
/// After a message of at least this many bytes a visit ends, so that it is used while it is in
/// the cache.
const LARGE: u64 = 64 << 10;

/// Posted receives of one port.
pub(crate) struct Incoming {
    posts: Posts<RecvPost>,
    buffer: Buffer,
    /// Position in the stream behind all that was read.
    position: u64,
    /// Padding before the next payload or header.
    skip: usize,
    /// A header was accepted, and its payload is coming.
    body: Option<Body>,
    /// The last visit stopped before the kernel had no more.
    more: bool,
    /// Why nothing more comes, found while nothing was posted: told to the first receive that needs more.
    ended: Option<LinkCause>,
    failed: Option<LinkCause>,
}

/// What is known of a port where nothing is posted.
pub(crate) enum Unclaimed {
    /// The next message.
    Message(Frame),
    /// Not even its header has come.
    Nothing,
    /// Nothing that anybody could be told of will come.
    Over,
}

struct Body {
    received: usize,
    /// Zeros behind the payload.
    tail: usize,
}

struct RecvPost {
    token: Token,
    expect: Frame,
    into: Pieces,
}

impl Incoming {
    pub(crate) fn new(depth: usize) -> Self {
        let post = || RecvPost {
            token: Token(0),
            expect: Frame::default(),
            into: Pieces::new(),
        };
        Self {
            posts: Posts::new(depth, post),
            buffer: Buffer::new(BUFFER),
            position: 0,
            skip: 0,
            body: None,
            more: false,
            ended: None,
            failed: None,
        }
    }

    /// Nothing is posted.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.posts.is_empty()
    }

    /// Posts a receive. `false`: as much is outstanding as may be.
    pub(crate) fn post(
        &mut self,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<bool, LinkCause> {
        if let Some(cause) = &self.failed {
            return Err(cause.clone());
        }
        if self.posts.is_full() {
            return Ok(false);
        }
        self.posts.push(|post| {
            post.token = token;
            post.expect = *expect;
            post.into.clear();
            post.into.extend_from_slice(into);
        });
        Ok(true)
    }

    /// Serves posted receives, in order, from what has come.
    #[inline]
    pub(crate) fn progress(
        &mut self,
        socket: &mut Socket,
        port: Port,
        done: &mut Completions,
    ) -> Result<(), LinkCause> {
        let result = self.try_progress(socket, port, done);
        result.map_err(|cause| self.fail(cause))
    }

    /// A poll would find something without the kernel's telling.
    pub(crate) fn is_ready(&self) -> bool {
        self.more && !self.posts.is_empty()
    }

    /// What has been read of the next message, while nothing is posted.
    pub(crate) fn unclaimed(&mut self) -> Unclaimed {
        if self.failed.is_some() {
            return Unclaimed::Over;
        }
        self.pass_padding();
        let header = if self.skip > 0 {
            Ok(None)
        } else {
            decode(self.buffer.filled())
        };
        match header {
            Ok(Some(header)) => Unclaimed::Message(header.frame),
            Ok(None) if self.ended.is_none() => Unclaimed::Nothing,
            // Who claims it hears what is wrong.
            Ok(None) | Err(_) => Unclaimed::Over,
        }
    }

    /// Reads some bytes while nothing is posted: the header of the next message, and all of a small one.
    pub(crate) fn read_ahead(&mut self, socket: &mut Socket) {
        debug_assert!(self.posts.is_empty() && self.body.is_none());
        match self.fill(socket, self.skip + PEEK) {
            Ok((_, Moved::Bytes(bytes))) => self.position += bytes as u64,
            Ok((_, Moved::Blocked)) => {}
            Ok((_, Moved::End)) => self.ended = Some(LinkCause::Closed),
            Err(cause) => self.ended = Some(cause),
        }
    }

    /// Drops everything posted; `true`: something was.
    pub(crate) fn withdraw(&mut self) -> bool {
        let any = !self.posts.is_empty();
        self.posts.truncate(self.posts.first());
        any
    }

    /// Breaks this direction: nothing more is received.
    pub(crate) fn fail(&mut self, cause: LinkCause) -> LinkCause {
        self.withdraw();
        self.failed = Some(cause.clone());
        cause
    }

    fn try_progress(
        &mut self,
        socket: &mut Socket,
        port: Port,
        done: &mut Completions,
    ) -> Result<(), LinkCause> {
        let mut visit = VISIT;
        let mut drained = false;
        self.more = false;
        while !self.posts.is_empty() {
            if self.serve()? {
                let post = self.posts.at(self.posts.first());
                let is_large = post.expect.length >= LARGE;
                done.push(Completion {
                    port,
                    direction: Direction::Recv,
                    token: post.token,
                });
                self.posts.pop();
                if is_large {
                    self.more = true;
                    break;
                }
                continue;
            }
            if let Some(cause) = &self.ended {
                return Err(cause.clone());
            }
            if drained {
                break;
            }
            if visit == 0 {
                self.more = true;
                break;
            }
            let (asked, moved) = match &self.body {
                Some(body) if self.skip == 0 => {
                    let received = body.received;
                    self.read_body(socket, received, visit)?
                }
                _ => self.read_buffer(socket)?,
            };
            match moved {
                Moved::Bytes(bytes) => {
                    self.position += bytes as u64;
                    visit = visit.saturating_sub(bytes);
                    // Less than there was room for: the kernel had no more. It is not asked again
                    // just to hear so.
                    drained = bytes < asked;
                }
                Moved::Blocked => break,
                Moved::End => return Err(LinkCause::Closed),
            }
        }
        Ok(())
    }

    /// Serves the oldest receive from the buffer, as far as that goes; `true`: it is complete.
    #[inline]
    fn serve(&mut self) -> Result<bool, LinkCause> {
        self.pass_padding();
        let post = self.posts.at(self.posts.first());
        if self.body.is_none() {
            if self.skip > 0 {
                return Ok(false);
            }
            let Some(header) = decode(self.buffer.filled())? else {
                return Ok(false);
            };
            post.expect.compare(&header.frame)?;
            self.buffer.consume(header.bytes);
            self.skip = header.lead;
            self.body = Some(Body {
                received: 0,
                tail: header.tail(),
            });
            self.pass_padding();
        }
        let post = self.posts.at(self.posts.first());
        let Some(body) = &mut self.body else {
            return Ok(false);
        };
        if self.skip > 0 {
            return Ok(false);
        }
        let length = post.expect.length as usize;
        let take = self.buffer.len().min(length - body.received);
        if take > 0 {
            scatter(&self.buffer.filled()[..take], &post.into, body.received)?;
            self.buffer.consume(take);
            body.received += take;
        }
        if body.received < length {
            return Ok(false);
        }
        self.skip = body.tail;
        self.body = None;
        Ok(true)
    }

    #[inline]
    fn pass_padding(&mut self) {
        let pass = self.skip.min(self.buffer.len());
        self.buffer.consume(pass);
        self.skip -= pass;
    }

    /// Reads into the buffer: whatever is there when a small message is expected, and of a large
    /// one the header, so that its payload need not be copied.
    #[inline]
    fn read_buffer(&mut self, socket: &mut Socket) -> Result<(usize, Moved), LinkCause> {
        let post = self.posts.at(self.posts.first());
        let most = if post.expect.length <= SMALL {
            BUFFER
        } else {
            self.skip + LONGEST
        };
        self.fill(socket, most)
    }

    /// Reads up to `most` bytes into the buffer; gives the bytes asked for and what came of it.
    #[inline]
    fn fill(&mut self, socket: &mut Socket, most: usize) -> Result<(usize, Moved), LinkCause> {
        if self.buffer.is_empty() {
            self.buffer.restart(self.position);
        } else {
            self.buffer.make_room(most);
        }
        let room = self.buffer.room();
        let asked = most.min(room.len());
        let moved = socket.receive(&mut room[..asked])?;
        if let Moved::Bytes(bytes) = moved {
            self.buffer.extend(bytes);
        }
        Ok((asked, moved))
    }

    /// Reads into the posted pieces, from byte `received` on; gives the bytes asked for and what
    /// came of it. The buffer is empty: [`serve`](Self::serve) has taken all of it.
    fn read_body(
        &mut self,
        socket: &mut Socket,
        received: usize,
        visit: usize,
    ) -> Result<(usize, Moved), LinkCause> {
        debug_assert!(self.buffer.is_empty());
        let first = self.posts.first();
        let post = self.posts.at(first);
        let left = post.expect.length as usize - received;
        let take = left.min(visit);
        let part = window(&post.into, received, take);
        let spill = if take < left {
            0
        } else {
            self.body.as_ref().map_or(0, |body| body.tail) + self.spill(first + 1)
        };
        self.buffer.restart(self.position + take as u64);
        let room = &mut self.buffer.room()[..spill];
        let moved = write_all(&part, |pieces| {
            let mut slices: SmallVec<[IoSliceMut<'_>; PIECES + 1]> = SmallVec::new();
            slices.extend(pieces.iter_mut().map(|piece| IoSliceMut::new(piece)));
            slices.push(IoSliceMut::new(room));
            socket.receive_vectored(&mut slices)
        })??;
        if let (Moved::Bytes(bytes), Some(body)) = (moved, &mut self.body) {
            let payload = bytes.min(take);
            body.received += payload;
            self.buffer.extend(bytes - payload);
        }
        Ok((take + spill, moved))
    }

    /// How much to read behind a message, when the receive at `position` comes next.
    fn spill(&mut self, position: u64) -> usize {
        if position == self.posts.end() {
            PEEK
        } else if self.posts.at(position).expect.length <= SMALL {
            BUFFER / 2
        } else {
            LONGEST
        }
    }
}
