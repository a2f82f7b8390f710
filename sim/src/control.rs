//! [`SimControl`]: the control plane in virtual time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use unisono_contract::Event;
use unisono_control::{Cause, Control};
use unisono_core::Rank;

use crate::world::Shared;

/// The control plane of one rank: an abort reaches the others after the time set for it.
pub(crate) struct SimControl {
    pub(crate) shared: Arc<Shared>,
    pub(crate) group: u32,
    pub(crate) rank: Rank,
    pub(crate) seat: usize,
}

impl Control for SimControl {
    fn abort(&self, cause: Cause) {
        self.shared.lock().abort(self.group, self.rank, cause);
    }

    fn aborted(&self) -> Option<Cause> {
        let knows = &self.shared.signals.seats[self.seat].knows;
        if !knows.load(Ordering::Acquire) {
            return None;
        }
        self.shared.lock().aborted(self.group, self.rank)
    }

    fn event(&self) -> &Event {
        let seat = &self.shared.signals.seats[self.seat];
        &seat.abort_event
    }

    fn grace(&self) -> Duration {
        // Real time must not pass. Nor is it needed: who blames a peer is told the first cause instead.
        Duration::ZERO
    }

    fn wake_after(&self, delay: Duration, event: &Event) {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let delay_ps = delay.saturating_mul(1000);
        self.shared.lock().alarm(delay_ps, event.clone());
    }
}
