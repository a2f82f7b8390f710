//! A network inside one process that one thread can step.
//!
//! It is the engine's test bench: N endpoints without threads, sockets or time, so a test can step
//! every rank by hand and replay a failure from its seed. Bytes move straight from the sender's
//! pieces to the receiver's, and only when both are posted. How they move is the [`Policy`]'s:
//!
//! * [`Policy::instant`]: all that can move moves at once, inside the post; for benchmarks.
//! * [`Policy::hostile`]: a few bytes per poll, some polls move nothing, completions come late; all
//!   from a seed.
//!
//! The endpoints are `Send` and wake each other, so threads can drive them too.
//!
//! ```
//! use unisono_contract::{Endpoint, null};
//!
//! let mut ends = null::Net::new(3, null::Policy::hostile(42));
//! let net = ends[0].net();
//! assert!(ends[0].port(2, 0).is_some());
//! assert!(ends[0].port(3, 0).is_none(), "there is no rank 3");
//! net.kill(2);
//! ```

mod links;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use unisono_core::Rank;

use self::links::{Links, Post, Side};
use crate::{
    endpoint::{
        self, Completion, Completions, Drain, Limits, LinkCause, LinkError, Port, PostError, Token,
        Unclaimed,
    },
    event::Event,
    frame::{Frame, mix},
    host::{Ready, WaitSet},
    memory::{Piece, total},
};

/// How a [`Net`] moves bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Bytes moved per poll and port: `1..=chunk` at random; `usize::MAX`: whole messages.
    pub chunk: usize,
    /// Probability that a poll moves nothing on a port, or reports nothing of it.
    pub hold: f64,
    /// Posts outstanding per port and direction.
    pub depth: usize,
}

impl Policy {
    /// Everything that can move moves at once.
    pub fn instant() -> Self {
        Self {
            seed: 0,
            chunk: usize::MAX,
            hold: 0.0,
            depth: 64,
        }
    }

    /// A byte pipe with hostile timing.
    pub fn hostile(seed: u64) -> Self {
        let random = mix(seed);
        Self {
            seed,
            chunk: 1 << (random % 13), // 1..=4096
            hold: [0.0, 0.3, 0.8][(random >> 8) as usize % 3],
            depth: 1 + (random >> 16) as usize % 4,
        }
    }

    /// Whether nothing is ever left lying.
    fn is_instant(&self) -> bool {
        self.chunk == usize::MAX && self.hold <= 0.0
    }
}

/// The network; a clone is the same one.
#[derive(Clone)]
pub struct Net {
    links: Arc<Mutex<Links>>,
}

impl Net {
    /// A network of `ranks`: the endpoint of each, in order.
    #[allow(clippy::new_ret_no_self)] // The endpoints are what one wants; `Endpoint::net` gives it.
    pub fn new(ranks: usize, policy: Policy) -> Vec<Endpoint> {
        let news: Vec<News> = (0..ranks).map(|_| News::default()).collect();
        let links = Arc::new(Mutex::new(Links::new(policy, &news)));
        news.into_iter()
            .zip(0..)
            .map(|(news, rank)| Endpoint {
                net: Self {
                    links: links.clone(),
                },
                rank,
                ranks: ranks as Rank,
                limits: Limits {
                    pieces: 8,
                    depth: policy.depth.max(1),
                    registers: false,
                    name: "null",
                },
                policy,
                instant: policy.is_instant(),
                ports: Vec::new(),
                news,
                done: VecDeque::new(),
                polls: 0,
            })
            .collect()
    }

    /// Cuts `rank` off, as if its process had died: what it has posted is withdrawn, and its peers
    /// find their ports to it closed.
    pub fn kill(&self, rank: Rank) {
        self.lock().depart(rank);
    }

    /// Messages that have arrived so far, on all links.
    pub fn messages(&self) -> u64 {
        self.lock().messages
    }

    /// Payload bytes that have arrived so far, on all links.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How one rank learns that the network has something for it.
#[derive(Clone, Default)]
struct News {
    /// Set with the lock held when there is; read without it, so that an idle poll is a load.
    there: Arc<AtomicBool>,
    event: Event,
}

/// What an endpoint knows of one of its ports.
struct Local {
    peer: Rank,
    channel: u16,
    /// The link out of here, and the link into here.
    links: [usize; 2],
    /// Posts not yet reported, sends and receives.
    outstanding: [usize; 2],
    failed: Option<LinkCause>,
}

/// One rank of a [`Net`].
pub struct Endpoint {
    net: Net,
    rank: Rank,
    ranks: Rank,
    limits: Limits,
    policy: Policy,
    instant: bool,
    ports: Vec<Local>,
    news: News,
    /// Completions taken from the network and not yet reported: older than all it still has.
    done: VecDeque<Completion>,
    polls: u64,
}

impl Endpoint {
    /// The network this endpoint belongs to.
    pub fn net(&self) -> Net {
        self.net.clone()
    }

