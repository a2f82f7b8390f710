//! One rank's end of the mesh: posts, polls, and the ports that have work.

use std::collections::HashMap;
use std::sync::Arc;

use unisono_contract::{
    Completions, Drain, Endpoint, Event, Frame, Limits, LinkCause, LinkError, Piece, Port,
    PostError, Ready, Token, Unclaimed, WaitSet,
};
use unisono_core::Rank;

use crate::incoming::Incoming;
use crate::mesh::Hub;
use crate::outgoing::Outgoing;
use crate::parcel::PIECES;

/// Slots of a ring, and posts outstanding per port and direction.
pub(crate) const DEPTH: usize = 16;

const LIMITS: Limits = Limits {
    pieces: PIECES,
    depth: DEPTH,
    registers: false,
    name: "inproc",
};

/// The [`Endpoint`] of one rank among threads of one process.
///
/// Sends of up to 256 bytes are copied into the ring and complete at the next poll.
/// Longer ones are offered: the receiver's thread copies straight from the sender's
/// pieces to its own, inside its `poll`. Nothing is locked, allocated or entered in
/// the kernel on the way, unless the peer sleeps and has to be woken.
///
/// Dropping the endpoint withdraws its offers and closes its links: peers receive
/// what it had sent completely, then [`LinkCause::Closed`].
pub struct InprocEndpoint {
    hub: Arc<Hub>,
    rank: Rank,
    links: Vec<Link>,
    ports: HashMap<(Rank, u16), Port>,
    /// Ports with something posted and not complete.
    busy: Vec<Port>,
}

struct Link {
    peer: Rank,
    event: Event,
    out: Outgoing,
    into: Incoming,
    /// Listed in `busy`.
    listed: bool,
}

impl InprocEndpoint {
    pub(crate) fn new(hub: Arc<Hub>, rank: Rank) -> Self {
        Self {
            hub,
            rank,
            links: Vec::new(),
            ports: HashMap::new(),
            busy: Vec::new(),
        }
    }

    /// The rank whose end this is.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Number of ranks in the mesh.
    #[must_use]
    pub fn size(&self) -> usize {
        self.hub.size()
    }

    /// The event by which this rank is woken: peers notify it, and so may anybody
    /// else who has news for the thread that drives this endpoint.
    #[must_use]
    pub fn event(&self) -> Event {
        self.hub.event(self.rank).clone()
    }

    #[cfg(test)]
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    fn link(&mut self, port: Port) -> &mut Link {
        &mut self.links[port.0 as usize]
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
}

impl Endpoint for InprocEndpoint {
    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if peer as usize >= self.hub.size() || peer == self.rank {
            return None;
        }
        if let Some(port) = self.ports.get(&(peer, channel)) {
            return Some(*port);
        }
        let (sender, receiver) = self.hub.open(self.rank, peer, channel);
        let port = Port(u32::try_from(self.links.len()).ok()?);
        self.links.push(Link {
            peer,
            event: self.hub.event(peer).clone(),
            out: Outgoing::new(sender, DEPTH),
            into: Incoming::new(receiver, DEPTH),
            listed: false,
        });
        self.ports.insert((peer, channel), port);
        // Each port is listed at most once, so the list never grows while warm.
        self.busy.reserve(self.links.len() - self.busy.len());
        Some(port)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let link = self.link(port);
        match link.out.post(frame, data, token) {
            Ok(Some(wake)) => {
                if wake {
                    link.event.notify();
                }
                self.list(port);
                Ok(())
            }
            Ok(None) => Err(PostError::Full),
            Err(cause) => Err(PostError::Link(link.error(port, cause))),
        }
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let link = self.link(port);
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
            let link = &mut self.links[port.0 as usize];
            link.progress(port, done)?;
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
        // First the key, then the look: news that come in between change the key.
        set.add(self.hub.event(self.rank));
        let links = &mut self.links;
        let ready = self
            .busy
            .iter()
            .any(|port| links[port.0 as usize].is_ready());
        Ok(if ready { Ready::Now } else { Ready::Wait })
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        // As in `wait_on`: first the key.
        set.add(self.hub.event(self.rank));
        for (peer, channel) in self.hub.opened_to(self.rank) {
            let _ = self.port(peer, channel);
        }
        for (link, port) in self.links.iter_mut().zip(0..) {
            found.extend(link.into.unclaimed().map(|frame| Unclaimed {
                port: Port(port),
                peer: link.peer,
                frame,
            }));
        }
        true
    }

    fn quiesce(&mut self) -> Drain {
        let links = &mut self.links;
        self.busy.retain(|port| {
            let link = &mut links[port.0 as usize];
            link.withdraw();
            link.listed = !link.is_idle();
            link.listed
        });
        Drain::Quiet
    }
}

impl Link {
    #[inline]
    fn progress(&mut self, port: Port, done: &mut Completions) -> Result<(), LinkError> {
        let mut wake = false;
        if !self.into.is_idle() {
            match self.into.progress(port, done) {
                Ok(tell) => wake |= tell,
                Err(cause) => return Err(self.broke(port, cause, done)),
            }
        }
        let mut sent = Ok(());
        if !self.out.is_idle() {
            match self.out.progress(port, done) {
                Ok(tell) => wake |= tell,
                Err(cause) => (wake, sent) = (true, Err(self.error(port, cause))),
            }
        }
        if wake {
            self.event.notify();
        }
        sent
    }

    /// A receive failed: nothing more happens on this port.
    ///
    /// Not so when a send fails: what the peer had sent before it left can still be
    /// received.
    #[cold]
    fn broke(&mut self, port: Port, cause: LinkCause, done: &mut Completions) -> LinkError {
        // The peer may have gone because of this rank's memory; then that is what there is to tell.
        let cause = match cause {
            LinkCause::Closed => self.out.revoked().map_or(cause, LinkCause::Revoked),
            cause => cause,
        };
        self.out.withdraw();
        // What was finished before is told; the one error to tell is `cause`.
        let _ = self.out.progress(port, done);
        self.out.fail(cause.clone());
        self.event.notify();
        self.error(port, cause)
    }

    /// Takes back what is posted. A port that loses a message so is closed: its two
    /// ends would count differently from here on.
    fn withdraw(&mut self) {
        let received = self.into.withdraw();
        let sent = self.out.withdraw();
        if received || sent {
            self.into.close();
            self.out.close();
            self.event.notify();
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

impl Drop for InprocEndpoint {
    fn drop(&mut self) {
        self.links.clear();
        self.hub.leave(self.rank);
    }
}

impl std::fmt::Debug for InprocEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InprocEndpoint")
            .field("rank", &self.rank)
            .field("size", &self.size())
            .field("ports", &self.links.len())
            .finish_non_exhaustive()
    }
}
