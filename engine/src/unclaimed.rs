//! A message that came where nothing is posted: is its sender merely ahead, or does it call something else?
//!
//! A rank that broadcasts from another root than the rest hears from a peer that it expects nothing of, and waits for one that
//! sends nothing. No frame ever meets a receive, so nobody compares them. What lies there is compared here with what this
//! rank has called under the same number:
//!
//! | the message is of an operation that | it is |
//! |---|---|
//! | this rank has not called yet | ahead of time |
//! | has a receive to post on that FIFO still | about to be compared |
//! | this rank has called, with no receive for it | a mismatch, if what it says of the operation differs |
//!
//! Messages point to point are no mismatch: their receive may be called whenever the caller likes.

use unisono_contract::{Direction, Field, Frame, Mismatch, Opening, Unclaimed};
use unisono_core::Collective;

use crate::fifo::Fifo;
use crate::state::Life;

/// Operations that are remembered. A peer that is further behind differs in the number alone.
const KEPT: u64 = 64;

/// What the last collectives of this rank were.
#[derive(Debug)]
pub(crate) struct Recent {
    /// By sequence number, modulo their count.
    openings: Vec<Opening>,
    /// The sequence number that the next one will have.
    next: u64,
}

impl Recent {
    pub(crate) fn new() -> Recent {
        Recent {
            openings: vec![Opening::default(); KEPT as usize],
            next: 0,
        }
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Notes what this rank calls next.
    #[inline]
    pub(crate) fn push(&mut self, opening: &Opening) {
        self.openings[(self.next % KEPT) as usize] = *opening;
        self.next += 1;
    }

    /// What `found`, at endpoint `endpoint`, says otherwise than this rank.
    pub(crate) fn disagreement(
        &self,
        fifos: &[Fifo],
        life: Life,
        endpoint: usize,
        found: &Unclaimed,
    ) -> Option<Mismatch> {
        let theirs = &found.frame;
        let collective = theirs.opening?.collective;
        if collective == Collective::Send.code()
            || (theirs.group, theirs.epoch) != (life.group, life.epoch)
        {
            return None;
        }
        let Some(ago) = self.next.checked_sub(theirs.sequence).filter(|a| *a > 0) else {
            return None; // The peer is ahead.
        };
        let is_it = |fifo: &&Fifo| {
            fifo.direction == Direction::Recv
                && (fifo.endpoint, fifo.port) == (endpoint, found.port)
        };
        if fifos
            .iter()
            .find(is_it)
            .is_some_and(|f| !f.queue.is_empty())
        {
            return None; // The receive that comes next will meet it.
        }
        if ago > KEPT {
            return Some(Mismatch {
                field: Field::Sequence,
                mine: self.next - 1,
                theirs: theirs.sequence,
            });
        }
        let opening = self.openings[(theirs.sequence % KEPT) as usize];
        let mine = Frame {
            check: opening.check(),
            opening: Some(opening),
            ..*theirs
        };
        mine.compare(theirs).err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_contract::Port;

    const LIFE: Life = Life { group: 0, epoch: 0 };

    fn opening(root: u32) -> Opening {
        Opening {
            collective: Collective::Broadcast.code(),
            root,
            ..Opening::default()
        }
    }

    /// A first message of operation `sequence` from a peer that says so of it.
    fn found(sequence: u64, opening: Opening) -> Unclaimed {
        Unclaimed {
            port: Port(0),
            peer: 1,
            frame: Frame {
                sequence,
                check: opening.check(),
                opening: Some(opening),
                ..Frame::default()
            },
        }
    }

    /// After `calls` broadcasts, number n from root n.
    fn recent(calls: u32) -> Recent {
        let mut recent = Recent::new();
        (0..calls).for_each(|root| recent.push(&opening(root)));
        recent
    }

    fn disagreement(recent: &Recent, found: &Unclaimed) -> Option<Mismatch> {
        recent.disagreement(&[], LIFE, 0, found)
    }

    #[test]
    fn another_root_of_an_operation_that_was_called_is_a_mismatch() {
        let mismatch = |mine, theirs| Mismatch {
            field: Field::Root,
            mine,
            theirs,
        };
        let recent = recent(3);
        for sequence in 0..3 {
            let found = found(sequence, opening(9));
            assert_eq!(disagreement(&recent, &found), Some(mismatch(sequence, 9)));
        }
    }

    #[test]
    fn a_peer_that_is_ahead_is_none() {
        assert_eq!(disagreement(&recent(3), &found(3, opening(9))), None);
        assert_eq!(disagreement(&recent(0), &found(0, opening(9))), None);
    }

    #[test]
    fn messages_and_other_groups_are_none() {
        let recent = recent(3);
        let send = Opening {
            collective: Collective::Send.code(),
            ..Opening::default()
        };
        assert_eq!(disagreement(&recent, &found(1, send)), None);
        let mut other = found(1, opening(9));
        other.frame.group = 1;
        assert_eq!(disagreement(&recent, &other), None);
        let mut later = found(1, opening(9));
        later.frame.opening = None;
        assert_eq!(disagreement(&recent, &later), None);
    }

    #[test]
    fn an_operation_that_is_long_forgotten_differs_in_its_number() {
        let recent = recent(KEPT as u32 + 7);
        let mismatch = Mismatch {
            field: Field::Sequence,
            mine: KEPT + 6,
            theirs: 6,
        };
        assert_eq!(disagreement(&recent, &found(6, opening(6))), Some(mismatch));
        assert_eq!(disagreement(&recent, &found(7, opening(7))), None);
        assert!(disagreement(&recent, &found(7, opening(8))).is_some());
    }
}
