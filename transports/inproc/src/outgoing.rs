//! The sending side of a port.

use std::convert::Infallible;

use unisono_contract::memory::total;
use unisono_contract::posts::Posts;
use unisono_contract::{
    Completion, Completions, Direction, Frame, LinkCause, Piece, Port, Revoked, Token,
};

use crate::parcel::{INLINE, Parcel, Pieces};
use crate::ring::{Kind, Outcome, Sender};

/// Posted sends of one port, and the ring they go into.
///
/// A post takes the ring's next slot, or waits here if the ring is full, so that
/// `depth` sends are accepted whatever the receiver does.
pub(crate) struct Outgoing {
    sender: Sender<Parcel>,
    /// Their positions are those of the ring's slots.
    posts: Posts<SendPost>,
    /// Posts before this position are in the ring.
    placed: u64,
    failed: Option<LinkCause>,
}

struct SendPost {
    token: Token,
    stage: Stage,
    /// Kept only while the post waits for room in the ring.
    frame: Frame,
    /// Kept while the post waits or is offered.
    data: Pieces,
}

/// How far a posted send has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not in the ring yet, which was full.
    Waiting,
    /// Its address is in the ring.
    Offered,
    /// Its memory is not used any more.
    Sent,
}

/// Whether the peer must be told of what was just done.
type Wake = bool;

impl Outgoing {
    pub(crate) fn new(sender: Sender<Parcel>, depth: usize) -> Self {
        let post = || SendPost {
            token: Token(0),
            stage: Stage::Waiting,
            frame: Frame::default(),
            data: Pieces::default(),
        };
        Self {
            sender,
            posts: Posts::new(depth, post),
            placed: 0,
            failed: None,
        }
    }

