//! Keeping a run small: how far FIFOs are filled, and which completion times are forgotten.

use super::super::Model;
use super::{Machine, SOFT_LIMIT};
use crate::{Cursor, Lane};

/// Runs that are searched for what a lane will wait for next, before assuming the worst.
const SEARCHED_RUNS: usize = 32;

impl<M: Model> Machine<'_, M> {
    /// Nobody can proceed: lets FIFOs at a soft limit hold more. False if there are none.
    pub(super) fn raise_limits(&mut self) -> bool {
        let mut any = false;
        for f in std::mem::take(&mut self.deferred) {
            let fifo = &mut self.fifos[f as usize];
            if fifo.sender_parked {
                fifo.limit = (fifo.limit * 2).min(self.window.unwrap_or(u64::MAX));
                fifo.sender_parked = false;
                self.queue
                    .push(self.wiring.fifos[f as usize].sender, M::Time::default());
                any = true;
            }
        }
        any
    }

    /// Makes room for one more completion time of lane `l`.
    ///
    /// Forgotten is what comes before the next step that any waiter waits for (waits rise within a lane), and what was
    /// complete before the waiter's present (it can no longer delay it). Room doubles unless a quarter becomes free, so
    /// the cost per step is constant.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, l: usize) {
        let waiters = self.wiring.waiters(l);
        let history = &self.lanes[l].history;
        let capacity = history.capacity();
        let mut keep = u64::MAX;
        if capacity >= waiters.len().max(SOFT_LIMIT as usize) {
            for &w in waiters {
                let waiter = &self.lanes[w as usize];
                let rank = self.rank_of(w);
                let first = self.wiring.first_lane[rank] as usize;
                let lane = &self.programs[rank].lanes[w as usize - first];
                let awaited = (l - first) as u32;
                let next = next_awaited(lane, waiter.cursor, awaited, self.segments);
                if next < keep {
                    keep = keep.min(next.max(history.later_than(waiter.floor)));
                }
            }
        } else {
            keep = 0;
        }
        let history = &mut self.lanes[l].history;
        if history.forget(keep) < (capacity as u64 / 4).max(1) {
            history.grow();
        }
    }

    fn rank_of(&self, lane: u32) -> usize {
        self.wiring
            .first_lane
            .partition_point(|&first| first <= lane)
            - 1
    }
}

/// The next position of lane `awaited` that `lane` waits for from `cursor` on; the largest number if there is none, 0
/// if that would take long to find out.
fn next_awaited(lane: &Lane, cursor: Cursor, awaited: u32, segments: u64) -> u64 {
    let Some(rest) = lane.runs.get(cursor.run as usize..) else {
        return u64::MAX;
    };
    for (i, run) in rest.iter().enumerate() {
        if i == SEARCHED_RUNS {
            return 0;
        }
        let (mut k, mut segment) = if i == 0 {
            (cursor.k, cursor.segment)
        } else {
            (0, 0)
        };
        let Some(wait) = run.waits.iter().find(|w| w.lane == awaited) else {
            continue;
        };
        if wait.step_at(k) < 0 {
            if wait.stride <= 0 {
                continue;
            }
            (k, segment) = ((-wait.step).div_euclid(wait.stride) as u64, 0);
            if wait.step_at(k) < 0 {
                k += 1;
            }
            if k >= run.count {
                continue;
            }
        }
        return wait.needs(k, segment, segments) - 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unisono_core::Collective;

    use super::super::super::tests::{Of, Rounds, ring};
    use super::super::super::{At, Model, Options};
    use super::super::Machine;
    use crate::{Context, build_all};

    /// The most completion times that any lane had room for, and the most messages that any FIFO had.
    fn peak<M: Model>(cx: &Context, segments: u64, model: &mut M) -> (usize, usize) {
        let programs: Vec<Arc<_>> = build_all(&Of(ring), cx).unwrap();
        let options = Options {
            segments,
            window: None,
        };
        let mut machine = Machine::new(&programs, options, model).unwrap();
        machine.proceed();
        let histories = machine.lanes.iter().map(|l| l.history.capacity());
        let fifos = machine.fifos.iter().map(|f| f.queue.capacity());
        let peak = (histories.max().unwrap(), fifos.max().unwrap());
        machine.finish().unwrap();
        peak
    }

    fn world(p: u32) -> Context {
        Context::full(Collective::AllReduce, 0, p)
    }

    /// Rounds in which rank 3 sends ten times slower.
    struct Uneven;

    impl Model for Uneven {
        type Time = u64;
        type Message = u64;
        fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, u64) {
            let done = ready + if at.rank == 3 { 10 } else { 1 };
            (done, done + 1)
        }
        fn recv(&mut self, _: &At<'_>, arrival: u64, ready: u64) -> u64 {
            arrival.max(ready)
        }
        fn local(&mut self, _: &At<'_>, ready: u64) -> u64 {
            ready
        }
    }

    #[test]
    fn a_ring_remembers_and_queues_no_more_however_long_it_is() {
        // Without forgetting, each lane would keep p - 1 steps for receives that wait for sends a turn ago.
        for (p, segments) in [(8, 4), (200, 1), (40, 100)] {
            let (history, fifo) = peak(&world(p), segments, &mut Rounds);
            let few = 64.max(4 * segments as usize);
            assert!(
                history <= few && fifo <= 64,
                "{p} {segments}: {history} {fifo}"
            );
        }
        let (_, fifo) = peak(&world(100), 10, &mut Uneven);
        assert!(fifo <= 64, "{fifo}");
    }
    #[test]
    fn what_nobody_waits_for_is_forgotten_though_the_waiter_stands_still() {
        // The lane that divides has done nothing before the receives of the second half; it waits for each of those.
        let (history, _) = peak(&world(300).with_average(true), 1, &mut Rounds);
        assert!(history <= 64, "{history}");
    }
}
