//! One rank's end of all its connections: posts, polls, and the ports that have work.

#[cfg(test)]
mod tests;

use unisono_contract::{
    Completions, Drain, Endpoint, Frame, Interest, Limits, LinkCause, LinkError, Piece, Port,
    PostError, Ready, Token, Unclaimed, WaitSet,
};
use unisono_core::Rank;

use crate::buffer::PIECES;
use crate::incoming::{self, Incoming};
use crate::outgoing::Outgoing;
use crate::socket::{Socket, close, readable};

/// Posts outstanding per port and direction.
const DEPTH: usize = 16;

const LIMITS: Limits = Limits {
    pieces: PIECES,
    depth: DEPTH,
    registers: false,
    name: "tcp",
};

/// The [`Endpoint`] of one rank over TCP: one connection per peer and channel.
///
/// System calls are made inside `post_send` and `poll` only, never a blocking one, and only for
/// ports that have something posted; the others are looked at when `unclaimed` asks. Nothing is allocated once a port has been used.
///
/// Dropping the endpoint closes its connections: peers receive what it had sent completely, then
/// [`LinkCause::Closed`].
pub struct TcpEndpoint {
    rank: Rank,
    size: Rank,
    channels: u16,
    /// By peer, then by channel; without this rank.
    links: Vec<Link>,
    sockets: Vec<Socket>,
    /// Ports with something posted and not complete.
    busy: Vec<Port>,
}

struct Link {
    peer: Rank,
    out: Outgoing,
    into: Incoming,
    /// Listed in `busy`.
    listed: bool,
}

impl TcpEndpoint {
    /// `sockets` are non-blocking, by peer (in rank order, without this rank), then by channel.
    pub(crate) fn new(rank: Rank, size: Rank, channels: u16, sockets: Vec<Socket>) -> Self {
        let peers = (0..size).filter(|peer| *peer != rank);
        let links: Vec<_> = peers
            .flat_map(|peer| (0..channels).map(move |_| peer))
            .map(|peer| Link {
                peer,
                out: Outgoing::new(DEPTH),
                into: Incoming::new(DEPTH),
                listed: false,
            })
            .collect();
        assert_eq!(links.len(), sockets.len(), "a socket for each link");
        Self {
            rank,
            size,
            channels,
            // Each port is listed at most once, so the list never grows.
            busy: Vec::with_capacity(links.len()),
            links,
            sockets,
        }
    }

    /// Sees to it that polls visit `port`.
    #[inline]
    fn list(&mut self, port: Port) {
        let link = &mut self.links[port.0 as usize];
        if !link.listed {
            link.listed = true;
            self.busy.push(port);
        }
    }

    /// System calls made so far to move data: sends and receives.
    #[cfg(test)]
    pub(crate) fn calls(&self) -> (u64, u64) {
        let sockets = &self.sockets;
        (
            sockets.iter().map(|socket| socket.sends).sum(),
            sockets.iter().map(|socket| socket.receives).sum(),
        )
    }
}

