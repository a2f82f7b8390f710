//! Rank 0's list of who has come: the rendezvous as a state machine without sockets and without a clock.
//!
//! Tell it what happened ([`hello`](Roster::hello), [`frame`](Roster::frame), [`closed`](Roster::closed),
//! [`tick`](Roster::tick) and the `own_*` calls), then do what [`deed`](Roster::deed) says until it says `None`.
//! Times are durations since the rendezvous began.
//!
//! ```text
//! Meeting ---- all ranks have said hello and shown their cards ----> Connecting ---- all barriers ----> Joined
//!    |                                                                   |
//!    +-------- duplicate, out of range, different, deadline -------------+------> Failed: all who have come, and all
//!                                                                                 who still come, get the same refusal
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use unisono_core::Rank;

use crate::Refusal;
use crate::wire::{Cards, Frame, Hello, VERSION};

/// A connection, as the roster knows it.
pub(crate) type LinkId = u64;

/// The number of the barrier that ends the rendezvous.
pub(crate) const CONNECTED: u32 = 0;

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(crate) enum Deed {
    /// Send this.
    Send(LinkId, Frame),
    /// Close the connection, after what was sent.
    Close(LinkId),
    /// All have said hello: listen, and tell [`Roster::own_card`].
    Listen,
    /// All cards are there: connect to the peers, and tell [`Roster::own_arrival`].
    Connect(Cards),
    /// The group stands: the links of all ranks but 0.
    Joined(BTreeMap<Rank, LinkId>),
    /// The group does not form.
    Failed(Refusal),
}

/// Somebody at the door.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) link: LinkId,
    pub(crate) rank: Rank,
    /// For messages to people.
    pub(crate) address: String,
}

#[derive(Debug, PartialEq)]
enum Phase {
    Meeting,
    Connecting,
    Joined,
    Failed(Refusal),
}

#[derive(Debug)]
struct Member {
    link: Option<LinkId>,
    address: String,
    hello: Hello,
    card: Option<Vec<u8>>,
    arrived: bool,
}

#[derive(Debug)]
pub(crate) struct Roster {
    phase: Phase,
    nonce: u64,
    deadline: Duration,
    listening: bool,
    members: BTreeMap<Rank, Member>,
    ranks: HashMap<LinkId, Rank>,
    /// Ranks that came after the failure was known, and were told.
    told: BTreeMap<Rank, ()>,
    deeds: VecDeque<Deed>,
}

impl Roster {
    /// Rank 0 has come, with `mine`; the others have until `deadline`. All ranks get `nonce`.
    pub(crate) fn new(mine: Hello, nonce: u64, deadline: Duration) -> Self {
        let me = Member {
            link: None,
            address: "rank 0 itself".to_owned(),
            hello: mine,
            card: None,
            arrived: false,
        };
        let mut roster = Self {
            phase: Phase::Meeting,
            nonce,
            deadline,
            listening: false,
            members: BTreeMap::from([(0, me)]),
            ranks: HashMap::new(),
            told: BTreeMap::new(),
            deeds: VecDeque::new(),
        };
        roster.listen_once_all_are_here();
        roster
    }

    /// What to do next; ask until it says `None`.
    pub(crate) fn deed(&mut self) -> Option<Deed> {
        self.deeds.pop_front()
    }

    /// When [`tick`](Self::tick) must be called at the latest.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The ranks that are waited for.
    pub(crate) fn missing(&self) -> Vec<Rank> {
        let here = |rank: &Rank| match (&self.phase, self.members.get(rank)) {
            (Phase::Meeting, member) => member.is_some(),
            (_, member) => member.is_some_and(|m| m.arrived),
        };
        (0..self.size()).filter(|rank| !here(rank)).collect()
    }

    /// Whether nobody is left who should still hear of the failure.
    pub(crate) fn all_told(&self) -> bool {
        let told = |rank| self.members.contains_key(&rank) || self.told.contains_key(&rank);
        (0..self.size()).all(told)
    }

