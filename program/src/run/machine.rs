//! The run itself: actors take turns, each going as far as it can.
//!
//! An actor is one end of a FIFO (with all its strands) or a local lane. One that cannot proceed is parked on the lane,
//! the message or the room it lacks, and queued again when that appears; so work is proportional to steps. Two things
//! keep memory small although lanes run ahead: a FIFO without a window is filled only to a soft limit while others can
//! still proceed, and completion times are forgotten as soon as nobody can need them.

mod memory;
mod outcome;

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_core::Rank;

use super::history::History;
use super::queue::Queue;
use super::wiring::{NONE, Role, Wiring};
use super::{At, Model, Options, Outcome, Stuck};
use crate::ir::next_strand;
use crate::{Cursor, Program, Run};

/// How far a FIFO is filled at first. Long enough to make a turn worth its overhead.
const SOFT_LIMIT: u64 = 32;

struct LaneState<T> {
    cursor: Cursor,
    done: u64,
    last: T,
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

/// When a step was ready, and when it is complete.
struct Times<T> {
    ready: T,
    done: T,
}

/// Why an actor stops.
enum Halt<T> {
    Finished,
    Lane {
        lane: u32,
        need: u64,
    },
    Message,
    Room,
    /// In time order: it is not this step's turn before that time.
    Later(T),
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
    /// Per actor: the ready time of its last step; kept for FIFOs of several strands.
    floor: Vec<M::Time>,
    queue: Queue<M::Time>,
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
        let (mut cursor, start, mut last) = (state.cursor, state.done, state.last);
        let awaited = Self::TIMED && state.awaited;
        let mut number = start;
        let halt = 'turn: loop {
            let Some(run) = runs.get(cursor.run as usize) else {
                break Halt::Finished;
            };
            loop {
                match self.attempt(&here, run, cursor, number, last, None) {
                    Ok(times) => last = times.done,
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
        (state.cursor, state.done, state.last) = (cursor, number, last);
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
            let (cursor, number, last) = (state.cursor, state.done, state.last);
            let mut floor = last;
            if several && self.floor[actor as usize] > floor {
                floor = self.floor[actor as usize];
            }
            let run = &lane.runs[cursor.run as usize];
            let times = match self.attempt(&here, run, cursor, number, floor, not_after) {
                Ok(times) => times,
                Err(Halt::Later(time)) => return self.queue.push(actor, time),
                Err(halt) => return self.park(actor, &here, halt, floor),
            };
            if Self::TIMED && self.lanes[l].awaited && self.lanes[l].history.is_full() {
                self.make_room(l);
            }
            let segments = self.segments;
            let state = &mut self.lanes[l];
            state.last = times.done;
            if Self::TIMED && state.awaited {
                state.history.push(state.last);
            }
            state.cursor.advance(lane, segments);
            state.done += 1;
            self.floor[actor as usize] = times.ready;
            self.count(here.role, 1);
            self.wake(l, &here, times.ready);
            if self.queue.in_time_order() {
                return self.queue.push(actor, times.ready);
            }
        }
    }

    /// Executes one segment of one step if it can: its ready and completion times.
    #[inline(always)]
    fn attempt(
        &mut self,
        here: &Here<'a>,
        run: &'a Run,
        cursor: Cursor,
        number: u64,
        floor: M::Time,
        not_after: Option<M::Time>,
    ) -> Result<Times<M::Time>, Halt<M::Time>> {
        let mut ready = floor;
        for wait in &run.waits {
            let need = wait.needs(cursor.k, cursor.segment, self.segments);
            if need == 0 {
                continue;
            }
            let other = here.first + wait.lane as usize;
            let state = &self.lanes[other];
            if state.done < need {
                let lane = other as u32;
                return Err(Halt::Lane { lane, need });
            }
            if Self::TIMED {
                let time = state.history.time(need - 1);
                if time > ready {
                    ready = time;
                }
            }
        }
        let at = At {
            rank: here.rank,
            lane: here.lane as u32,
            run,
            k: cursor.k,
            segment: cursor.segment,
            number,
            program: here.program,
        };
        let late = |ready: M::Time| Self::TIMED && not_after.is_some_and(|t| ready > t);
        let done = match here.role {
            Role::Send => {
                let fifo = &mut self.fifos[here.fifo];
                if fifo.queue.len() as u64 >= fifo.limit {
                    return Err(Halt::Room);
                }
                let bounded = Self::TIMED && self.window.is_some_and(|w| fifo.sent >= w);
                if bounded
                    && let Some(&freed) = fifo.freed.front()
                    && freed > ready
                {
                    ready = freed;
                }
                if late(ready) {
                    return Err(Halt::Later(ready));
                }
                if bounded {
                    fifo.freed.pop_front();
                }
                fifo.sent += 1;
                let (done, message) = self.model.send(&at, ready);
                fifo.queue.push_back(message);
                done
            }
            Role::Recv => {
                let fifo = &mut self.fifos[here.fifo];
                let Some(message) = fifo.queue.front() else {
                    return Err(Halt::Message);
                };
                if Self::TIMED {
                    let arrival = self.model.arrival(message);
                    if arrival > ready {
                        ready = arrival;
                    }
                }
                if late(ready) {
                    return Err(Halt::Later(ready));
                }
                let Some(message) = fifo.queue.pop_front() else {
                    return Err(Halt::Message);
                };
                let done = self.model.recv(&at, message, ready);
                if Self::TIMED && self.window.is_some() {
                    fifo.freed
                        .push_back(if done > ready { done } else { ready });
                }
                done
            }
            Role::Local => {
                if late(ready) {
                    return Err(Halt::Later(ready));
                }
                self.model.local(&at, ready)
            }
        };
        let done = if done > ready { done } else { ready };
        Ok(Times { ready, done })
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
            while actor != NONE {
                let Parked { next, need } = self.parked[actor as usize];
                if need <= done {
                    self.queue.push(actor, time);
                } else {
                    self.park_on(actor, l, need);
                }
                actor = next;
            }
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
