//! Failures: who hears of them, and when.

use std::io;
use std::sync::atomic::Ordering;

use unisono_contract::LinkCause;
use unisono_control::{Cause, Kind};
use unisono_core::Rank;

use super::{Happening, World};
use crate::fault::Fault;

impl World {
    /// `rank` ends a group; the first cause counts. It knows the cause that counts from now on.
    pub(crate) fn abort(&mut self, group: u32, rank: Rank, cause: Cause) {
        if self.ranks[rank as usize].dead.is_some() {
            return;
        }
        let known = &mut self.causes[group as usize];
        if known.is_none() {
            *known = Some(cause);
            let at = self.now.saturating_add(self.settings.propagation_ps);
            self.schedule(at, Happening::Tell(group));
        }
        let seat = self.seat(group, rank);
        self.knows(seat);
    }

    /// Ends all groups for all ranks at once.
    pub(crate) fn abort_all(&mut self, cause: &Cause) {
        for group in 0..self.causes.len() {
            self.causes[group].get_or_insert_with(|| cause.clone());
            self.tell_everybody(group as u32);
        }
    }

    pub(super) fn tell_everybody(&mut self, group: u32) {
        for rank in 0..self.ranks.len() as Rank {
            if self.ranks[rank as usize].is_running() {
                let seat = self.seat(group, rank);
                self.knows(seat);
                self.fire(rank);
            }
        }
    }

    fn knows(&self, seat: usize) {
        self.signals.seats[seat]
            .knows
            .store(true, Ordering::Release);
    }

    /// What `rank` knows of why a group failed, once it knows.
    pub(crate) fn aborted(&self, group: u32, rank: Rank) -> Option<Cause> {
        let own = self.ranks[rank as usize].own_cause.as_ref();
        own.or(self.causes[group as usize].as_ref()).cloned()
    }

    /// A fault whose time has come.
    pub(super) fn strike(&mut self, index: usize) {
        match self.settings.faults[index] {
            Fault::Crash { rank, .. } => self.crash(rank),
            Fault::Stall { rank, for_ps, .. } => {
                let until = self.now.saturating_add(for_ps);
                let state = &mut self.ranks[rank as usize];
                state.stalled_until = state.stalled_until.max(until);
            }
            Fault::Down { link, .. } => {
                let kind = io::ErrorKind::TimedOut;
                let cause = LinkCause::from(io::Error::new(kind, "the link is down"));
                self.break_link(link.a, link.b, &cause);
                if !link.one_way {
                    self.break_link(link.b, link.a, &cause);
                }
            }
            _ => {}
        }
    }

    /// `rank` stops, unless it has ended.
    fn crash(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank as usize];
        if !state.is_running() {
            return;
        }
        state.dead = Some(self.now);
        let text = "crashed by a fault".to_owned();
        state.own_cause = Some(Cause::new(rank, None, Kind::Other { text }));
        for group in 0..self.causes.len() as u32 {
            let seat = self.seat(group, rank);
            self.seats[seat].done.clear();
            self.seats[seat].failures.clear();
            self.knows(seat);
        }
        self.fire(rank);
        let at = self.now.saturating_add(self.settings.detection_ps);
        self.schedule(at, Happening::Detect(rank));
    }

    /// The control plane has missed `rank`: its links close, and whoever still runs is told.
    pub(super) fn detect(&mut self, rank: Rank) {
        for index in 0..self.fifos.len() as u32 {
            let key = self.fifos[index as usize].key;
            if key.from == rank {
                self.close(index);
            } else if key.to == rank {
                self.gone(index);
            }
        }
        let origin = self.ranks.iter().position(|r| r.is_running());
        if let Some(origin) = origin {
            self.abort_all(&Cause::new(origin as Rank, None, Kind::Lost { rank }));
        }
    }
}
