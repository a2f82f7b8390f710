//! Ranks as tasks of one thread.
//!
//! A task runs when its waker was called, which the world does for operations of groups. When no task can run the world
//! moves on to its next moment; when it cannot either, that is a deadlock, and said at once.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use unisono_core::Rank;

use crate::world::Shared;

/// Why a run stopped, apart from what the world knows.
#[derive(Debug, Clone)]
pub(crate) enum Stop {
    Panicked { rank: Rank, message: String },
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stop: Option<Stop>,
}

impl Run {
    /// Keeps the first reason.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }
}

/// Ranks whose tasks were woken.
#[derive(Debug, Default)]
struct Woken {
    ranks: Mutex<Vec<Rank>>,
}

struct RankWaker {
    rank: Rank,
    queued: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for RankWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            let ranks = self.woken.ranks.lock();
            ranks
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.rank);
        }
    }
}

/// Runs a future per rank to its end; what each returned.
pub(crate) fn run<Fut: Future>(run: &mut Run, futures: Vec<Fut>) -> Vec<Option<Fut::Output>> {
    let shared = Arc::clone(&run.shared);
    let woken = Arc::new(Woken::default());
    let wakers: Vec<Arc<RankWaker>> = (0..futures.len() as Rank)
        .map(|rank| {
            Arc::new(RankWaker {
                rank,
                queued: AtomicBool::new(false),
                woken: Arc::clone(&woken),
            })
        })
        .collect();
    let mut tasks: Vec<Option<Pin<Box<Fut>>>> =
        futures.into_iter().map(|f| Some(Box::pin(f))).collect();
    let mut results: Vec<Option<Fut::Output>> = tasks.iter().map(|_| None).collect();
    let mut left = tasks.len();
    {
        let mut world = shared.lock();
        world.is_async = true;
        world.begin();
    }
    wakers.iter().for_each(Wake::wake_by_ref);
    let (mut ready, mut fired, mut rung) = (Vec::new(), Vec::new(), Vec::new());
    let mut crashed = Vec::new();
    while left > 0 {
        let ranks = woken.ranks.lock();
        std::mem::swap(
            &mut *ranks.unwrap_or_else(PoisonError::into_inner),
            &mut ready,
        );
        ready.sort_unstable(); // who woke whom first does not matter
        if ready.is_empty() {
            let mut world = shared.lock();
            if !world.step() && !world.give_up() {
                break;
            }
            world.take_fired(&mut fired, &mut rung);
            for &rank in &fired {
                if world.ranks[rank as usize].dead.is_some() {
                    crashed.push(rank);
                }
                if world.take_postponed(rank) {
                    wakers[rank as usize].wake_by_ref();
                }
            }
            drop(world);
            rung.drain(..).for_each(|event| event.notify());
            fired.drain(..).for_each(|rank| shared.notify(rank));
            for rank in crashed.drain(..) {
                let task = tasks[rank as usize].take();
                left -= usize::from(task.is_some());
                // What drops with the task may panic: it is dead already.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
            }
            continue;
        }
        for rank in ready.drain(..) {
            let index = rank as usize;
            wakers[index].queued.store(false, Ordering::Release);
            let Some(task) = &mut tasks[index] else {
                continue;
            };
            if shared.lock().postpone(rank) {
                continue;
            }
            let waker = Waker::from(Arc::clone(&wakers[index]));
            let mut context = Context::from_waker(&waker);
            let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut context)));
            let panicked = polled.is_err();
            match polled {
                Ok(Poll::Pending) => continue,
                Ok(Poll::Ready(output)) => results[index] = Some(output),
                Err(panic) => {
                    let message = panic_text(&*panic);
                    run.stop(Stop::Panicked { rank, message });
                }
            }
            left -= 1;
            let at = shared.now_at(rank);
            shared.lock().finish(rank, at, panicked);
            let task = tasks[index].take();
            // What drops with the task may panic as well: the first panic is told.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        }
    }
    results
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "something that is no text".to_owned())
}
