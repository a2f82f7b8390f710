//! The critical path: the cost model again, noting for every step which step it had to wait for longest.

use std::sync::Arc;

use unisono_core::Rank;
use unisono_program::Program;
use unisono_program::run::{At, Model, Options};

use crate::Hop;
use crate::model::{Limit, Message, Timed};

/// Nothing came before.
const START: u32 = u32::MAX;

/// Not the step itself, but the landing of its message: other work of the core may come between the two.
const LANDING: u32 = 1 << 31;

/// The most steps that can be recorded.
pub(crate) const MOST_STEPS: u64 = LANDING as u64 - 1;

/// The cost model with a record of completion times and causes of all steps.
pub(crate) struct Traced<'a> {
    inner: Timed<'a>,
    segments: u64,
    window: Option<u64>,
    /// Per lane: the number of its first step in the record. Ascending, and one more than there are lanes.
    first: Vec<u32>,
    /// Per lane: its rank and index.
    names: Vec<(Rank, u32)>,
    done: Vec<u64>,
    cause: Vec<u32>,
    /// Per step: when its message had landed, and why not before. Empty where cores cost nothing.
    landings: Vec<(u64, u32)>,
    /// Per link and per rank: the last step that occupied it.
    on_link: Vec<u32>,
    on_core: Vec<u32>,
    /// With a window, per FIFO: the receives so far, and how many sends there were.
    received: Vec<Vec<u32>>,
    sent: Vec<u64>,
}

/// A message and the step that sent it.
pub(crate) struct Sent {
    message: Message,
    by: u32,
}

impl<'a> Traced<'a> {
    pub(crate) fn new(programs: &[Arc<Program>], options: &Options, inner: Timed<'a>) -> Self {
        let (mut first, mut names, mut steps) = (vec![0], Vec::new(), 0);
        for (rank, program) in programs.iter().enumerate() {
            for (index, lane) in program.lanes.iter().enumerate() {
                steps += (lane.steps * options.segments) as u32;
                first.push(steps);
                names.push((rank as Rank, index as u32));
            }
        }
        let (links, fifos) = inner.counts();
        let landings = if inner.cores_cost() {
            steps as usize
        } else {
            0
        };
        Traced {
            inner,
            segments: options.segments,
            window: options.window,
            first,
            names,
            done: vec![0; steps as usize],
            cause: vec![START; steps as usize],
            landings: vec![(0, START); landings],
            on_link: vec![START; links],
            on_core: vec![START; programs.len()],
            received: vec![Vec::new(); fifos],
            sent: vec![0; fifos],
        }
    }

    /// Of the step's predecessor and what it waits for, and of `others`, which was complete last.
    fn latest(&self, at: &At<'_>, lane: usize, others: &[(u64, u32)]) -> u32 {
        let (mut time, mut latest) = (0, START);
        let mut consider = |t: u64, step: u32| {
            if step != START && (latest == START || t > time) {
                (time, latest) = (t, step);
            }
        };
        // Ties: a message rather than a predecessor, which makes paths that follow the data.
        others.iter().for_each(|&(t, step)| consider(t, step));
        for wait in &at.run.waits {
            let need = wait.needs(at.k, at.segment, self.segments);
            if need > 0 {
                let other = lane - at.lane as usize + wait.lane as usize;
                let step = self.first[other] + (need - 1) as u32;
                consider(self.done[step as usize], step);
            }
        }
        if at.number > 0 {
            let step = self.first[lane] + at.number as u32 - 1;
            consider(self.done[step as usize], step);
        }
        latest
    }

    fn note(&mut self, lane: usize, number: u64, done: u64, cause: u32) -> u32 {
        let step = self.first[lane] + number as u32;
        self.done[step as usize] = done;
        self.cause[step as usize] = cause;
        step
    }

    /// When a step was complete, or its message had landed, and why not before.
    fn told(&self, step: u32) -> (u64, u32) {
        let index = (step & !LANDING) as usize;
        match step & LANDING {
            0 => (self.done[index], self.cause[index]),
            _ => self.landings[index],
        }
    }

