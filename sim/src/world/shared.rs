//! The lock around the world, and what is read without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unisono_contract::Event;
use unisono_core::Rank;

use super::{Settings, World};

/// What of a rank is read without the lock.
#[derive(Debug, Default)]
pub(crate) struct RankSignals {
    /// Its local work lasts until then, in picoseconds.
    pub(crate) computes_until: AtomicU64,
    /// What its thread sleeps on, if it has one.
    turn: Condvar,
}

/// What of a seat (a rank in a group) is read without the lock.
#[derive(Debug, Default)]
pub(crate) struct SeatSignals {
    /// The world has completions or failures for its endpoint.
    pub(crate) news: AtomicBool,
    /// It knows that its group has failed.
    pub(crate) knows: AtomicBool,
    /// What its endpoint is slept on by.
    pub(crate) event: Event,
    /// What its control plane is slept on by.
    pub(crate) abort_event: Event,
}

/// What is read without the lock.
#[derive(Debug)]
pub(crate) struct Signals {
    /// The clock, in picoseconds.
    pub(super) clock: AtomicU64,
    pub(crate) ranks: Vec<RankSignals>,
    /// Group by group.
    pub(crate) seats: Vec<SeatSignals>,
    /// What sleeps until the threads of all ranks have ended.
    pub(crate) ended: Condvar,
}

/// A world and what is known of it outside of its lock.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    pub(crate) signals: Arc<Signals>,
}

impl Shared {
    /// A world of `size` ranks with room for so many groups.
    pub(crate) fn new(size: Rank, groups: u32, settings: Settings) -> Arc<Shared> {
        let seats = groups as usize * size as usize;
        let signals = Arc::new(Signals {
            clock: AtomicU64::new(0),
            ranks: (0..size).map(|_| RankSignals::default()).collect(),
            seats: (0..seats).map(|_| SeatSignals::default()).collect(),
            ended: Condvar::new(),
        });
        let world = World::new(groups, settings, Arc::clone(&signals));
        Arc::new(Shared {
            world: Mutex::new(world),
            signals,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until it is the turn of `rank`.
    pub(crate) fn wait_turn<'a>(
        &self,
        rank: Rank,
        mut world: MutexGuard<'a, World>,
    ) -> MutexGuard<'a, World> {
        while world.turn != Some(rank) {
            world = self.signals.ranks[rank as usize]
                .turn
                .wait(world)
                .unwrap_or_else(PoisonError::into_inner);
        }
        world
    }

    /// Sleeps until a rank has ended, or for so long in real time: then true.
    pub(crate) fn wait_end<'a>(
        &self,
        world: MutexGuard<'a, World>,
        limit: Duration,
    ) -> (MutexGuard<'a, World>, bool) {
        let ended = self.signals.ended.wait_timeout(world, limit);
        let (world, waited) = ended.unwrap_or_else(PoisonError::into_inner);
        (world, waited.timed_out())
    }

    /// Time as `rank` sees it: its own work counts too.
    pub(crate) fn now_at(&self, rank: Rank) -> u64 {
        let works = &self.signals.ranks[rank as usize].computes_until;
        let clock = self.signals.clock.load(Ordering::Relaxed);
        clock.max(works.load(Ordering::Relaxed))
    }

    /// Tells whoever sleeps that something happened for `rank`.
    pub(crate) fn notify(&self, rank: Rank) {
        let size = self.signals.ranks.len();
        for seat in self.signals.seats.iter().skip(rank as usize).step_by(size) {
            if seat.news.load(Ordering::Relaxed) {
                seat.event.notify();
            }
            if seat.knows.load(Ordering::Relaxed) {
                seat.abort_event.notify();
            }
        }
    }

    /// Gives the turn to the thread of `rank`.
    pub(crate) fn give_turn(&self, world: &mut World, rank: Rank) {
        world.turns += 1;
        world.turn = Some(rank);
        self.signals.ranks[rank as usize].turn.notify_one();
    }
}
