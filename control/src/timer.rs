//! One thread per process that notifies events later. Started at first use, asleep while nothing is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use unisono_contract::Event;

#[derive(Default)]
struct Timer {
    due: Mutex<Due>,
    earlier: Condvar,
}

#[derive(Default)]
struct Due {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    events: HashMap<u64, Event>,
    next: u64,
}

pub(crate) fn wake_after(delay: Duration, event: &Event) {
    static TIMER: OnceLock<&'static Timer> = OnceLock::new();
    let timer = TIMER.get_or_init(|| {
        let timer: &'static Timer = Box::leak(Box::default());
        let spawned = thread::Builder::new()
            .name("unisono-timer".to_owned())
            .spawn(move || timer.run());
        debug_assert!(spawned.is_ok(), "no thread for the timer");
        timer
    });
    let at = Instant::now() + delay;
    let mut due = timer.due.lock().unwrap_or_else(PoisonError::into_inner);
    let id = due.next;
    due.next += 1;
    due.heap.push(Reverse((at, id)));
    due.events.insert(id, event.clone());
    timer.earlier.notify_one();
}

impl Timer {
    fn run(&self) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            due = match due.heap.peek() {
                None => {
                    let waited = self.earlier.wait(due);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(Reverse((at, _))) if *at > now => {
                    let left = *at - now;
                    let waited = self.earlier.wait_timeout(due, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let id = due.heap.pop().map(|Reverse((_, id))| id);
                    let event = id.and_then(|id| due.events.remove(&id));
                    // Without the lock: a waker may well run code that sets the next alarm.
                    drop(due);
                    event.iter().for_each(Event::notify);
                    self.due.lock().unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_notified_in_the_order_in_which_they_are_due() {
        let (late, soon) = (Event::new(), Event::new());
        let (late_key, soon_key) = (late.listen(), soon.listen());
        wake_after(Duration::from_secs(600), &late);
        wake_after(Duration::from_millis(1), &soon);
        assert!(soon.wait(soon_key, Some(Duration::from_secs(20))));
        assert!(!late.has_passed(late_key));
    }
}
