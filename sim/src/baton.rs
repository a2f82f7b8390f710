//! Ranks as threads, of which exactly one runs: who would sleep passes the baton.
//!
//! Whoever passes it moves the world on until a rank has reason to run. So threads add nothing to a run but their
//! stacks: everything happens in the order in which it happens when ranks are tasks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::thread;

use unisono::Group;
use unisono_core::Rank;

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
    next(shared, &mut world);
    result
}

/// Passes the baton on, and sleeps until it comes back.
pub(crate) fn pass(shared: &Shared, mut world: MutexGuard<'_, World>, rank: Rank) {
    next(shared, &mut world);
    drop(shared.wait_turn(rank, world));
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
            if world.ranks[rank as usize].finished.is_none() {
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