    /// Somebody who speaks our language came. `hello`: or the version that he speaks instead of ours.
    pub(crate) fn hello(&mut self, now: Duration, visitor: Visitor, hello: Result<Hello, u16>) {
        let Visitor { link, rank, .. } = visitor;
        if let Phase::Failed(refusal) = &self.phase {
            let refusal = Box::new(refusal.clone());
            self.told.insert(rank, ());
            self.deeds
                .extend([Deed::Send(link, Frame::Refuse(refusal)), Deed::Close(link)]);
            return;
        }
        let mine = &self.members[&0].hello;
        let problem = match &hello {
            Err(version) => Some(Refusal::Differs {
                rank,
                what: "wire version".to_owned(),
                ours: VERSION.to_string(),
                theirs: version.to_string(),
            }),
            Ok(theirs) if theirs.ticket != mine.ticket => {
                // Somebody who followed an old file: not one of ours.
                self.deeds
                    .extend([Deed::Send(link, Frame::Retry), Deed::Close(link)]);
                return;
            }
            Ok(theirs) => mine.terms.difference(rank, &theirs.terms),
        };
        match (problem, hello) {
            (Some(refusal), _) => self.refuse(link, rank, refusal),
            (None, Ok(hello)) => self.admit(now, visitor, hello),
            (None, Err(_)) => {}
        }
    }

    /// A member said something.
    pub(crate) fn frame(&mut self, link: LinkId, frame: Frame) {
        let Some(&rank) = self.ranks.get(&link) else {
            return;
        };
        let Some(member) = self.members.get_mut(&rank) else {
            return;
        };
        match (frame, &self.phase) {
            (Frame::Card(card), Phase::Meeting) => {
                member.card = Some(card);
                self.connect_once_all_cards_are_here();
            }
            (Frame::Barrier(CONNECTED), Phase::Connecting) => {
                member.arrived = true;
                self.join_once_all_have_arrived();
            }
            (Frame::Refuse(refusal), _) => self.fail(*refusal),
            (Frame::Heartbeat, _) => {}
            // Whoever says something else is no use as a member.
            _ => self.closed(link),
        }
    }

    /// A connection ended.
    pub(crate) fn closed(&mut self, link: LinkId) {
        let Some(rank) = self.ranks.remove(&link) else {
            return;
        };
        self.deeds.push_back(Deed::Close(link));
        match self.phase {
            Phase::Meeting => {
                // It may be started again, or come again.
                self.members.remove(&rank);
            }
            Phase::Connecting => self.fail(Refusal::Lost { rank }),
            Phase::Joined | Phase::Failed(_) => {}
        }
    }

    /// Rank 0 listens.
    pub(crate) fn own_card(&mut self, card: Vec<u8>) {
        if let Some(me) = self.members.get_mut(&0) {
            me.card = Some(card);
        }
        self.connect_once_all_cards_are_here();
    }

    /// Rank 0 is connected to its peers.
    pub(crate) fn own_arrival(&mut self) {
        if let Some(me) = self.members.get_mut(&0) {
            me.arrived = true;
        }
        self.join_once_all_have_arrived();
    }

    /// Rank 0 cannot listen or connect.
    pub(crate) fn own_failure(&mut self, text: String) {
        self.fail(Refusal::Connect { rank: 0, text });
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Duration) {
        if now < self.deadline {
            return;
        }
        let millis = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
        let ranks = self.missing();
        match self.phase {
            Phase::Meeting if !ranks.is_empty() => self.fail(Refusal::Missing { ranks, millis }),
            Phase::Meeting => {
                let silent = self.members.iter().filter(|(_, m)| m.card.is_none());
                let ranks = silent.map(|(rank, _)| *rank).collect();
                self.fail(Refusal::Unready { ranks, millis });
            }
            Phase::Connecting => self.fail(Refusal::Unready { ranks, millis }),
            Phase::Joined | Phase::Failed(_) => {}
        }
    }

    fn size(&self) -> Rank {
        self.members[&0].hello.terms.size
    }

