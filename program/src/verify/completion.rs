//! Whether the programs complete for every timing.
//!
//! Lanes that talk through FIFOs and monotone counters are a Kahn network: one that completes with room for one message
//! on each FIFO, which is what a receiver's staging holds, completes for every timing and for more room.

use std::sync::Arc;

use super::{Flaw, Place};
use crate::run::{At, Blocked, Model, Options, Standing, run};
use crate::{LaneKind, Program};

/// The numbers of segments that are run.
const SEGMENTS: std::ops::RangeInclusive<u64> = 1..=4;

struct Nothing;

impl Model for Nothing {
    type Time = ();
    type Message = ();
    fn send(&mut self, _: &At<'_>, (): ()) -> ((), ()) {
        ((), ())
    }
    fn recv(&mut self, _: &At<'_>, (): (), (): ()) {}
    fn local(&mut self, _: &At<'_>, (): ()) {}
}

/// Runs them with room for one message, at 1 to 4 segments.
pub(super) fn check(programs: &[Arc<Program>]) -> Result<(), Flaw> {
    for segments in SEGMENTS {
        let window = Some(1);
        if let Err(stuck) = run(programs, Options { segments, window }, &mut Nothing) {
            let unbounded = Options {
                segments,
                window: None,
            };
            let blamed = blamed(&stuck.lanes);
            return Err(Flaw::Stuck {
                segments,
                needs_room: run(programs, unbounded, &mut Nothing).is_ok(),
                place: blamed
                    .map(|s| Box::new(Place::of(&programs[s.rank as usize], s.lane, s.step))),
                stuck: Box::new(stuck),
            });
        }
    }
    Ok(())
}

/// The receive to change: it keeps its message waiting for another step while the next one wants to be sent.
fn blamed(lanes: &[Standing]) -> Option<&Standing> {
    let full = |s: &&Standing| match s.faces {
        LaneKind::Recv { peer, channel } => lanes.iter().any(|sender| {
            let faces = LaneKind::Send {
                peer: s.rank,
                channel,
            };
            sender.rank == peer && sender.faces == faces && sender.blocked == Blocked::Room
        }),
        _ => false,
    };
    let waits = |s: &&Standing| matches!(s.blocked, Blocked::Step { .. });
    let receives = |s: &&Standing| matches!(s.faces, LaneKind::Recv { .. });
    let mut waiting = lanes.iter().filter(waits);
    waiting
        .clone()
        .find(full)
        .or_else(|| waiting.find(receives))
        .or(lanes.first())
}
