//! The control plane between threads: one shared word, and a table for those who wait in vain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use unisono_contract::Event;
use unisono_core::Rank;

use crate::cause::stalled::Reports;
use crate::{Cause, Control, Stalled, timer};

/// The control plane of one rank among threads of one process.
#[derive(Debug, Clone)]
pub struct InProcess {
    rank: Rank,
    shared: Arc<Shared>,
    event: Event,
}

#[derive(Debug)]
struct Shared {
    failed: AtomicBool,
    cause: OnceLock<Cause>,
    events: Vec<Event>,
    reports: Mutex<Reports>,
}

/// The control planes of a group of threads, in rank order; `events` wake the ranks.
pub fn in_process(events: Vec<Event>) -> Vec<InProcess> {
    let shared = Arc::new(Shared {
        failed: AtomicBool::new(false),
        cause: OnceLock::new(),
        events: events.clone(),
        reports: Mutex::default(),
    });
    events
        .into_iter()
        .zip(0..)
        .map(|(event, rank)| InProcess {
            rank,
            shared: Arc::clone(&shared),
            event,
        })
        .collect()
}

impl Control for InProcess {
    fn abort(&self, cause: Cause) {
        let is_first = self.shared.cause.set(cause).is_ok();
        // Release: who sees the flag sees the cause. Who comes second raises it too: when he returns there is a cause, and
        // the first one may not have come so far.
        self.shared.failed.store(true, Ordering::Release);
        if is_first {
            self.shared.events.iter().for_each(Event::notify);
        }
    }

    fn aborted(&self) -> Option<Cause> {
        if !self.shared.failed.load(Ordering::Acquire) {
            return None;
        }
        self.shared.cause.get().cloned()
    }

    fn stalled(&self, report: Stalled) {
        let mut reports = (self.shared.reports.lock()).unwrap_or_else(PoisonError::into_inner);
        let cause = reports.note(self.rank, report);
        drop(reports);
        if let Some(cause) = cause {
            self.abort(cause);
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::Kind;

    /// All ranks abort at once; what each of them finds right afterwards.
    fn found(planes: &[InProcess], start: &Barrier) -> Vec<Option<Cause>> {
        thread::scope(|scope| {
            let ranks = planes.iter().zip(0..).map(|(plane, rank)| {
                scope.spawn(move || {
                    start.wait();
                    plane.abort(Cause::new(rank, None, Kind::Left));
                    plane.aborted()
                })
            });
            let ranks: Vec<_> = ranks.collect();
            ranks
                .into_iter()
                .map(|rank| rank.join().expect("a rank that aborts"))
                .collect()
        })
    }

    #[test]
    fn who_aborts_while_another_is_halfway_through_finds_the_others_cause() {
        let planes = in_process(vec![Event::new(), Event::new()]);
        let [first, second] = [0, 1].map(|rank| Cause::new(rank, None, Kind::Left));
        // Rank 0 has set its cause and is not scheduled for a while.
        planes[0].shared.cause.set(first.clone()).expect("unset");
        planes[1].abort(second);
        assert_eq!(planes[1].aborted(), Some(first));
    }

    #[test]
    fn ranks_that_wait_for_different_things_all_hear_of_it() {
        let report = crate::cause::stalled::tests::report;
        let events = [Event::new(), Event::new(), Event::new()];
        let planes = in_process(events.to_vec());
        let key = events[2].listen();
        planes[0].stalled(report(4, "1"));
        assert_eq!(planes[0].aborted(), None);
        planes[1].stalled(report(4, "0"));
        assert!(events[2].has_passed(key));
        let cause = planes[2].aborted().expect("a cause");
        assert!(matches!(&cause.kind, Kind::Mismatch { field, .. } if field == "root"));
        assert!(planes.iter().all(|p| p.aborted().as_ref() == Some(&cause)));
    }

    #[test]
    fn all_who_abort_at_once_find_the_same_cause() {
        for _ in 0..300 {
            let planes = in_process((0..4).map(|_| Event::new()).collect());
            let causes = found(&planes, &Barrier::new(4));
            assert!(causes[0].is_some(), "there is a cause after an abort");
            assert!(causes.iter().all(|c| *c == causes[0]), "{causes:?}");
        }
    }
}