    /// The cost model and the path to the last step.
    pub(crate) fn finish(self) -> (Timed<'a>, Vec<Hop>) {
        let mut path = Vec::new();
        let last = (0..self.done.len()).rev().max_by_key(|&s| self.done[s]);
        let mut next = last.map_or(START, |s| s as u32);
        let (mut before, mut later) = (START, u64::MAX);
        while next != START {
            let step = next & !LANDING;
            let done_ps;
            (done_ps, next) = self.told(next);
            // What waits for a core need not wait until a message has left the link as well: so far, and no further, the
            // step is on the path.
            later = done_ps.min(later);
            if std::mem::replace(&mut before, step) == step {
                continue; // its landing, just before it
            }
            let lane = self.first.partition_point(|&f| f <= step) - 1;
            let number = u64::from(step - self.first[lane]);
            let (rank, index) = self.names[lane];
            path.push(Hop {
                rank,
                lane: index,
                step: number / self.segments,
                segment: number % self.segments,
                done_ps: later,
            });
        }
        path.reverse();
        (self.inner, path)
    }
}

impl Model for Traced<'_> {
    type Time = u64;
    type Message = Sent;

    fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, Sent) {
        let lane = self.inner.lane(at);
        let wire = self.inner.wire(lane);
        let fifo = wire.fifo as usize;
        let mut room = (0, START);
        if let Some(window) = self.window
            && let Some(index) = self.sent[fifo].checked_sub(window)
            && let Some(&by) = self.received[fifo].get(index as usize)
        {
            room = (self.done[by as usize], by);
        }
        self.sent[fifo] += 1;
        let (done, message, limit) = self.inner.send(at, ready);
        let cause = match limit {
            Limit::Link => self.on_link[wire.link as usize],
            Limit::Core => self.on_core[at.rank as usize],
            Limit::Ready => self.latest(at, lane, &[room]),
        };
        let by = self.note(lane, at.number, done, cause);
        self.on_link[wire.link as usize] = by;
        self.on_core[at.rank as usize] = by;
        (done, Sent { message, by })
    }

    fn land(&mut self, at: &At<'_>, sent: &Sent, ready: u64) -> u64 {
        if self.landings.is_empty() {
            return ready;
        }
        let lane = self.inner.lane(at);
        let step = self.first[lane] + at.number as u32;
        let (landed, limit) = self.inner.land(at, &sent.message, ready);
        let cause = match limit {
            Limit::Core => self.on_core[at.rank as usize],
            // It lands when it is there, or when its predecessor has been applied.
            _ if at.number > 0 && sent.message.arrival < ready => step - 1,
            _ => sent.by,
        };
        self.landings[step as usize] = (landed, cause);
        self.on_core[at.rank as usize] = step | LANDING;
        landed
    }

    fn recv(&mut self, at: &At<'_>, sent: Sent, ready: u64) -> u64 {
        let lane = self.inner.lane(at);
        let step = self.first[lane] + at.number as u32;
        let (done, limit) = self.inner.recv(at, sent.message, ready);
        let came = match self.landings.get(step as usize) {
            Some(&(landed, _)) => (landed, step | LANDING),
            None => (sent.message.arrival, sent.by),
        };
        let cause = match limit {
            Limit::Core => self.on_core[at.rank as usize],
            _ => self.latest(at, lane, &[came]),
        };
        let by = self.note(lane, at.number, done, cause);
        if done > ready {
            self.on_core[at.rank as usize] = by;
        }
        if self.window.is_some() {
            self.received[self.inner.wire(lane).fifo as usize].push(by);
        }
        ready
    }

    fn local(&mut self, at: &At<'_>, ready: u64) -> u64 {
        let lane = self.inner.lane(at);
        let (done, limit) = self.inner.local(at, ready);
        let cause = match limit {
            Limit::Core => self.on_core[at.rank as usize],
            _ => self.latest(at, lane, &[]),
        };
        let by = self.note(lane, at.number, done, cause);
        if done > ready {
            self.on_core[at.rank as usize] = by;
        }
        ready
    }

    fn arrival(&self, sent: &Sent) -> u64 {
        self.inner.arrival(&sent.message)
    }

    fn posts_ahead(&self) -> bool {
        true
    }

    fn in_time_order(&self) -> bool {
        self.inner.in_time_order()
    }
}