impl Endpoint for TcpEndpoint {
    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if peer >= self.size || peer == self.rank || channel >= self.channels {
            return None;
        }
        let place = peer - Rank::from(peer > self.rank);
        Some(Port(place * u32::from(self.channels) + u32::from(channel)))
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let index = port.0 as usize;
        let link = &mut self.links[index];
        let posted = link.out.post(&mut self.sockets[index], frame, data, token);
        let result = match posted {
            Ok(true) => Ok(()),
            Ok(false) => return Err(PostError::Full),
            Err(cause) => Err(PostError::Link(link.error(port, cause))),
        };
        // Also after an error: what was complete before it is still told.
        self.list(port);
        result
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let link = &mut self.links[port.0 as usize];
        match link.into.post(expect, into, token) {
            Ok(true) => {
                self.list(port);
                Ok(())
            }
            Ok(false) => Err(PostError::Full),
            Err(cause) => Err(PostError::Link(link.error(port, cause))),
        }
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        let mut at = 0;
        while let Some(&port) = self.busy.get(at) {
            let index = port.0 as usize;
            let link = &mut self.links[index];
            link.progress(&mut self.sockets[index], port, done)?;
            if link.is_idle() {
                link.listed = false;
                self.busy.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        for port in &self.busy {
            let index = port.0 as usize;
            let link = &mut self.links[index];
            if link.is_ready() {
                return Ok(Ready::Now);
            }
            let interest = Interest {
                read: !link.into.is_idle(),
                write: link.out.has_unwritten(),
            };
            set.add_descriptor(self.sockets[index].descriptor(), interest);
        }
        Ok(Ready::Wait)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        let links = &mut self.links;
        let is_unknown = |link: &mut Link| {
            link.into.is_idle() && matches!(link.into.unclaimed(), incoming::Unclaimed::Nothing)
        };
        let unknown: Vec<usize> = (0..links.len())
            .filter(|index| is_unknown(&mut links[*index]))
            .collect();
        for index in readable(&self.sockets, unknown) {
            links[index].into.read_ahead(&mut self.sockets[index]);
        }
        for (index, link) in links.iter_mut().enumerate() {
            if !link.into.is_idle() {
                continue;
            }
            match link.into.unclaimed() {
                incoming::Unclaimed::Message(frame) => found.push(Unclaimed {
                    port: Port(index as u32),
                    peer: link.peer,
                    frame,
                }),
                // What is known already is not waited for, or a peer that is ahead would end every sleep.
                incoming::Unclaimed::Nothing => {
                    set.add_descriptor(self.sockets[index].descriptor(), Interest::READ);
                }
                incoming::Unclaimed::Over => {}
            }
        }
        true
    }

    fn quiesce(&mut self) -> Drain {
        let (links, sockets) = (&mut self.links, &self.sockets);
        self.busy.retain(|port| {
            let index = port.0 as usize;
            let link = &mut links[index];
            link.withdraw(&sockets[index]);
            link.listed = !link.is_idle();
            link.listed
        });
        Drain::Quiet
    }
}

impl Link {
    #[inline]
    fn progress(
        &mut self,
        socket: &mut Socket,
        port: Port,
        done: &mut Completions,
    ) -> Result<(), LinkError> {
        if !self.into.is_idle() {
            let received = self.into.progress(socket, port, done);
            if let Err(cause) = received {
                return Err(self.broke(socket, port, cause, done));
            }
        }
        if !self.out.is_idle() {
            let sent = self.out.progress(socket, port, done);
            return sent.map_err(|cause| self.error(port, cause));
        }
        Ok(())
    }

    /// A receive failed: nothing more happens on this port.
    ///
    /// Not so when a send fails: what the peer had sent before it left can still be received.
    #[cold]
    fn broke(
        &mut self,
        socket: &Socket,
        port: Port,
        cause: LinkCause,
        done: &mut Completions,
    ) -> LinkError {
        self.out.fail(cause.clone());
        self.out.tell(port, done);
        socket.finish();
        self.error(port, cause)
    }

    /// Takes back what is posted. A port that loses a message so is closed: its two ends would
    /// count differently from here on.
    fn withdraw(&mut self, socket: &Socket) {
        let received = self.into.withdraw();
        let sent = self.out.withdraw();
        if received || sent {
            self.into.fail(LinkCause::Closed);
            self.out.fail(LinkCause::Closed);
            socket.finish();
        }
    }

    fn is_idle(&self) -> bool {
        self.into.is_idle() && self.out.is_idle()
    }

    fn is_ready(&mut self) -> bool {
        self.into.is_ready() || self.out.is_ready()
    }

    fn error(&self, port: Port, cause: LinkCause) -> LinkError {
        LinkError {
            port,
            peer: self.peer,
            cause,
        }
    }
}

impl Drop for TcpEndpoint {
    fn drop(&mut self) {
        close(&mut self.sockets);
    }
}

impl std::fmt::Debug for TcpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpEndpoint")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("channels", &self.channels)
            .finish_non_exhaustive()
    }
}
