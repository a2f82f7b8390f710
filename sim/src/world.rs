//! The world: clock, events, ranks, links and FIFOs, all behind one lock.
//!
//! One thread is in the world at a time, and real time plays no part:
//!
//! ```text
//!  rank runs at `now` --post--> core (overhead) --> link (FIFO, bytes) --> arrival --> receive posted? --> completion
//!        ^                                                                                                     |
//!        +------------------------ fired: the scheduler runs the rank again -----------------------------------+
//! ```
//!
//! The costs are those of the evaluator: the core of the sender is taken for the overhead of a message, then its link
//! for its bytes; the send is complete at the end of the transfer, and the message arrives a latency later; there, the
//! core of the receiver is taken for the overhead. Headers weigh nothing.
//!
//! Events of one moment are all processed before ranks run, and ranks then run in rank order, so a run depends on
//! nothing but its inputs.

mod abort;
mod event;
mod fifo;
mod link;
mod rank;
mod shared;
#[cfg(test)]
mod speed;
mod stuck;
mod transmit;
mod turns;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use unisono_contract::Event;
use unisono_control::Cause;
use unisono_core::Rank;

use crate::error::SimError;
use crate::fault::Fault;
use crate::network::Network;
use crate::phantom::Contents;
use crate::random::mix;
use crate::record::Record;

pub(crate) use event::{Happening, Scheduled};
pub(crate) use fifo::{Fifo, FifoKey, Message};
pub(crate) use link::LinkState;
pub(crate) use rank::{RankState, SeatState};
pub(crate) use shared::{Shared, Signals};

/// What becomes of a message that arrives where no receive is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unposted {
    /// It waits at the receiver, as in the buffers of a socket.
    #[default]
    Buffer,
    /// It does not leave before a receive is posted for it.
    Block,
    /// It is dropped silently, as on an unreliable connection (UC) without flow control.
    Drop,
}

/// What a run is made of, apart from its ranks.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) network: Network,
    pub(crate) seed: u64,
    /// Latency and transfer of a message are longer by up to this share.
    pub(crate) jitter: f64,
    pub(crate) unposted: Unposted,
    pub(crate) faults: Vec<Fault>,
    /// Until the control plane notices that a rank or link is gone.
    pub(crate) detection_ps: u64,
    /// Until an abort reaches the other ranks.
    pub(crate) propagation_ps: u64,
    /// Run into deadlines rather than call it a deadlock.
    pub(crate) wait_for_deadlines: bool,
    pub(crate) record: bool,
    /// How long a rank's thread may keep its turn, in real time.
    pub(crate) turn_limit: Duration,
}

/// Something that many links pass through.
#[derive(Debug)]
struct SegmentState {
    rate: u64,
    free_at: u64,
}

/// An alarm: no message comes of it, so a world that has nothing else stands still.
#[derive(Debug)]
struct Alarm {
    at: u64,
    number: u64,
    rings: Rings,
}

#[derive(Debug)]
enum Rings {
    Event(Event),
    Rank(Rank),
}

/// The world; see the [module](self).
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) now: u64,
    pub(crate) ranks: Vec<RankState>,
    /// Group by group.
    pub(crate) seats: Vec<SeatState>,
    /// Why each group failed, if it did.
    pub(crate) causes: Vec<Option<Cause>>,
    /// Contents of phantom memory.
    pub(crate) phantoms: Contents,
    pub(crate) links: Vec<LinkState>,
    pub(crate) link_index: BTreeMap<(Rank, Rank), u32>,
    pub(crate) fifos: Vec<Fifo>,
    fifo_index: BTreeMap<FifoKey, u32>,
    segments: Vec<SegmentState>,
    /// Messages that each fault has seen.
    seen: Vec<u64>,
    heap: BinaryHeap<Reverse<Scheduled>>,
    alarms: BinaryHeap<Reverse<Alarm>>,
    /// Events and alarms so far: equals are processed in the order of their making.
    number: u64,
    /// Ranks for which something happened.
    fired: Vec<Rank>,
    /// Alarms that went off.
    rung: Vec<Event>,
    pool: Vec<Vec<u8>>,
    overhead_ps: u64,
    /// Why nothing could happen any more.
    pub(crate) stuck: Option<SimError>,
    /// Ranks whose threads have reason to run.
    pub(crate) runnable: BTreeSet<Rank>,
    /// Which rank's thread runs.
    pub(crate) turn: Option<Rank>,
    /// How often the turn was given to a thread.
    pub(crate) turns: u64,
    /// A rank that would have blocked where nothing may.
    pub(crate) blocked: Option<Rank>,
    /// Whether ranks are tasks of one thread, which must not block.
    pub(crate) is_async: bool,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    hash: u64,
    pub(crate) records: Vec<Record>,
    pub(crate) signals: Arc<Signals>,
}

