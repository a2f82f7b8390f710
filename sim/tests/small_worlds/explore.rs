//! Depth first through all states, replaying events to get back to where a branch was left.

use std::collections::HashSet;

use super::world::{Event, World};

/// What was found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) edges: usize,
    /// The longest sequence of events.
    pub(crate) depth: usize,
    /// States in which nothing can happen any more: all right.
    pub(crate) ends: usize,
}

pub(crate) enum Explored {
    All(Found),
    /// More states than the limit.
    TooMany,
}

struct Visit {
    events: Vec<Event>,
    next: usize,
}

/// Visits every state of `world`.
pub(crate) fn explore(world: &mut World, limit: usize, key: impl Fn(&World) -> u64) -> Explored {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let mut path: Vec<Visit> = Vec::new();
    world.reset();
    let mut arrived = true;
    // Whether the world is in the state at the end of the path.
    let mut there = true;
    loop {
        if arrived && seen.insert(key(world)) {
            found.states += 1;
            if found.states > limit {
                return Explored::TooMany;
            }
            let events = world.events();
            if events.is_empty() {
                world.check_end();
                found.ends += 1;
            }
            path.push(Visit { events, next: 0 });
            found.depth = found.depth.max(path.len() - 1);
        } else if arrived {
            there = false;
        }
        let Some(top) = path.last_mut() else {
            return Explored::All(found);
        };
        let Some(&event) = top.events.get(top.next) else {
            path.pop();
            (there, arrived) = (false, false);
            continue;
        };
        top.next += 1;
        if !std::mem::replace(&mut there, true) {
            world.reset();
            for visit in &path[..path.len() - 1] {
                world.happen(visit.events[visit.next - 1]);
            }
        }
        world.happen(event);
        found.edges += 1;
        arrived = true;
    }
}
