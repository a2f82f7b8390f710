//! What the world knows of a rank, and of its seat in a group.

use std::collections::VecDeque;

use unisono_contract::{Completion, LinkCause, Port};
use unisono_control::Cause;

/// A rank.
#[derive(Debug, Default)]
pub(crate) struct RankState {
    /// When its core is free, in picoseconds.
    pub(crate) core_free: u64,
    /// Its core stands still until then.
    pub(crate) stalled_until: u64,
    /// When it crashed.
    pub(crate) dead: Option<u64>,
    /// When its program ended.
    pub(crate) finished: Option<u64>,
    /// Among the ranks to run.
    pub(crate) is_fired: bool,
    /// It was woken while its core stood still.
    pub(crate) is_postponed: bool,
    /// Its thread waits for something outside of this world, and has lost its turn.
    pub(crate) is_away: bool,
    /// When it is to be woken at the latest.
    pub(crate) alarm: Option<u64>,
    /// A cause that only this rank gets.
    pub(crate) own_cause: Option<Cause>,
}

impl RankState {
    /// Whether its program still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.dead.is_none() && self.finished.is_none()
    }
}

/// A rank in a group.
#[derive(Debug, Default)]
pub(crate) struct SeatState {
    /// Completions not polled yet.
    pub(crate) done: Vec<Completion>,
    /// Broken ports not told yet.
    pub(crate) failures: VecDeque<(Port, LinkCause)>,
}
