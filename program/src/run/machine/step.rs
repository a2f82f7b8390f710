//! One segment of one step: when it may happen, and when the next one may.

use super::super::{At, Model};
use super::{Here, Machine, Role};
use crate::{Cursor, Kind, Run};

/// When a step was ready, when it is complete, and when the next one can be ready.
pub(super) struct Times<T> {
    pub(super) ready: T,
    done: T,
    /// Messages are posted one behind the other: the next one can be as soon as this one was. All else is done in turn.
    pub(super) next: T,
    /// In time order: whether the actor goes on at once, before those that it has woken.
    pub(super) goes_on: bool,
}

impl<T: Copy + PartialOrd> Times<T> {
    /// When the step is complete: in a lane not before its predecessor, which was at `last`.
    #[inline(always)]
    pub(super) fn done_after(&self, last: T) -> T {
        if self.done < last { last } else { self.done }
    }

    /// When another strand of the FIFO can go on.
    pub(super) fn floor(&self) -> T {
        if self.next < self.ready {
            self.next
        } else {
            self.ready
        }
    }
}

/// Why an actor stops.
pub(super) enum Halt<T> {
    Finished,
    Lane {
        lane: u32,
        need: u64,
    },
    Message,
    Room,
    /// In time order: it is not this step's turn before that time.
    Later(T),
    /// In time order: its message arrives at that time.
    Arrival(T),
}

impl<'a, M: Model> Machine<'a, M> {
    /// Executes one segment of one step if it can: its times.
    #[inline(always)]
    pub(super) fn attempt(
        &mut self,
        here: &Here<'a>,
        run: &'a Run,
        cursor: Cursor,
        number: u64,
        floor: M::Time,
        not_after: Option<M::Time>,
    ) -> Result<Times<M::Time>, Halt<M::Time>> {
        let at = At {
            rank: here.rank,
            lane: here.lane as u32,
            run,
            k: cursor.k,
            segment: cursor.segment,
            number,
            program: here.program,
        };
        let mut ready = floor;
        let mut ahead = false;
        let (mut landed, mut fresh) = (None, false);
        if Self::TIMED && here.role == Role::Recv && self.queue.in_time_order() {
            (ready, fresh) = self.land(&at, here.fifo, floor, not_after)?;
            landed = Some(ready);
            ahead = run.kind != Kind::RecvReduce && self.model.posts_ahead();
        }
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
                ahead &= time <= floor;
                if time > ready {
                    ready = time;
                }
            }
        }
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
                if Self::TIMED && !self.queue.in_time_order() {
                    let arrival = later(self.model.arrival(message), floor);
                    ready = later(self.model.land(&at, message, arrival), ready);
                }
                // Where the receive was posted ahead, that it is complete when the message has landed is known already.
                // What lands now is applied when all has landed that does.
                if !ahead && (fresh || late(ready)) {
                    return Err(Halt::Later(ready));
                }
                let Some(message) = fifo.queue.pop_front() else {
                    return Err(Halt::Message);
                };
                fifo.landed = None;
                let done = self.model.recv(&at, message, ready);
                if Self::TIMED && self.window.is_some() {
                    fifo.freed.push_back(later(done, ready));
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
        let done = later(done, ready);
        let next = match here.role {
            Role::Send => ready,
            Role::Recv if ahead => floor,
            Role::Recv | Role::Local => done,
        };
        // As an engine does: it sends all that it can; and when it gets back to a receive whose message had to wait after
        // landing, it applies that and posts the next one.
        let waited = landed.is_some_and(|landed| ready > landed);
        Ok(Times {
            ready,
            done,
            next,
            goes_on: here.role == Role::Send || ahead || waited,
        })
    }

    /// In time order: lets the message at the head of a FIFO land, unless it has; when, and whether it did so now. It needs no more than to be there and
    /// to have a receive posted for it, whatever it waits for then.
    fn land(
        &mut self,
        at: &At<'_>,
        fifo: usize,
        floor: M::Time,
        not_after: Option<M::Time>,
    ) -> Result<(M::Time, bool), Halt<M::Time>> {
        let fifo = &mut self.fifos[fifo];
        if let Some(landed) = fifo.landed {
            return Ok((landed, false));
        }
        let Some(message) = fifo.queue.front() else {
            return Err(Halt::Message);
        };
        let arrival = later(self.model.arrival(message), floor);
        if not_after.is_some_and(|t| arrival > t) {
            return Err(Halt::Arrival(arrival));
        }
        let landed = self.model.land(at, message, arrival);
        fifo.landed = Some(landed);
        Ok((landed, true))
    }
}

/// The later one.
#[inline(always)]
fn later<T: PartialOrd>(a: T, b: T) -> T {
    if a > b { a } else { b }
}
