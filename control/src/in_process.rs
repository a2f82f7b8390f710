//! The control plane between threads: one shared word.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use unisono_contract::Event;

use crate::{Cause, Control, timer};

/// The control plane of one rank among threads of one process.
#[derive(Debug, Clone)]
pub struct InProcess {
    shared: Arc<Shared>,
    event: Event,
}

#[derive(Debug)]
struct Shared {
    failed: AtomicBool,
    cause: OnceLock<Cause>,
    events: Vec<Event>,
}

/// The control planes of a group of threads, in rank order; `events` wake the ranks.
pub fn in_process(events: Vec<Event>) -> Vec<InProcess> {
    let shared = Arc::new(Shared {
        failed: AtomicBool::new(false),
        cause: OnceLock::new(),
        events: events.clone(),
    });
    events
        .into_iter()
        .map(|event| InProcess {
            shared: Arc::clone(&shared),
            event,
        })
        .collect()
}

impl Control for InProcess {
    fn abort(&self, cause: Cause) {
        if self.shared.cause.set(cause).is_ok() {
            // Release: who sees the flag sees the cause.
            self.shared.failed.store(true, Ordering::Release);
            self.shared.events.iter().for_each(Event::notify);
        }
    }

    fn aborted(&self) -> Option<Cause> {
        if !self.shared.failed.load(Ordering::Acquire) {
            return None;
        }
        self.shared.cause.get().cloned()
    }

    fn event(&self) -> &Event {
        &self.event
    }

    fn grace(&self) -> Duration {
        // A rank that finds a mismatch breaks the link first and tells why a moment later.
        Duration::from_millis(200)
    }

    fn wake_after(&self, delay: Duration, event: &Event) {
        timer::wake_after(delay, event);
    }
}
