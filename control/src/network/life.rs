//! A group after it has formed: who lives, who left, and which failure was the first. Without sockets, without a clock.
//!
//! The group is a star: rank 0 has a connection to everybody, the others have one to rank 0. Rank 0 decides which cause
//! was the first, and tells all, whoever noticed it; so a rank that notices something asks rank 0 and believes the
//! answer. Rank 0 also compares what ranks wait for in vain. Tell it what happened, then do what [`act`](Life::act) says until it says `None`.

use std::collections::{BTreeMap, VecDeque};

use unisono_core::Rank;

use crate::cause::stalled::Reports;
use crate::wire::Frame;
use crate::{Cause, Kind, Stalled};

/// Ticks without a word after which a peer is lost. Ticks, not time: a process that was stopped itself has heard
/// nothing either, and gives its peers the time to be heard.
pub(crate) const SILENT_TICKS: u32 = 20;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// Send this.
    Send(Rank, Frame),
    /// Close the connection, after what was sent.
    Close(Rank),
    /// The group has failed.
    Failed(Cause),
}

#[derive(Debug)]
pub(crate) struct Life {
    me: Rank,
    /// Ticks since each connected peer was heard.
    peers: BTreeMap<Rank, u32>,
    cause: Option<Cause>,
    /// What this rank has reported and rank 0 has not answered yet.
    reported: Option<Cause>,
    /// At rank 0: what ranks wait for in vain.
    stalled: Reports,
    acts: VecDeque<Act>,
}

impl Life {
    /// Rank `me`, connected to `peers`.
    pub(crate) fn new(me: Rank, peers: impl IntoIterator<Item = Rank>) -> Self {
        Self {
            me,
            peers: peers.into_iter().map(|rank| (rank, 0)).collect(),
            cause: None,
            reported: None,
            stalled: Reports::default(),
            acts: VecDeque::new(),
        }
    }

    /// What to do next; ask until it says `None`.
    pub(crate) fn act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// A peer said something.
    pub(crate) fn heard(&mut self, rank: Rank, frame: Frame) {
        let Some(silent) = self.peers.get_mut(&rank) else {
            return;
        };
        *silent = 0;
        match frame {
            Frame::Heartbeat => {}
            Frame::Bye => {
                // Nothing can be heard through rank 0 any more; everybody else leaves alone.
                if rank == 0 {
                    self.acts.push_back(Act::Send(rank, Frame::Bye));
                }
                self.part(rank);
                if let Some(cause) = self.reported.take() {
                    self.fail(cause);
                }
            }
            Frame::Abort { epoch: 0, cause } => self.fail(*cause),
            Frame::Stalled { epoch: 0, report } if self.me == 0 => self.compare(rank, *report),
            // A later version may say more.
            _ => {}
        }
    }

    /// The connection to a peer ended: without a farewell, its process has.
    pub(crate) fn closed(&mut self, rank: Rank) {
        if self.peers.contains_key(&rank) {
            self.part(rank);
            let lost = Cause::new(self.me, None, Kind::Lost { rank });
            let cause = self.reported.take().unwrap_or(lost);
            self.fail(cause);
        }
    }

    /// Half a second has passed.
    pub(crate) fn tick(&mut self) {
        let mut lost = Vec::new();
        for (rank, silent) in &mut self.peers {
            *silent += 1;
            if *silent > SILENT_TICKS {
                lost.push(*rank);
            }
            self.acts.push_back(Act::Send(*rank, Frame::Heartbeat));
        }
        for rank in lost {
            self.closed(rank);
        }
    }

    /// This rank has noticed a failure.
    pub(crate) fn abort(&mut self, cause: Cause) {
        if self.cause.is_some() || self.reported.is_some() {
            return;
        }
        if self.me != 0 && self.peers.contains_key(&0) {
            self.acts.push_back(Act::Send(0, abort_of(&cause)));
            self.reported = Some(cause);
        } else {
            self.fail(cause);
        }
    }

    /// This rank has waited long for an operation.
    pub(crate) fn stalled(&mut self, report: Stalled) {
        if self.me == 0 {
            self.compare(0, report);
        } else if self.peers.contains_key(&0) {
            let report = Box::new(report);
            let frame = Frame::Stalled { epoch: 0, report };
            self.acts.push_back(Act::Send(0, frame));
        }
    }

    fn compare(&mut self, rank: Rank, report: Stalled) {
        if let Some(cause) = self.stalled.note(rank, report) {
            self.fail(cause);
        }
    }

    /// This rank leaves.
    pub(crate) fn leave(&mut self) {
        for rank in self.peers.keys() {
            self.acts.push_back(Act::Send(*rank, Frame::Bye));
        }
        while let Some((&rank, _)) = self.peers.first_key_value() {
            self.part(rank);
        }
    }

    fn part(&mut self, rank: Rank) {
        self.peers.remove(&rank);
        self.acts.push_back(Act::Close(rank));
    }

    fn fail(&mut self, cause: Cause) {
        if self.cause.is_some() {
            return;
        }
        if self.me == 0 {
            for rank in self.peers.keys() {
                self.acts.push_back(Act::Send(*rank, abort_of(&cause)));
            }
        }
        self.reported = None;
        self.acts.push_back(Act::Failed(cause.clone()));
        self.cause = Some(cause);
    }
}

fn abort_of(cause: &Cause) -> Frame {
    Frame::Abort {
        epoch: 0,
        cause: Box::new(cause.clone()),
    }
}

#[cfg(test)]
mod tests;
