//! The receiving side of a port.

use unisono_contract::posts::Posts;
use unisono_contract::{Completion, Completions, Direction, Frame, LinkCause, Piece, Port, Token};

use crate::parcel::{Parcel, Pieces};
use crate::ring::{Head, Receiver};

/// After a copy of at least this many bytes a poll goes on to the next port, so that
/// what has arrived is used before more is copied.
const LARGE: u64 = 64 << 10;

/// Posted receives of one port, and the ring they are served from.
pub(crate) struct Incoming {
    receiver: Receiver<Parcel>,
    posts: Posts<RecvPost>,
    failed: Option<LinkCause>,
}

struct RecvPost {
    token: Token,
    expect: Frame,
    into: Pieces,
}

/// Whether the peer must be told of what was just done.
type Wake = bool;

impl Incoming {
    pub(crate) fn new(receiver: Receiver<Parcel>, depth: usize) -> Self {
        let post = || RecvPost {
            token: Token(0),
            expect: Frame::default(),
            into: Pieces::default(),
        };
        Self {
            receiver,
            posts: Posts::new(depth, post),
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
            post.into.set(into);
        });
        Ok(true)
    }

    /// Serves posted receives, in order, from what the ring holds.
    pub(crate) fn progress(
        &mut self,
        port: Port,
        done: &mut Completions,
    ) -> Result<Wake, LinkCause> {
        let mut wake = false;
        while !self.posts.is_empty() {
            let post = self.posts.at(self.posts.first());
            match serve(&mut self.receiver, post) {
                Ok(None) => break,
                Ok(Some(tell)) => wake |= tell,
                Err(cause) => return Err(self.fail(cause)),
            }
            let is_large = post.expect.length >= LARGE;
            done.push(Completion {
                port,
                direction: Direction::Recv,
                token: post.token,
            });
            self.posts.pop();
            if is_large {
                break;
            }
        }
        Ok(wake)
    }

    /// A poll would find something.
    pub(crate) fn is_ready(&mut self) -> bool {
        !self.posts.is_empty() && !matches!(self.receiver.head(), Head::Empty)
    }

    /// What lies there while nothing is posted.
    pub(crate) fn unclaimed(&mut self) -> Option<Frame> {
        if self.failed.is_some() || !self.posts.is_empty() {
            return None;
        }
        match self.receiver.head() {
            Head::Empty | Head::Closed => None,
            Head::Message(message) => Some(message.cargo(|parcel| parcel.frame)),
            Head::Offer(offer) => Some(offer.cargo(|parcel| parcel.frame)),
        }
    }

    /// Drops everything posted; `true`: something was. Only this thread ever writes to
    /// memory posted here, so it is quiet at once.
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

    /// Breaks this direction and lets the peer know.
    pub(crate) fn close(&mut self) {
        self.fail(LinkCause::Closed);
        self.receiver.close();
    }
}

/// Serves one receive: `Some`, and whether to wake the peer. The frames are compared
/// before any byte is written.
#[inline]
fn serve(receiver: &mut Receiver<Parcel>, post: &RecvPost) -> Result<Option<Wake>, LinkCause> {
    let into = post.into.as_slice();
    match receiver.head() {
        Head::Empty => Ok(None),
        Head::Closed => Err(LinkCause::Closed),
        Head::Message(message) => {
            message.cargo(|parcel| {
                post.expect.compare(&parcel.frame)?;
                parcel.unpack(into)?;
                Ok::<_, LinkCause>(())
            })?;
            Ok(Some(message.take()))
        }
        Head::Offer(offer) => {
            offer.cargo(|parcel| post.expect.compare(&parcel.frame))?;
            let Some(claim) = offer.claim() else {
                return Err(LinkCause::Closed);
            };
            claim.cargo(|parcel| {
                parcel.fetch(into).map_err(|revoked| {
                    if parcel.revoked().is_some() {
                        // Its owner ended the loan, or has no memory there: that is a withdrawal, and the owner hears why.
                        LinkCause::Closed
                    } else {
                        LinkCause::Revoked(revoked)
                    }
                })
            })?;
            claim.finish();
            Ok(Some(true))
        }
    }
}
