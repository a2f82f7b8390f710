//! The links of a null network: who has posted what, and how the bytes get across.
//!
//! A link is one direction of one channel between two ranks. A port is two of them: the link out,
//! whose sender end it is, and the link back, whose receiver end it is. Ports fail as a whole.

use std::{
    collections::{HashMap, VecDeque},
    mem, slice,
};

use unisono_core::Rank;

use super::{News, Policy};
use crate::{
    endpoint::{Completion, Direction, LinkCause, Port, Token},
    frame::{Frame, mix},
    memory::{self, Piece, Revoked},
};

use std::sync::atomic::Ordering;

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

impl Side {
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Sender => Direction::Send,
            Self::Receiver => Direction::Recv,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// A message offered or expected.
pub(super) struct Post {
    frame: Frame,
    pieces: Pieces,
    token: Token,
}

/// A gather list; the usual one costs no more than its piece.
enum Pieces {
    One(Piece),
    List(Box<[Piece]>),
}

impl Post {
    #[inline]
    pub(super) fn new(frame: &Frame, pieces: &[Piece], token: Token) -> Self {
        Self {
            frame: *frame,
            pieces: match pieces {
                [piece] => Pieces::One(*piece),
                list => Pieces::List(list.into()),
            },
            token,
        }
    }

    #[inline]
    fn pieces(&self) -> &[Piece] {
        match &self.pieces {
            Pieces::One(piece) => slice::from_ref(piece),
            Pieces::List(list) => list,
        }
    }
}

/// Arrays are indexed by [`Side`].
struct Link {
    ranks: [Rank; 2],
    ports: [Option<Port>; 2],
    posts: [VecDeque<Post>; 2],
    failed: [Option<LinkCause>; 2],
    /// The link the other way.
    back: usize,
    /// Whether the first message has passed the comparison of frames, and bytes of it moved.
    started: bool,
    moved: usize,
}

/// What the network knows of a rank.
struct Mailbox {
    news: News,
    done: VecDeque<Completion>,
    failures: VecDeque<(Port, LinkCause)>,
    /// The rank may be asleep.
    listening: bool,
    /// It wants to hear of messages that it has posted no receive for.
    curious: bool,
    gone: bool,
}

/// All links of a network.
pub(super) struct Links {
    policy: Policy,
    random: u64,
    index: HashMap<(Rank, Rank, u16), usize>,
    links: Vec<Link>,
    mailboxes: Vec<Mailbox>,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Links {
    pub(super) fn new(policy: Policy, news: &[News]) -> Self {
        Self {
            policy,
            random: mix(policy.seed),
            index: HashMap::new(),
            links: Vec::new(),
            mailboxes: news
                .iter()
                .map(|news| Mailbox {
                    news: news.clone(),
                    done: VecDeque::new(),
                    failures: VecDeque::new(),
                    listening: false,
                    curious: false,
                    gone: false,
                })
                .collect(),
            messages: 0,
            bytes: 0,
        }
    }

    /// Opens the link from `me` to `peer` and the one back for `port` of `me`.
    pub(super) fn open(&mut self, me: Rank, peer: Rank, channel: u16, port: Port) -> [usize; 2] {
        let out = self.link(me, peer, channel);
        let back = self.link(peer, me, channel);
        self.links[out].back = back;
        self.links[back].back = out;
        self.links[out].ports[Side::Sender as usize] = Some(port);
        self.links[back].ports[Side::Receiver as usize] = Some(port);
        [out, back]
    }

    fn link(&mut self, from: Rank, to: Rank, channel: u16) -> usize {
        let closed = [from, to].map(|rank| self.mailboxes[rank as usize].gone);
        let links = &mut self.links;
        *self.index.entry((from, to, channel)).or_insert_with(|| {
            let failed = if closed.contains(&true) {
                [Some(LinkCause::Closed), Some(LinkCause::Closed)]
            } else {
                [None, None]
            };
            links.push(Link {
                ranks: [from, to],
                ports: [None; 2],
                posts: [VecDeque::new(), VecDeque::new()],
                failed,
                back: links.len(),
                started: false,
                moved: 0,
            });
            links.len() - 1
        })
    }

    /// Why `side` of `link` cannot be used, if so.
    #[inline]
    pub(super) fn failure(&self, link: usize, side: Side) -> Option<LinkCause> {
        self.links[link].failed[side as usize].clone()
    }

    #[inline]
    pub(super) fn enqueue(&mut self, link: usize, side: Side, post: Post) {
        let link = &mut self.links[link];
        link.posts[side as usize].push_back(post);
        if side == Side::Sender && link.posts[Side::Receiver as usize].is_empty() {
            let receiver = &mut self.mailboxes[link.ranks[Side::Receiver as usize] as usize];
            if receiver.curious {
                receiver.wake();
            }
        }
    }

    /// A post under an instant policy: moves it at once if its counterpart is there, else keeps it.
    /// Says whether it is complete; only the counterpart's completion goes through a mailbox.
    #[inline]
    pub(super) fn meet(
        &mut self,
        at: usize,
        side: Side,
        frame: &Frame,
        pieces: &[Piece],
        token: Token,
    ) -> bool {
        let link = &mut self.links[at];
        let other = side.other();
        // Counterparts wait only while nothing is queued here: it would have met them. A failed end
        // has no posts.
        let Some(counterpart) = link.posts[other as usize].front() else {
            self.enqueue(at, side, Post::new(frame, pieces, token));
            return false;
        };
        let (compared, copied) = match side {
            Side::Sender => (
                counterpart.frame.compare(frame),
                (counterpart.pieces(), pieces),
            ),
            Side::Receiver => (
                frame.compare(&counterpart.frame),
                (pieces, counterpart.pieces()),
            ),
        };
        let moved = match compared {
            Ok(()) => memory::copy_bytes_across(copied.0, copied.1).map_err(|_| ()),
            Err(_) => Err(()),
        };
        let Ok(moved) = moved else {
            // The slow way finds out again whose fault it is, and tells.
            self.enqueue(at, side, Post::new(frame, pieces, token));
            self.advance(at, usize::MAX);
            return false;
        };
        let token = counterpart.token;
        link.posts[other as usize].pop_front();
        let (rank, port) = (link.ranks[other as usize], link.ports[other as usize]);
        self.messages += 1;
        self.bytes += moved as u64;
        self.complete(rank, port, other, token);
        true
    }

    /// Lets the policy move something on `link`.
    pub(super) fn step(&mut self, link: usize) {
        if !self.can_move(link) {
            return;
        }
        self.random = mix(self.random);
        if chance(self.random, self.policy.hold) {
            return;
        }
        let budget = match self.policy.chunk {
            usize::MAX => usize::MAX,
            chunk => 1 + (self.random >> 7) as usize % chunk.max(1),
        };
        self.advance(link, budget);
    }

    /// Whether both ends of `link` have posted.
    pub(super) fn can_move(&self, link: usize) -> bool {
        self.links[link].posts.iter().all(|posts| !posts.is_empty())
    }

    /// Moves up to `budget` bytes; a message's header counts as one.
    fn advance(&mut self, at: usize, mut budget: usize) {
        while budget > 0 {
            let link = &mut self.links[at];
            let [sends, recvs] = &link.posts;
            let (Some(send), Some(recv)) = (sends.front(), recvs.front()) else {
                return;
            };
            if !link.started {
                if let Err(mismatch) = recv.frame.compare(&send.frame) {
                    self.fail(at, Side::Receiver, mismatch.into());
                    return;
                }
                link.started = true;
                budget -= 1;
            }
            let whole = memory::total(send.pieces());
            match memory::copy_window(recv.pieces(), send.pieces(), link.moved, budget) {
                Err(revoked) => {
                    let sender = send.pieces().iter().any(|piece| !piece.is_live());
                    self.blame(at, sender, revoked);
                    return;
                }
                Ok(bytes) => {
                    link.moved += bytes;
                    self.bytes += bytes as u64;
                    budget -= bytes;
                }
            }
            if link.moved < whole {
                return;
            }
            link.started = false;
            link.moved = 0;
            self.messages += 1;
            for side in [Side::Sender, Side::Receiver] {
                let link = &mut self.links[at];
                let (rank, port) = (link.ranks[side as usize], link.ports[side as usize]);
                if let Some(post) = link.posts[side as usize].pop_front() {
                    self.complete(rank, port, side, post.token);
                }
            }
        }
    }

    #[inline]
    fn complete(&mut self, rank: Rank, port: Option<Port>, side: Side, token: Token) {
        let Some(port) = port else {
            return; // Who has posted has a port.
        };
        let mailbox = &mut self.mailboxes[rank as usize];
        mailbox.done.push_back(Completion {
            port,
            direction: side.direction(),
            token,
        });
        mailbox.there();
    }

    /// Wakes both ends of `link` if it can move now.
    pub(super) fn announce(&mut self, link: usize) {
        if self.can_move(link) {
            for rank in self.links[link].ranks {
                self.mailboxes[rank as usize].wake();
            }
        }
    }

    /// Takes the completions of `rank`.
    #[inline]
    pub(super) fn collect(&mut self, rank: Rank, done: &mut VecDeque<Completion>) {
        let mailbox = &mut self.mailboxes[rank as usize];
        if done.is_empty() {
            mem::swap(done, &mut mailbox.done);
        } else {
            done.append(&mut mailbox.done);
        }
        mailbox.settle();
    }

    /// Takes one failure of `rank` on a port that `may` be reported.
    pub(super) fn take_failure(
        &mut self,
        rank: Rank,
        may: impl Fn(Port) -> bool,
    ) -> Option<(Port, LinkCause)> {
        let mailbox = &mut self.mailboxes[rank as usize];
        let found = mailbox.failures.iter().position(|(port, _)| may(*port))?;
        let failure = mailbox.failures.remove(found);
        mailbox.settle();
        failure
    }

    /// The next news for `rank` notify its event.
    pub(super) fn listen(&mut self, rank: Rank) {
        let mailbox = &mut self.mailboxes[rank as usize];
        (mailbox.listening, mailbox.curious) = (true, false);
    }

    /// The first messages to `rank` that it has posted no receive for: from whom, on which channel. The next one
    /// notifies its event too.
    pub(super) fn unclaimed(&mut self, rank: Rank) -> Vec<(Rank, u16, Frame)> {
        let mailbox = &mut self.mailboxes[rank as usize];
        (mailbox.listening, mailbox.curious) = (true, true);
        let mut lying: Vec<_> = self
            .index
            .iter()
            .filter_map(|((from, to, channel), link)| {
                let [sends, recvs] = &self.links[*link].posts;
                let is_unclaimed = *to == rank && recvs.is_empty();
                let send = sends.front().filter(|_| is_unclaimed)?;
                Some((*from, *channel, send.frame))
            })
            .collect();
        lying.sort_unstable_by_key(|(from, channel, _)| (*from, *channel));
        lying
    }

    /// Memory was gone in the middle of a message: an error for whose it was, the end of the
    /// conversation for the other.
    #[cold]
    fn blame(&mut self, link: usize, sender: bool, revoked: Revoked) {
        let guilty = if sender { Side::Sender } else { Side::Receiver };
        self.fail(link, guilty, revoked.into());
        self.fail(link, guilty.other(), LinkCause::Closed);
    }

    /// Breaks the port whose `side` of `link` this is: its posts are withdrawn, and if there were
    /// any its rank is told.
    fn fail(&mut self, link: usize, side: Side, cause: LinkCause) {
        if self.links[link].failed[side as usize].is_some() {
            return;
        }
        let back = self.links[link].back;
        let mut posted = false;
        for (link, side) in [(link, side), (back, side.other())] {
            let link = &mut self.links[link];
            posted |= !link.posts[side as usize].is_empty();
            link.posts[side as usize].clear();
            link.failed[side as usize] = Some(cause.clone());
        }
        let link = &self.links[link];
        let mailbox = &mut self.mailboxes[link.ranks[side as usize] as usize];
        if let (true, Some(port)) = (posted, link.ports[side as usize]) {
            mailbox.failures.push_back((port, cause));
            mailbox.there();
        }
    }

    /// Takes back what the port of `links` (out, in) has posted. If there was something the port is
    /// closed for both ends; says whether.
    pub(super) fn withdraw(&mut self, [out, back]: [usize; 2]) -> bool {
        let mut posted = false;
        for (link, side) in [(out, Side::Sender), (back, Side::Receiver)] {
            let posts = &mut self.links[link].posts[side as usize];
            posted |= !posts.is_empty();
            posts.clear();
        }
        if posted {
            self.fail(out, Side::Sender, LinkCause::Closed);
            self.fail(out, Side::Receiver, LinkCause::Closed);
        }
        posted
    }

    /// Closes everything from and to `rank`.
    pub(super) fn depart(&mut self, rank: Rank) {
        self.mailboxes[rank as usize].gone = true;
        for link in 0..self.links.len() {
            if self.links[link].ranks.contains(&rank) {
                self.fail(link, Side::Sender, LinkCause::Closed);
                self.fail(link, Side::Receiver, LinkCause::Closed);
            }
        }
    }
}

impl Mailbox {
    #[inline]
    fn there(&mut self) {
        self.news.there.store(true, Ordering::Release);
        self.wake();
    }

    #[inline]
    fn wake(&mut self) {
        if self.listening {
            self.listening = false;
            self.news.event.notify();
        }
    }

    /// The flag says what is there, with the lock held.
    fn settle(&mut self) {
        let there = !self.done.is_empty() || !self.failures.is_empty();
        self.news.there.store(there, Ordering::Release);
    }
}

/// Whether something of probability `p` happens, decided by `random` bits.
pub(super) fn chance(random: u64, p: f64) -> bool {
    ((random >> 11) as f64) < p * (1u64 << 53) as f64
}