    /// Nothing is posted whose completion has not been told.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.posts.is_empty()
    }

    /// Posts a send. `Ok(None)`: as much is outstanding as may be.
    pub(crate) fn post(
        &mut self,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<Option<Wake>, LinkCause> {
        if let Some(cause) = &self.failed {
            return Err(cause.clone());
        }
        if self.sender.is_receiver_gone() {
            return Err(self.fail(LinkCause::Closed));
        }
        if self.posts.is_full() {
            return Ok(None);
        }
        let is_next = self.placed == self.posts.end();
        let stage = if is_next {
            self.place(frame, data)?
        } else {
            Stage::Waiting
        };
        self.posts.push(|post| {
            post.token = token;
            post.stage = stage;
            if stage != Stage::Sent {
                post.data.set(data);
            }
            if stage == Stage::Waiting {
                post.frame = *frame;
            }
        });
        if stage == Stage::Waiting {
            // Again, for now room is asked for, so that what comes later comes with a
            // wake-up.
            return self.place_waiting().map(Some);
        }
        self.placed += 1;
        Ok(Some(true))
    }

    /// Moves what waits into the ring and tells, in order, what is complete.
    pub(crate) fn progress(
        &mut self,
        port: Port,
        done: &mut Completions,
    ) -> Result<Wake, LinkCause> {
        let placed = self.place_waiting();
        while !self.posts.is_empty() {
            let position = self.posts.first();
            if self.posts.at(position).stage != Stage::Sent && !self.settle(position)? {
                break;
            }
            done.push(Completion {
                port,
                direction: Direction::Send,
                token: self.posts.at(position).token,
            });
            self.posts.pop();
        }
        placed
    }

    /// A poll would find something.
    pub(crate) fn is_ready(&mut self) -> bool {
        if self.posts.is_empty() {
            return false;
        }
        let position = self.posts.first();
        self.sender.is_receiver_gone()
            || match self.posts.at(position).stage {
                Stage::Waiting => self.sender.await_room(),
                Stage::Offered => self.sender.is_settled(position),
                Stage::Sent => true,
            }
    }

    /// Takes back everything that is posted and not finished, waiting for a copy in
    /// progress; `true`: something was taken back. What was finished before that is
    /// still told by [`Self::progress`].
    pub(crate) fn withdraw(&mut self) -> bool {
        let mut finished = self.posts.first();
        for position in self.posts.first()..self.placed {
            let post = self.posts.at(position);
            if post.stage == Stage::Offered {
                match self.sender.withdraw(position) {
                    Outcome::Copied => post.stage = Stage::Sent,
                    Outcome::Open | Outcome::Refused | Outcome::Withdrawn => {}
                }
            }
            if post.stage == Stage::Sent && finished == position {
                finished += 1;
            }
        }
        let any = finished != self.posts.end();
        self.posts.truncate(finished);
        self.placed = finished;
        any
    }

    /// Breaks this direction: nothing more is sent.
    pub(crate) fn fail(&mut self, cause: LinkCause) -> LinkCause {
        self.withdraw();
        self.failed = Some(cause.clone());
        cause
    }

    /// Breaks this direction and lets the peer know.
    pub(crate) fn close(&mut self) {
        self.fail(LinkCause::Closed);
        self.sender.close();
    }

    /// Whether the oldest post, which is not sent, is now.
    fn settle(&mut self, position: u64) -> Result<bool, LinkCause> {
        let post = self.posts.at(position);
        let is_offered = post.stage == Stage::Offered;
        let outcome = match post.stage {
            Stage::Offered => self.sender.outcome(position),
            Stage::Waiting | Stage::Sent => Outcome::Open,
        };
        let gone = outcome == Outcome::Open && self.sender.is_receiver_gone();
        let outcome = if gone && is_offered {
            // It may have copied this one just before it left.
            self.sender.withdraw(position)
        } else {
            outcome
        };
        match outcome {
            Outcome::Copied => Ok(true),
            Outcome::Open if !gone => Ok(false),
            Outcome::Open | Outcome::Refused | Outcome::Withdrawn => {
                let revoked = match outcome {
                    Outcome::Refused => post.data.revoked(),
                    _ => None,
                };
                Err(self.fail(revoked.map_or(LinkCause::Closed, LinkCause::Revoked)))
            }
        }
    }

    /// Why the peer could not read what is offered, if that is why it has gone: the memory is this rank's.
    pub(crate) fn revoked(&mut self) -> Option<Revoked> {
        (self.posts.first()..self.placed).find_map(|position| {
            let is_refused =
                self.posts.at(position).stage == Stage::Offered && self.sender.is_refused(position);
            let data = &self.posts.at(position).data;
            is_refused.then(|| data.revoked()).flatten()
        })
    }

    /// Moves waiting posts into the ring while there is room, and asks to be woken
    /// when there is not.
    #[inline]
    fn place_waiting(&mut self) -> Result<Wake, LinkCause> {
        let mut wake = false;
        while self.placed != self.posts.end() {
            let post = self.posts.at(self.placed);
            let (frame, data) = (post.frame, post.data);
            match self.place(&frame, data.as_slice())? {
                Stage::Waiting if self.sender.await_room() => {}
                Stage::Waiting => break,
                stage => {
                    self.posts.at(self.placed).stage = stage;
                    self.placed += 1;
                    wake = true;
                }
            }
        }
        Ok(wake)
    }

    /// Puts one message into the ring's next slot, if that is free.
    #[inline]
    fn place(&mut self, frame: &Frame, data: &[Piece]) -> Result<Stage, LinkCause> {
        debug_assert_eq!(total(data) as u64, frame.length);
        if total(data) <= INLINE {
            let put = self
                .sender
                .put(Kind::Message, |parcel| parcel.pack(frame, data));
            return match put {
                Ok(true) => Ok(Stage::Sent),
                Ok(false) => Ok(Stage::Waiting),
                Err(revoked) => Err(self.fail(LinkCause::Revoked(revoked))),
            };
        }
        let Ok(put) = self.sender.put(Kind::Offer, |parcel| {
            parcel.point_to(frame, data);
            Ok::<_, Infallible>(())
        });
        Ok(if put { Stage::Offered } else { Stage::Waiting })
    }
}
