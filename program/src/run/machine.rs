//! The run itself: actors take turns, each going as far as it can.
//!
//! An actor is one end of a FIFO (with all its strands) or a local lane. One that cannot proceed is parked on the lane,
//! the message or the room it lacks, and queued again when that appears; so work is proportional to steps. Two things
//! keep memory small although lanes run ahead: a FIFO without a window is filled only to a soft limit while others can
//! still proceed, and completion times are forgotten as soon as nobody can need them.

mod memory;
mod outcome;
mod step;

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_core::Rank;

use self::step::Halt;
use super::history::History;
use super::queue::Queue;
use super::wiring::{NONE, Role, Wiring};
use super::{Model, Options, Outcome, Stuck};
use crate::ir::next_strand;
use crate::{Cursor, Program};

/// How far a FIFO is filled at first. Long enough to make a turn worth its overhead.
const SOFT_LIMIT: u64 = 32;

struct LaneState<T> {
    cursor: Cursor,
    done: u64,
    /// When its latest step was complete.
    last: T,
    /// When the next step can be ready at the earliest.
    floor: T,
    /// The smallest count that a parked actor waits for.
    wake_at: u64,
    /// The first actor parked here; the others follow in `Machine::parked`.
    parked: u32,
    /// Whether any lane ever waits for this one.
    awaited: bool,
    history: History<T>,
}

struct Fifo<M: Model> {
    queue: VecDeque<M::Message>,
    limit: u64,
    sent: u64,
    sender_parked: bool,
    receiver_parked: bool,
    /// In time order: when the message at the head had landed, if it has.
    landed: Option<M::Time>,
    /// With a window: when the messages received were applied, from message `sent - window` on.
    freed: VecDeque<M::Time>,
}

#[derive(Clone, Copy)]
struct Parked {
    next: u32,
    need: u64,
}

/// The lane that is being executed.
struct Here<'a> {
    program: &'a Program,
    rank: Rank,
    role: Role,
    fifo: usize,
    /// Number of the rank's first lane.
    first: usize,
    /// Index of the lane in the program.
    lane: usize,
}

pub(super) struct Machine<'a, M: Model> {
    programs: &'a [Arc<Program>],
    model: &'a mut M,
    segments: u64,
    window: Option<u64>,
    wiring: Wiring,
    lanes: Vec<LaneState<M::Time>>,
    fifos: Vec<Fifo<M>>,
    /// Per actor: its place in the list of the lane it is parked on.
    parked: Vec<Parked>,
    /// Per actor: when its next step can be ready at the earliest; kept for FIFOs of several strands.
    floor: Vec<M::Time>,
    queue: Queue<M::Time>,
    /// Actors that a lane wakes: kept for its memory.
    woken: Vec<u32>,
    /// FIFOs whose sender is parked at a soft limit.
    deferred: Vec<u32>,
    messages: u64,
    steps: u64,
}

impl<'a, M: Model> Machine<'a, M> {
    /// Whether times say anything; if not, all their bookkeeping vanishes.
    const TIMED: bool = size_of::<M::Time>() > 0;

    pub(super) fn new(
        programs: &'a [Arc<Program>],
        options: Options,
        model: &'a mut M,
    ) -> Result<Self, Stuck> {
        let nowhere = super::stuck::waits_for_nothing(programs);
        if !nowhere.is_empty() {
            return Err(Stuck {
                lanes: nowhere,
                leftovers: Vec::new(),
            });
        }
        let wiring = Wiring::new(programs);
        let count = wiring.strands.len();
        let lanes = (0..count).map(|l| LaneState {
            cursor: Cursor::default(),
            done: 0,
            last: M::Time::default(),
            floor: M::Time::default(),
            wake_at: u64::MAX,
            parked: NONE,
            awaited: !wiring.waiters(l).is_empty(),
            history: History::new(),
        });
        let in_time_order = Self::TIMED && model.in_time_order();
        let soft = if in_time_order { u64::MAX } else { SOFT_LIMIT };
        let limit = options.window.unwrap_or(u64::MAX).min(soft);
        let fifos = wiring.fifos.iter().map(|_| Fifo {
            queue: VecDeque::new(),
            limit,
            sent: 0,
            sender_parked: false,
            receiver_parked: false,
            landed: None,
            freed: VecDeque::new(),
        });
        let actors = wiring.actors.len();
        let mut queue = Queue::new(&wiring.actors, programs.len(), in_time_order);
        (0..actors as u32).for_each(|a| queue.push(a, M::Time::default()));
        Ok(Machine {
            lanes: lanes.collect(),
            fifos: fifos.collect(),
            parked: vec![
                Parked {
                    next: NONE,
                    need: 0
                };
                actors
            ],
            floor: vec![M::Time::default(); actors],
            programs,
            model,
            segments: options.segments.max(1),
            window: options.window,
            wiring,
            queue,
            woken: Vec::new(),
            deferred: Vec::new(),
            messages: 0,
            steps: 0,
        })
    }