impl World {
    fn new(groups: u32, settings: Settings, signals: Arc<Signals>) -> World {
        let mut world = World {
            now: 0,
            ranks: signals.ranks.iter().map(|_| RankState::default()).collect(),
            seats: signals.seats.iter().map(|_| SeatState::default()).collect(),
            causes: vec![None; groups as usize],
            phantoms: Contents::default(),
            links: Vec::new(),
            link_index: BTreeMap::new(),
            fifos: Vec::new(),
            fifo_index: BTreeMap::new(),
            segments: settings
                .network
                .segment_rates()
                .map(|rate| SegmentState { rate, free_at: 0 })
                .collect(),
            seen: vec![0; settings.faults.len()],
            heap: BinaryHeap::new(),
            alarms: BinaryHeap::new(),
            number: 0,
            fired: Vec::new(),
            rung: Vec::new(),
            pool: Vec::new(),
            overhead_ps: settings.network.overhead_ps(),
            stuck: None,
            runnable: BTreeSet::new(),
            turn: None,
            turns: 0,
            blocked: None,
            is_async: false,
            events: 0,
            lost: 0,
            hash: 0,
            records: Vec::new(),
            settings,
            signals,
        };
        world.schedule_faults();
        world
    }

    fn schedule_faults(&mut self) {
        for index in 0..self.settings.faults.len() {
            let at = match self.settings.faults[index] {
                Fault::Crash { at_ps, .. } | Fault::Stall { at_ps, .. } => at_ps,
                Fault::Down {
                    at_ps, up_ps: None, ..
                } => at_ps.saturating_add(self.settings.detection_ps),
                _ => continue,
            };
            self.schedule(at, Happening::Fault(index as u32));
        }
    }

    pub(crate) fn schedule(&mut self, at: u64, what: Happening) {
        let number = self.number;
        self.number += 1;
        self.heap.push(Reverse(Scheduled { at, number, what }));
    }

    /// Has `event` notified after `delay_ps`.
    pub(crate) fn alarm(&mut self, delay_ps: u64, event: Event) {
        self.push_alarm(self.now.saturating_add(delay_ps), Rings::Event(event));
    }

    /// Has `rank` run at `at`, or before.
    pub(crate) fn alarm_rank(&mut self, at: u64, rank: Rank) {
        let known = &mut self.ranks[rank as usize].alarm;
        if known.is_none_or(|known| known > at) {
            *known = Some(at);
            self.push_alarm(at, Rings::Rank(rank));
        }
    }

    fn push_alarm(&mut self, at: u64, rings: Rings) {
        let number = self.number;
        self.number += 1;
        self.alarms.push(Reverse(Alarm { at, number, rings }));
    }

    /// Moves the clock to the next moment and processes all its events; false when there is none.
    pub(crate) fn step(&mut self) -> bool {
        let event = self.heap.peek().map(|Reverse(e)| e.at);
        let alarm = self.alarms.peek().map(|Reverse(a)| a.at);
        let at = match (event, alarm) {
            (Some(event), Some(alarm)) => event.min(alarm),
            (Some(event), None) => event,
            // What nothing but deadlines could end does not go on by itself.
            (None, Some(alarm)) if self.settings.wait_for_deadlines => alarm,
            (None, _) => return false,
        };
        self.turn_clock(at);
        while let Some(Reverse(next)) = self.heap.peek()
            && next.at <= at
        {
            let what = next.what;
            self.heap.pop();
            self.events += 1;
            self.happen(what);
        }
        while let Some(Reverse(next)) = self.alarms.peek()
            && next.at <= at
        {
            if let Some(Reverse(alarm)) = self.alarms.pop() {
                match alarm.rings {
                    Rings::Event(event) => self.rung.push(event),
                    Rings::Rank(rank) => {
                        self.ranks[rank as usize].alarm = None;
                        self.fire(rank);
                    }
                }
            }
        }
        true
    }

