//! [`Endpoint`]: one rank's access to a transport.
//!
//! Call [`port`](Endpoint::port) once per peer and channel. Then post, and
//! [`poll`](Endpoint::poll) until the completions have come. With nothing to do, call
//! [`wait_on`](Endpoint::wait_on), **poll once more**, then park with the [`Host`](crate::Host):
//! the driver parks, never the endpoint.
//!
//! # The rules
//! * **FIFO.** The k-th message sent to a peer on a channel meets the k-th receive posted there.
//!   Completions of one port and direction come in the order of the posts.
//! * **Never blocking.** A post says [`Full`](PostError::Full) instead of waiting;
//!   [`Limits::depth`] posts per port and direction always fit (a post counts until its completion
//!   was polled).
//! * **Nothing is lost.** A receive that is not posted yet holds the sender back, or the transport
//!   buffers. A message of zero bytes is a real message.
//! * **Checked before touched.** The sender's frame is compared with the receive's before user
//!   memory is written. A disagreement is [`LinkCause::Mismatch`] at the receiver; the sender is
//!   not told, its message just does not complete.
//! * **A send completion** means "the memory is yours again", nothing more.
//! * **Errors are per port.** A broken port is named once by `poll` (or by the post that finds it);
//!   from then on posts to it fail, nothing posted on it completes, and its posted memory is not
//!   touched any more. Other ports stay usable.
//! * **A peer that goes away**: what it sent completely is still received, and what it received
//!   completely still completes here; then [`LinkCause::Closed`]. Only a port with something posted complains: a peer may leave first
//!   when all is done.
//! * **What nobody posted for** lies there until it is claimed by a receive.
//!   [`unclaimed`](Endpoint::unclaimed) tells of it, so that an engine can see that its peer does something else.
//! * **Dropping an endpoint** withdraws what is posted; its memory is not touched afterwards.

use std::{fmt, io, sync::Arc};

use unisono_core::Rank;

use crate::{
    frame::{Frame, Mismatch},
    host::{Ready, WaitSet},
    memory::{Piece, Region, Revoked},
};

/// One peer and channel, as an endpoint numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(pub u32);

/// The poster's name for a post; comes back in its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Out of this rank.
    Send,
    /// Into this rank.
    Recv,
}

/// A post is done: its memory is the poster's again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Completion {
    /// Where it was posted.
    pub port: Port,
    /// As a send or a receive.
    pub direction: Direction,
    /// Under which name.
    pub token: Token,
}

/// Where [`Endpoint::poll`] appends; the driver clears it.
pub type Completions = Vec<Completion>;

/// A message that has come to a port where no receive is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclaimed {
    /// Where it lies.
    pub port: Port,
    /// Who sent it.
    pub peer: Rank,
    /// What it says about itself.
    pub frame: Frame,
}

/// What an endpoint can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Pieces in one gather list; at least 2.
    pub pieces: usize,
    /// Posts outstanding per port and direction; at least 1.
    pub depth: usize,
    /// Whether memory should be [registered](Endpoint::register) (and is staged otherwise).
    pub registers: bool,
    /// The transport, for messages to people.
    pub name: &'static str,
}

/// Why a post was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PostError {
    /// No room: try again after a completion.
    #[error("no room for another post")]
    Full,
    /// The port is broken.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A port broke.
#[derive(Debug, Clone, thiserror::Error)]
#[error("link to rank {peer}: {cause}")]
pub struct LinkError {
    /// Which port.
    pub port: Port,
    /// Who is at its other end.
    pub peer: Rank,
    /// What happened.
    pub cause: LinkCause,
}

/// What broke a port.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LinkCause {
    /// The peer went away, or one side withdrew a message.
    #[error("closed by the peer")]
    Closed,
    /// The peer sent something else than was expected.
    #[error("mismatch: {0}")]
    Mismatch(#[from] Mismatch),
    /// The operating system said no.
    #[error("{0}")]
    Io(Arc<io::Error>),
    /// Memory posted here could not be accessed.
    #[error("{0}")]
    Revoked(#[from] Revoked),
}

impl From<io::Error> for LinkCause {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// What [`Endpoint::quiesce`] achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Drain {
    /// No posted memory is touched any more.
    Quiet,
    /// A device still holds memory: call again.
    Busy,
}

/// One rank's access to a transport. The [module](self) has the rules.
pub trait Endpoint: Send {
    /// What this endpoint can take; never changes.
    fn limits(&self) -> &Limits;

    /// The port to `peer` on `channel`, opened if need be; the same answer each time. `None`: this
    /// transport has no link to that peer.
    ///
    /// Channels are independent: each has its own FIFO.
    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port>;

    /// Makes `region` known to the device, so that its pieces need no staging.
    ///
    /// # Errors
    /// [`LinkError`] when the device refuses.
    fn register(&mut self, region: &Region) -> Result<(), LinkError> {
        let _ = region;
        Ok(())
    }

    /// Sends the bytes of `data`, one after the other, as one message.
    ///
    /// The total equals `frame.length`, and there are at most [`Limits::pieces`] pieces: the
    /// caller's duty.
    ///
    /// # Errors
    /// [`PostError::Full`], or [`PostError::Link`] when the port is broken.
    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError>;

    /// Receives one message, which must carry the frame `expect`, into `into`.
    ///
    /// Lengths and pieces as in [`post_send`](Self::post_send).
    ///
    /// # Errors
    /// [`PostError::Full`], or [`PostError::Link`] when the port is broken.
    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError>;

    /// Moves what can be moved and appends what is done.
    ///
    /// # Errors
    /// [`LinkError`] names one broken port; `done` still has everything that completed before. The
    /// next call goes on with the other ports.
    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError>;

    /// Adds to `set` what would announce progress. Poll once more before sleeping on it.
    ///
    /// # Errors
    /// [`LinkError`], as [`poll`](Self::poll).
    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError>;

    /// Appends to `found` the first message of each port where nothing is posted and one has come, and adds to `set`
    /// what would announce more of them, beside what [`wait_on`](Self::wait_on) has added before. What is not claimed
    /// by a receive is told each time.
    ///
    /// For who has waited long in vain, before he goes on to sleep: it may cost system calls, polls do not look there,
    /// and a peer that is merely ahead would wake him for nothing. Ports that only the peer has opened are opened.
    ///
    /// `false`, the default: this transport cannot tell.
    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        let _ = (set, found);
        false
    }

    /// Withdraws or finishes everything posted. After [`Drain::Quiet`] no posted memory is touched
    /// any more. A port from which a message was withdrawn is closed; one with nothing posted
    /// stays as it is. Completions of what had finished can still be polled.
    fn quiesce(&mut self) -> Drain;
}

impl<E: Endpoint + ?Sized> Endpoint for Box<E> {
    fn limits(&self) -> &Limits {
        (**self).limits()
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        (**self).port(peer, channel)
    }

    fn register(&mut self, region: &Region) -> Result<(), LinkError> {
        (**self).register(region)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        (**self).post_send(port, frame, data, token)
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        (**self).post_recv(port, expect, into, token)
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        (**self).poll(done)
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        (**self).wait_on(set)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        (**self).unclaimed(set, found)
    }

    fn quiesce(&mut self) -> Drain {
        (**self).quiesce()
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send => "send",
            Self::Recv => "recv",
        })
    }
}