    fn admit(&mut self, now: Duration, visitor: Visitor, hello: Hello) {
        let Visitor {
            link,
            rank,
            address,
        } = visitor;
        let size = self.size();
        if rank >= size {
            return self.refuse(link, rank, Refusal::OutOfRange { rank, size });
        }
        if let Some(known) = self.members.get(&rank) {
            let again = known.hello.instance == hello.instance && self.phase == Phase::Meeting;
            match known.link {
                // The same process: its first connection broke, and we have not heard of that yet.
                Some(old) if again => {
                    self.ranks.remove(&old);
                    self.deeds.push_back(Deed::Close(old));
                }
                _ => {
                    let refusal = Refusal::Duplicate {
                        rank,
                        first: known.address.clone(),
                        second: address,
                    };
                    return self.refuse(link, rank, refusal);
                }
            }
        }
        // The most impatient rank decides: so nobody waits longer than it was told to, and all hear the same.
        let patience = Duration::from_millis(hello.patience);
        self.deadline = self.deadline.min(now.saturating_add(patience));
        let member = Member {
            link: Some(link),
            address,
            hello,
            card: None,
            arrived: false,
        };
        self.members.insert(rank, member);
        self.ranks.insert(link, rank);
        let nonce = self.nonce;
        self.deeds
            .push_back(Deed::Send(link, Frame::Accepted { nonce }));
        self.listen_once_all_are_here();
    }

    /// The group fails because of somebody who is no member.
    fn refuse(&mut self, link: LinkId, rank: Rank, refusal: Refusal) {
        self.told.insert(rank, ());
        self.deeds.extend([
            Deed::Send(link, Frame::Refuse(Box::new(refusal.clone()))),
            Deed::Close(link),
        ]);
        self.fail(refusal);
    }

    fn fail(&mut self, refusal: Refusal) {
        if matches!(self.phase, Phase::Joined | Phase::Failed(_)) {
            return;
        }
        for link in self.members.values().filter_map(|m| m.link) {
            let frame = Frame::Refuse(Box::new(refusal.clone()));
            self.deeds
                .extend([Deed::Send(link, frame), Deed::Close(link)]);
        }
        self.deeds.push_back(Deed::Failed(refusal.clone()));
        self.phase = Phase::Failed(refusal);
    }

    fn listen_once_all_are_here(&mut self) {
        if !self.listening && self.members.len() == self.size() as usize {
            self.listening = true;
            self.deeds.push_back(Deed::Listen);
        }
    }

    fn connect_once_all_cards_are_here(&mut self) {
        let all = self.members.len() == self.size() as usize;
        if self.phase != Phase::Meeting || !all || self.members.values().any(|m| m.card.is_none()) {
            return;
        }
        self.phase = Phase::Connecting;
        let cards = Cards {
            cards: self
                .members
                .values()
                .filter_map(|m| m.card.clone())
                .collect(),
            features: self
                .members
                .values()
                .fold(u64::MAX, |all, m| all & m.hello.features),
            limits: smallest(self.members.values().map(|m| m.hello.limits.as_slice())),
        };
        for link in self.members.values().filter_map(|m| m.link) {
            let frame = Frame::Cards(Box::new(cards.clone()));
            self.deeds.push_back(Deed::Send(link, frame));
        }
        self.deeds.push_back(Deed::Connect(cards));
    }

    fn join_once_all_have_arrived(&mut self) {
        if self.phase != Phase::Connecting || self.members.values().any(|m| !m.arrived) {
            return;
        }
        self.phase = Phase::Joined;
        let links = self.members.iter();
        let links: BTreeMap<Rank, LinkId> =
            links.filter_map(|(r, m)| Some((*r, m.link?))).collect();
        for link in links.values() {
            self.deeds
                .push_back(Deed::Send(*link, Frame::Barrier(CONNECTED)));
        }
        self.deeds.push_back(Deed::Joined(links));
    }
}

/// The smallest of each; a limit that a rank does not know is not used.
fn smallest<'a>(mut limits: impl Iterator<Item = &'a [u64]>) -> Vec<u64> {
    let mut all = limits.next().unwrap_or_default().to_vec();
    for one in limits {
        all.truncate(one.len());
        for (smallest, limit) in all.iter_mut().zip(one) {
            *smallest = (*smallest).min(*limit);
        }
    }
    all
}

#[cfg(test)]
mod tests;