    /// Processes what happens at the very beginning.
    pub(crate) fn begin(&mut self) {
        while let Some(Reverse(next)) = self.heap.peek()
            && next.at == 0
        {
            let what = next.what;
            self.heap.pop();
            self.happen(what);
        }
    }

    fn turn_clock(&mut self, at: u64) {
        self.now = at;
        self.signals.clock.store(at, Ordering::Relaxed);
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::HandOver(fifo) => self.hand_over_next(fifo),
            Happening::Sent(fifo) => self.sent(fifo),
            Happening::Arrive(fifo) => self.arrive(fifo),
            Happening::Received(fifo) => self.received(fifo),
            Happening::Close(fifo) => self.close(fifo),
            Happening::Gone(fifo) => self.gone(fifo),
            Happening::Wake(rank) => self.fire(rank),
            Happening::Tell(group) => self.tell_everybody(group),
            Happening::Fault(index) => self.strike(index as usize),
            Happening::Detect(rank) => self.detect(rank),
        }
    }

    /// The place of `rank` in `group`.
    #[inline]
    pub(crate) fn seat(&self, group: u32, rank: Rank) -> usize {
        group as usize * self.ranks.len() + rank as usize
    }

    /// Something happened for `rank`.
    pub(crate) fn fire(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank as usize];
        if !state.is_fired {
            state.is_fired = true;
            self.fired.push(rank);
        }
    }

    /// Moves out the ranks that have to run, and the alarms that went off.
    pub(crate) fn take_fired(&mut self, ranks: &mut Vec<Rank>, rung: &mut Vec<Event>) {
        rung.append(&mut self.rung);
        let mut fired = std::mem::take(&mut self.fired);
        for rank in fired.drain(..) {
            self.ranks[rank as usize].is_fired = false;
            if let Some(until) = self.stalled(rank) {
                self.schedule(until, Happening::Wake(rank));
            } else {
                ranks.push(rank);
            }
        }
        self.fired = fired;
    }

    /// Until when the core of `rank` stands still, if it does.
    pub(crate) fn stalled(&self, rank: Rank) -> Option<u64> {
        let until = self.ranks[rank as usize].stalled_until;
        (until > self.now).then_some(until)
    }

    /// Takes the core of `rank` for `time` from `ready` on; when that is done.
    #[inline]
    pub(crate) fn core(&mut self, rank: Rank, ready: u64, time: u64) -> u64 {
        let free = &mut self.ranks[rank as usize].core_free;
        *free = (*free).max(ready).saturating_add(time);
        *free
    }

    /// Takes the core of `rank` for local work on so many bytes.
    pub(crate) fn compute(&mut self, rank: Rank, bytes: u64) {
        let time = self.settings.network.compute_ps(bytes);
        if time == 0 {
            return;
        }
        let end = self.core(rank, self.now, time);
        let signals = &self.signals.ranks[rank as usize];
        signals.computes_until.store(end, Ordering::Relaxed);
        if self.settings.record {
            self.records.push(Record::Compute {
                rank,
                start_ps: end - time,
                end_ps: end,
                bytes,
            });
        }
    }

    /// Mixes a completion into the hash of the run; order does not matter, so that it is that of no scheduler.
    #[inline]
    pub(crate) fn note(&mut self, at: u64, whose: u64, which: u64, fingerprint: u64) {
        let word = mix(mix(mix(mix(at) ^ whose) ^ which) ^ fingerprint);
        self.hash = self.hash.wrapping_add(word);
    }

    /// The hash of everything that has completed.
    pub(crate) fn hash(&self) -> u64 {
        mix(self.hash)
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
