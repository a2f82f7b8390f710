//! Independent jobs on all cores, their results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::Result;

/// Results that may wait to be taken before workers pause: a slow reader of stdout must not fill the memory.
const AHEAD: usize = 64;

/// Calls `work` with 0 to `jobs` - 1 on as many threads as there are cores, and `take` with each result in that order.
///
/// Stops soon after `take` fails.
///
/// # Errors
/// The first error of `take`.
pub(crate) fn in_order<T: Send>(
    jobs: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<()>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::sync_channel(AHEAD);
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs).max(1) {
            let (send, work, next, stop) = (send.clone(), &work, &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= jobs || send.send((at, work(at))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut early: BTreeMap<usize, T> = BTreeMap::new();
        let mut due = 0;
        for (at, result) in receive {
            early.insert(at, result);
            while let Some(result) = early.remove(&due) {
                if let Err(e) = take(due, result) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(e);
                }
                due += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_a_failure_ends_it() {
        let mut seen = Vec::new();
        in_order(
            1000,
            |i| i * i,
            |i, square| {
                seen.push((i, square));
                Ok(())
            },
        )
        .unwrap();
        assert!(
            seen.iter()
                .enumerate()
                .all(|(k, &(i, s))| i == k && s == i * i)
        );
        assert_eq!(seen.len(), 1000);

        let failed = in_order(
            usize::MAX,
            |i| i,
            |i, _| {
                if i == 7 {
                    Err(anyhow::anyhow!("seven"))
                } else {
                    Ok(())
                }
            },
        );
        assert_eq!(failed.unwrap_err().to_string(), "seven");
    }
}