    /// Which rank this endpoint is.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    #[inline]
    fn post(
        &mut self,
        port: Port,
        side: Side,
        frame: &Frame,
        pieces: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        debug_assert_eq!(frame.length, total(pieces) as u64, "frame and pieces");
        debug_assert!(pieces.len() <= self.limits.pieces, "too many pieces");
        let local = &mut self.ports[port.0 as usize];
        if let Some(cause) = &local.failed {
            return Err(error(port, local, cause.clone()).into());
        }
        let which = side as usize;
        if local.outstanding[which] >= self.limits.depth {
            return Err(PostError::Full);
        }
        let link = local.links[which];
        let mut links = self
            .net
            .links
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(cause) = links.failure(link, side) {
            local.failed = Some(cause.clone());
            return Err(error(port, local, cause).into());
        }
        local.outstanding[which] += 1;
        if !self.instant {
            links.enqueue(link, side, Post::new(frame, pieces, token));
            links.announce(link);
            return Ok(());
        }
        // What the network has for us is older than what this post may complete.
        if self.news.there.load(Ordering::Relaxed) {
            links.collect(self.rank, &mut self.done);
        }
        if links.meet(link, side, frame, pieces, token) {
            self.done.push_back(Completion {
                port,
                direction: side.direction(),
                token,
            });
        }
        Ok(())
    }

    /// Whether this poll says nothing of `completion`'s port and direction.
    fn holds(&self, completion: &Completion) -> bool {
        if self.policy.hold <= 0.0 {
            return false;
        }
        let lane = u64::from(completion.port.0) << 1 | completion.direction as u64;
        links::chance(
            mix(mix(self.policy.seed ^ self.polls) ^ lane),
            self.policy.hold,
        )
    }

    /// Moves what may be reported from `self.done` to `done`.
    fn report(&mut self, done: &mut Completions) {
        if self.policy.hold <= 0.0 {
            while let Some(completion) = self.done.pop_front() {
                let local = &mut self.ports[completion.port.0 as usize];
                local.outstanding[completion.direction as usize] -= 1;
                done.push(completion);
            }
            return;
        }
        for _ in 0..self.done.len() {
            let Some(completion) = self.done.pop_front() else {
                break;
            };
            if self.holds(&completion) {
                self.done.push_back(completion); // One whole turn keeps the order.
                continue;
            }
            let local = &mut self.ports[completion.port.0 as usize];
            local.outstanding[completion.direction as usize] -= 1;
            done.push(completion);
        }
    }
}

#[cold]
fn error(port: Port, local: &Local, cause: LinkCause) -> LinkError {
    LinkError {
        port,
        peer: local.peer,
        cause,
    }
}

impl endpoint::Endpoint for Endpoint {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        if peer >= self.ranks || peer == self.rank {
            return None;
        }
        let known = self
            .ports
            .iter()
            .position(|local| local.peer == peer && local.channel == channel);
        let index = known.unwrap_or_else(|| {
            let index = self.ports.len();
            let port = Port(index as u32);
            let links = self.net.lock().open(self.rank, peer, channel, port);
            self.ports.push(Local {
                peer,
                channel,
                links,
                outstanding: [0; 2],
                failed: None,
            });
            index
        });
        Some(Port(index as u32))
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.post(port, Side::Sender, frame, data, token)
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.post(port, Side::Receiver, expect, into, token)
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        self.polls += 1;
        let mut failure = None;
        if !self.instant || self.news.there.load(Ordering::Acquire) {
            let mut links = self
                .net
                .links
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if !self.instant {
                for local in &self.ports {
                    links.step(local.links[0]);
                    links.step(local.links[1]);
                }
            }
            links.collect(self.rank, &mut self.done);
            // A failure does not overtake what its port has completed.
            let waiting = &self.done;
            failure = links.take_failure(self.rank, |port| {
                self.instant || waiting.iter().all(|completion| completion.port != port)
            });
        }
        if !self.done.is_empty() {
            self.report(done);
        }
        match failure {
            None => Ok(()),
            Some((port, cause)) => {
                let local = &mut self.ports[port.0 as usize];
                local.failed = Some(cause.clone());
                Err(error(port, local, cause))
            }
        }
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        if !self.done.is_empty() {
            return Ok(Ready::Now);
        }
        let mut links = self
            .net
            .links
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let movable = |local: &Local| local.links.iter().any(|link| links.can_move(*link));
        if self.news.there.load(Ordering::Relaxed) || self.ports.iter().any(movable) {
            return Ok(Ready::Now);
        }
        set.add(&self.news.event);
        links.listen(self.rank);
        Ok(Ready::Wait)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        set.add(&self.news.event);
        let lying = self.net.lock().unclaimed(self.rank);
        for (peer, channel, frame) in lying {
            found.extend(
                self.port(peer, channel)
                    .map(|port| Unclaimed { port, peer, frame }),
            );
        }
        true
    }

    fn quiesce(&mut self) -> Drain {
        let mut links = self
            .net
            .links
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for local in &mut self.ports {
            if links.withdraw(local.links) {
                local.failed = Some(LinkCause::Closed);
            }
        }
        Drain::Quiet
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.net.kill(self.rank);
    }
}
