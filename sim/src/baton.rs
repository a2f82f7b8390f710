//! Ranks as threads, of which exactly one runs: who would sleep passes the baton.
//!
//! Whoever passes it moves the world on until a rank has reason to run. So threads add nothing to a run but their
//! stacks: everything happens in the order in which it happens when ranks are tasks.
//!
//! A thread that waits for something else while it has the baton would keep it for ever. That is the one thing that real
//! time is asked about: when nobody has passed the baton for long, the run fails and says whose thread it is. The others
//! then end, which mostly lets that thread end too; threads borrow from their caller, so the run waits for it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, Thread};
use std::time::Duration;

use unisono::Group;
use unisono_control::{Cause, Kind};
use unisono_core::Rank;

use crate::error::SimError;
use crate::executor::{Run, Stop, panic_text};
use crate::world::{Shared, World};

/// Runs `program` on a thread per rank; what each returned.
pub(crate) fn run<F, T>(run: &mut Run, groups: Vec<Vec<Group>>, program: F) -> Vec<Option<T>>
where
    F: Fn(Vec<Group>) -> T + Send + Sync,
    T: Send,
{
    let shared = Arc::clone(&run.shared);
    {
        let mut world = shared.lock();
        world.begin();
        for rank in 0..groups.len() as Rank {
            world.fire(rank);
        }
    }
    let results: Vec<Result<T, Box<dyn Any + Send>>> = thread::scope(|scope| {
        let (program, shared) = (&program, &shared);
        let threads: Vec<_> = groups
            .into_iter()
            .zip(0..)
            .map(|(groups, rank)| scope.spawn(move || one(shared, rank, groups, program)))
            .collect();
        next(shared, &mut shared.lock());
        let handles: Vec<Thread> = threads.iter().map(|t| t.thread().clone()).collect();
        watch(shared, &handles);
        threads
            .into_iter()
            .map(|thread| thread.join().and_then(|result| result))
            .collect()
    });
    let mut kept = Vec::new();
    for (result, rank) in results.into_iter().zip(0..) {
        kept.push(match result {
            Ok(value) => Some(value),
            Err(panic) => {
                let message = panic_text(&*panic);
                run.stop(Stop::Panicked { rank, message });
                None
            }
        });
    }
    kept
}

/// The thread of a rank, from its first turn to its last.
fn one<F, T>(
    shared: &Arc<Shared>,
    rank: Rank,
    groups: Vec<Group>,
    program: &F,
) -> Result<T, Box<dyn Any + Send>>
where
    F: Fn(Vec<Group>) -> T,
{
    drop(shared.wait_turn(rank, shared.lock()));
    let result = catch_unwind(AssertUnwindSafe(|| program(groups)));
    let mut world = shared.lock();
    world.finish(rank, shared.now_at(rank), result.is_err());
    give_back(shared, &mut world, rank);
    shared.signals.ended.notify_one();
    result
}

/// Passes the baton on, and sleeps until it comes back.
pub(crate) fn pass(shared: &Shared, mut world: MutexGuard<'_, World>, rank: Rank) {
    give_back(shared, &mut world, rank);
    drop(shared.wait_turn(rank, world));
}

/// Passes the baton on; a rank that was too late to do so has lost it, and queues for it again.
fn give_back(shared: &Shared, world: &mut World, rank: Rank) {
    let state = &mut world.ranks[rank as usize];
    if std::mem::take(&mut state.is_away) {
        if state.finished.is_none() {
            world.runnable.insert(rank);
        }
        if world.turn.is_some() {
            return;
        }
    }
    next(shared, world);
}

/// Waits until all ranks have ended, and sees to it that the baton moves.
fn watch(shared: &Shared, threads: &[Thread]) {
    let mut world = shared.lock();
    let limit = world.settings.turn_limit;
    while world.ranks.iter().any(|rank| rank.finished.is_none()) {
        let turns = world.turns;
        let waited;
        (world, waited) = shared.wait_end(world, limit);
        if let (true, Some(rank)) = (waited && world.turns == turns, world.turn) {
            take_away(shared, &mut world, rank, limit);
            threads[rank as usize].unpark();
        }
    }
}

/// Takes the baton from a rank that does not pass it on.
fn take_away(shared: &Shared, world: &mut World, rank: Rank, limit: Duration) {
    let stuck = SimError::Held { rank, limit };
    let text = stuck.to_string();
    world.stuck.get_or_insert(stuck);
    world.abort_all(&Cause::new(rank, None, Kind::Other { text }));
    world.ranks[rank as usize].is_away = true;
    next(shared, world);
}

/// Gives the turn to the next rank that has reason to run.
fn next(shared: &Shared, world: &mut World) {
    let (mut fired, mut rung) = (Vec::new(), Vec::new());
    world.turn = None;
    loop {
        world.take_fired(&mut fired, &mut rung);
        for event in rung.drain(..) {
            event.notify();
        }
        for rank in fired.drain(..) {
            shared.notify(rank);
            let state = &world.ranks[rank as usize];
            if state.finished.is_none() && !state.is_away {
                world.runnable.insert(rank);
            }
        }
        if let Some(rank) = world.runnable.pop_first() {
            return shared.give_turn(world, rank);
        }
        if world.ranks.iter().all(|r| r.finished.is_some()) {
            return;
        }
        if !world.step() && !world.give_up() {
            return; // nobody can be helped, and nobody waits any more
        }
    }
}
