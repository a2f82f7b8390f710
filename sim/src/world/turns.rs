//! When programs run, end, and cannot go on.

use unisono_control::{Cause, Kind};
use unisono_core::Rank;

use super::{Happening, World};
use crate::error::SimError;

impl World {
    /// The program of `rank` has ended at `at`.
    pub(crate) fn finish(&mut self, rank: Rank, at: u64, panicked: bool) {
        if self.ranks[rank as usize].is_running() {
            for group in 0..self.causes.len() as u32 {
                if panicked {
                    let cause = Cause::new(rank, None, Kind::Panicked);
                    self.abort(group, rank, cause);
                }
            }
            self.note(at, u64::from(rank), u64::MAX, 0);
        }
        self.ranks[rank as usize].finished = Some(at);
    }

    /// Puts a rank whose core stands still off until it runs again; false if it may run now.
    pub(crate) fn postpone(&mut self, rank: Rank) -> bool {
        let Some(until) = self.stalled(rank) else {
            return false;
        };
        self.ranks[rank as usize].is_postponed = true;
        self.schedule(until, Happening::Wake(rank));
        true
    }

    /// Whether the rank was put off, once.
    pub(crate) fn take_postponed(&mut self, rank: Rank) -> bool {
        std::mem::take(&mut self.ranks[rank as usize].is_postponed)
    }

    /// Nothing can happen any more: says why, and fails what is under way, so that the ranks can end. False when that
    /// was done already.
    pub(crate) fn give_up(&mut self) -> bool {
        if self.stuck.is_some() {
            return false;
        }
        let deadlock = self.deadlock();
        let origin = deadlock.chain.first().map_or(0, |w| w.rank);
        let (stuck, text) = match self.idle() {
            Some(rank) if self.is_async => {
                let stuck = SimError::Foreign { rank };
                (
                    stuck,
                    format!("rank {rank} awaits what is no operation of its group"),
                )
            }
            _ => {
                let text = format!("deadlock: {deadlock}");
                let at_ps = self.now;
                (SimError::Deadlock { at_ps, deadlock }, text)
            }
        };
        self.stuck = Some(stuck);
        self.abort_all(&Cause::new(origin, None, Kind::Other { text }));
        true
    }
}