    pub(super) fn run(mut self) -> Result<Outcome<M::Time>, Stuck> {
        self.proceed();
        self.finish()
    }

    /// Runs until nobody can proceed.
    fn proceed(&mut self) {
        loop {
            while let Some((actor, not_after)) = self.queue.pop() {
                let strands = &self.wiring.actors[actor as usize].strands;
                if strands.len() == 1 && !self.queue.in_time_order() {
                    self.turn(actor);
                } else {
                    self.merged_turn(actor, not_after);
                }
            }
            if !self.raise_limits() {
                return;
            }
        }
    }

    fn here(&self, actor: u32, lane: usize) -> Here<'a> {
        let actor = &self.wiring.actors[actor as usize];
        let first = self.wiring.first_lane[actor.rank as usize] as usize;
        Here {
            program: &self.programs[actor.rank as usize],
            rank: actor.rank,
            role: actor.role,
            fifo: actor.fifo as usize,
            first,
            lane: lane - first,
        }
    }

    /// The turn of an actor with one lane: as far as it can.
    fn turn(&mut self, actor: u32) {
        let l = self.wiring.strands[self.wiring.actors[actor as usize].strands.start as usize];
        let l = l as usize;
        let here = self.here(actor, l);
        let runs = &here.program.lanes[here.lane].runs[..];
        let state = &self.lanes[l];
        let (mut cursor, start) = (state.cursor, state.done);
        let (mut last, mut floor) = (state.last, state.floor);
        let awaited = Self::TIMED && state.awaited;
        let mut number = start;
        let halt = 'turn: loop {
            let Some(run) = runs.get(cursor.run as usize) else {
                break Halt::Finished;
            };
            loop {
                match self.attempt(&here, run, cursor, number, floor, None) {
                    Ok(times) => (last, floor) = (times.done_after(last), times.next),
                    Err(halt) => break 'turn halt,
                }
                if awaited {
                    if self.lanes[l].history.is_full() {
                        self.make_room(l);
                    }
                    self.lanes[l].history.push(last);
                }
                number += 1;
                cursor.segment += 1;
                if cursor.segment == self.segments {
                    cursor.segment = 0;
                    cursor.k += 1;
                    if cursor.k >= run.count {
                        cursor.k = 0;
                        cursor.run += 1;
                        break;
                    }
                }
            }
        };
        let state = &mut self.lanes[l];
        (state.cursor, state.done) = (cursor, number);
        (state.last, state.floor) = (last, floor);
        self.count(here.role, number - start);
        if number > start {
            self.wake(l, &here, last);
        }
        self.park(actor, &here, halt, last);
    }

    /// The turn of an actor that chooses among strands, or must keep to the order of time: step by step.
    fn merged_turn(&mut self, actor: u32, not_after: Option<M::Time>) {
        loop {
            let strands = self.wiring.actors[actor as usize].strands.clone();
            let strands = &self.wiring.strands[strands.start as usize..strands.end as usize];
            let several = strands.len() > 1;
            let here = self.here(actor, strands[0] as usize);
            let candidates = strands.iter().map(|&l| {
                let lane = &here.program.lanes[l as usize - here.first];
                (l as usize, lane, self.lanes[l as usize].cursor)
            });
            let Some(l) = next_strand(candidates, self.segments) else {
                return;
            };
            let here = self.here(actor, l);
            let lane = &here.program.lanes[here.lane];
            let state = &self.lanes[l];
            let (cursor, number, mut floor) = (state.cursor, state.done, state.floor);
            if several && self.floor[actor as usize] > floor {
                floor = self.floor[actor as usize];
            }
            let run = &lane.runs[cursor.run as usize];
            let times = match self.attempt(&here, run, cursor, number, floor, not_after) {
                Ok(times) => times,
                Err(halt) => return self.park(actor, &here, halt, floor),
            };
            if Self::TIMED && self.lanes[l].awaited && self.lanes[l].history.is_full() {
                self.make_room(l);
            }
            let segments = self.segments;
            let state = &mut self.lanes[l];
            (state.last, state.floor) = (times.done_after(state.last), times.next);
            if Self::TIMED && state.awaited {
                state.history.push(state.last);
            }
            state.cursor.advance(lane, segments);
            state.done += 1;
            self.floor[actor as usize] = times.floor();
            self.count(here.role, 1);
            self.wake(l, &here, times.ready);
            if self.queue.in_time_order() && !times.goes_on {
                return self.queue.push(actor, times.ready);
            }
        }
    }

    fn count(&mut self, role: Role, steps: u64) {
        self.steps += steps;
        if role == Role::Send {
            self.messages += steps;
        }
    }

    /// Queues who waited for the progress that lane `l` made; none of them can proceed before `time`.
    fn wake(&mut self, l: usize, here: &Here<'_>, time: M::Time) {
        let state = &mut self.lanes[l];
        if state.done >= state.wake_at {
            let (done, mut actor) = (state.done, state.parked);
            (state.parked, state.wake_at) = (NONE, u64::MAX);
            let mut woken = std::mem::take(&mut self.woken);
            while actor != NONE {
                let Parked { next, need } = self.parked[actor as usize];
                if need <= done {
                    woken.push(actor);
                } else {
                    self.park_on(actor, l, need);
                }
                actor = next;
            }
            if self.queue.in_time_order() {
                woken.sort_unstable(); // in the order in which an engine wakes them
            }
            woken.drain(..).for_each(|a| self.queue.push(a, time));
            self.woken = woken;
        }
        match here.role {
            Role::Send => {
                let fifo = &mut self.fifos[here.fifo];
                if fifo.receiver_parked {
                    fifo.receiver_parked = false;
                    self.queue.push(self.wiring.fifos[here.fifo].receiver, time);
                }
            }
            Role::Recv => {
                let fifo = &mut self.fifos[here.fifo];
                if fifo.sender_parked && (fifo.queue.len() as u64) < fifo.limit {
                    fifo.sender_parked = false;
                    self.queue.push(self.wiring.fifos[here.fifo].sender, time);
                }
            }
            Role::Local => {}
        }
    }

    fn park(&mut self, actor: u32, here: &Here<'_>, halt: Halt<M::Time>, time: M::Time) {
        match halt {
            Halt::Finished => {}
            Halt::Later(time) => self.queue.push(actor, time),
            Halt::Arrival(time) => self.queue.push_arrival(actor, time),
            Halt::Lane { lane, need } if self.lanes[lane as usize].done >= need => {
                self.queue.push(actor, time);
            }
            Halt::Lane { lane, need } => self.park_on(actor, lane as usize, need),
            Halt::Message => self.fifos[here.fifo].receiver_parked = true,
            Halt::Room => {
                let fifo = &mut self.fifos[here.fifo];
                fifo.sender_parked = true;
                if self.window.is_none_or(|w| fifo.limit < w) {
                    self.deferred.push(here.fifo as u32);
                }
            }
        }
    }

    fn park_on(&mut self, actor: u32, lane: usize, need: u64) {
        let state = &mut self.lanes[lane];
        self.parked[actor as usize] = Parked {
            next: state.parked,
            need,
        };
        state.parked = actor;
        state.wake_at = state.wake_at.min(need);
    }
}
