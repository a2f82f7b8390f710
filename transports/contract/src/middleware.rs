//! Endpoints around endpoints.
//!
//! [`Faulty`] makes a transport's timing hostile, [`Traced`] keeps what was posted and what
//! completed. Both are endpoints themselves, so they nest:
//!
//! ```
//! use unisono_contract::{Endpoint, middleware::{Faulty, Step, Traced}, null};
//!
//! let ends = null::Net::new(2, null::Policy::instant());
//! let mut ends: Vec<_> = ends.into_iter().map(|end| Traced::new(Faulty::new(end, 7, 0.5))).collect();
//! ends[0].port(1, 0);
//! assert_eq!(ends[0].steps(), [Step::Opened { peer: 1, channel: 0 }]);
//! ```

use std::time::Duration;

use unisono_core::Rank;

use crate::{
    endpoint::{
        Completion, Completions, Direction, Drain, Endpoint, Limits, LinkError, Port, PostError,
        Token, Unclaimed,
    },
    frame::{Frame, mix},
    host::{Ready, WaitSet},
    memory::{Piece, Region, total},
};

/// Skips polls at random, so completions come late and in lumps. Nothing is lost or reordered.
#[derive(Debug)]
pub struct Faulty<E> {
    inner: E,
    random: u64,
    skip: f64,
}

impl<E: Endpoint> Faulty<E> {
    /// Skips each poll of `inner` with probability `skip`, decided by `seed`.
    pub fn new(inner: E, seed: u64, skip: f64) -> Self {
        Self {
            inner,
            random: mix(seed),
            // Always skipping would be a dead link, not a slow one.
            skip: skip.clamp(0.0, 0.95),
        }
    }

    /// The endpoint inside.
    pub fn into_inner(self) -> E {
        self.inner
    }

    fn skips(&mut self) -> bool {
        self.random = mix(self.random);
        ((self.random >> 11) as f64) < self.skip * (1u64 << 53) as f64
    }
}

impl<E: Endpoint> Endpoint for Faulty<E> {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        self.inner.port(peer, channel)
    }

    fn register(&mut self, region: &Region) -> Result<(), LinkError> {
        self.inner.register(region)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.inner.post_send(port, frame, data, token)
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        self.inner.post_recv(port, expect, into, token)
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        if self.skips() {
            return Ok(());
        }
        self.inner.poll(done)
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        let ready = self.inner.wait_on(set)?;
        // The driver's last poll before sleeping may be one we skip.
        set.sleep_at_most(Duration::from_micros(200));
        Ok(ready)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        self.inner.unclaimed(set, found)
    }

    fn quiesce(&mut self) -> Drain {
        self.inner.quiesce()
    }
}

/// One thing that happened at an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A port was asked for.
    Opened {
        /// To whom.
        peer: Rank,
        /// On which channel.
        channel: u16,
    },
    /// A post was taken.
    Posted {
        /// Where.
        port: Port,
        /// As a send or a receive.
        direction: Direction,
        /// With which frame.
        frame: Frame,
        /// In how many pieces.
        pieces: usize,
        /// Bytes of all pieces.
        bytes: usize,
        /// Under which name.
        token: Token,
    },
    /// A post was refused for lack of room.
    Full {
        /// Where.
        port: Port,
        /// As a send or a receive.
        direction: Direction,
    },
    /// A post completed.
    Completed(Completion),
    /// A port broke; the text of the error.
    Failed(String),
    /// What was posted was withdrawn or finished.
    Quiesced(Drain),
}

/// Keeps everything that is posted and everything that completes.
#[derive(Debug)]
pub struct Traced<E> {
    inner: E,
    steps: Vec<Step>,
}

impl<E: Endpoint> Traced<E> {
    /// Records `inner`.
    pub fn new(inner: E) -> Self {
        Self {
            inner,
            steps: Vec::new(),
        }
    }

    /// What happened so far, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes what happened so far.
    pub fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// The endpoint inside.
    pub fn into_inner(self) -> E {
        self.inner
    }

    fn posted(
        &mut self,
        (port, direction): (Port, Direction),
        frame: &Frame,
        pieces: &[Piece],
        token: Token,
        result: &Result<(), PostError>,
    ) {
        self.steps.push(match result {
            Ok(()) => Step::Posted {
                port,
                direction,
                frame: *frame,
                pieces: pieces.len(),
                bytes: total(pieces),
                token,
            },
            Err(PostError::Full) => Step::Full { port, direction },
            Err(PostError::Link(error)) => Step::Failed(error.to_string()),
        });
    }
}

impl<E: Endpoint> Endpoint for Traced<E> {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }

    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        self.steps.push(Step::Opened { peer, channel });
        self.inner.port(peer, channel)
    }

    fn register(&mut self, region: &Region) -> Result<(), LinkError> {
        self.inner.register(region)
    }

    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let result = self.inner.post_send(port, frame, data, token);
        self.posted((port, Direction::Send), frame, data, token, &result);
        result
    }

    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let result = self.inner.post_recv(port, expect, into, token);
        self.posted((port, Direction::Recv), expect, into, token, &result);
        result
    }

    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        let before = done.len();
        let result = self.inner.poll(done);
        self.steps
            .extend(done[before..].iter().copied().map(Step::Completed));
        if let Err(error) = &result {
            self.steps.push(Step::Failed(error.to_string()));
        }
        result
    }

    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        self.inner.wait_on(set)
    }

    fn unclaimed(&mut self, set: &mut WaitSet, found: &mut Vec<Unclaimed>) -> bool {
        self.inner.unclaimed(set, found)
    }

    fn quiesce(&mut self) -> Drain {
        let drain = self.inner.quiesce();
        self.steps.push(Step::Quiesced(drain));
        drain
    }
}
