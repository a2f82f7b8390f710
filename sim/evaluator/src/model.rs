//! The model with times: what a message costs its link and its cores.

use std::sync::Arc;

use unisono_core::{Collective, Rank};
use unisono_program::run::{At, Model, Outcome};
use unisono_program::{Kind, LaneKind, Location, Program};

use crate::size::Sizes;
use crate::{Call, Hop, LinkCost, LinkLoad, Links, Report};

/// A message in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// When it can be applied; 0 for an empty one that is not sent at all.
    pub(crate) arrival: u64,
    bytes: u64,
}

/// What kept a step from starting when it was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Nothing.
    Ready,
    /// The rank's core was busy.
    Core,
    /// The link was busy.
    Link,
}

#[derive(Debug)]
struct LinkState {
    from: Rank,
    to: Rank,
    cost: LinkCost,
    free_at: u64,
    /// Size and time of the last message: mostly that of the next.
    last: (u64, u64),
    bytes: u64,
    messages: u64,
    busy_ps: u64,
}

/// The cost model.
#[derive(Debug)]
pub(crate) struct Timed<'a> {
    links: &'a Links,
    sizes: Sizes,
    /// Number of the first lane of each rank.
    first_lane: Vec<u32>,
    /// Per lane: its directed link and its FIFO (lanes that are local have none, and never ask).
    wires: Vec<Wire>,
    states: Vec<LinkState>,
    /// Per FIFO: whether its message 0, which is never skipped, has been sent.
    started: Vec<bool>,
    /// Per rank: when its core is free.
    cores: Vec<u64>,
    cores_cost: bool,
    shared: bool,
    /// A copy from the input to the same place of the output is none.
    in_place: bool,
}

/// Which link and which FIFO a lane uses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wire {
    pub(crate) link: u32,
    pub(crate) fifo: u32,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(programs: &[Arc<Program>], call: &Call, links: &'a Links) -> Timed<'a> {
        let mut first_lane = Vec::with_capacity(programs.len());
        let mut lanes = 0;
        // (from, to, channel, lane)
        let mut ends: Vec<(Rank, Rank, u16, u32)> = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            let rank = rank as Rank;
            first_lane.push(lanes);
            for lane in &program.lanes {
                match lane.kind {
                    LaneKind::Send { peer, channel } => ends.push((rank, peer, channel, lanes)),
                    LaneKind::Recv { peer, channel } => ends.push((peer, rank, channel, lanes)),
                    LaneKind::Local { .. } => {}
                }
                lanes += 1;
            }
        }
        ends.sort_unstable();
        let mut wires = vec![Wire::default(); lanes as usize];
        let mut states: Vec<LinkState> = Vec::new();
        let (mut fifos, mut shared, mut last_channel) = (0, false, 0);
        for (from, to, channel, lane) in ends {
            let same_link = states.last().is_some_and(|l| (l.from, l.to) == (from, to));
            if !same_link {
                states.push(LinkState {
                    from,
                    to,
                    cost: links.cost(from, to),
                    free_at: 0,
                    last: (0, 0),
                    bytes: 0,
                    messages: 0,
                    busy_ps: 0,
                });
            }
            if !same_link || last_channel != channel {
                fifos += 1;
                shared |= same_link;
                last_channel = channel;
            }
            wires[lane as usize] = Wire {
                link: states.len() as u32 - 1,
                fifo: fifos - 1,
            };
        }
        Timed {
            links,
            sizes: Sizes::new(programs.first().map(|p| &**p), call),
            first_lane,
            wires,
            states,
            started: vec![false; fifos as usize],
            cores: vec![0; programs.len()],
            cores_cost: links.cores_cost(),
            shared,
            in_place: call.in_place
                && programs.first().is_some_and(|p| {
                    matches!(p.collective, Collective::AllReduce | Collective::Broadcast)
                }),
        }
    }

    /// The number of the lane, counted through all ranks.
    #[inline]
    pub(crate) fn lane(&self, at: &At<'_>) -> usize {
        (self.first_lane[at.rank as usize] + at.lane) as usize
    }

    pub(crate) fn wire(&self, lane: usize) -> Wire {
        self.wires[lane]
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.states.len(), self.started.len())
    }

    pub(crate) fn cores_cost(&self) -> bool {
        self.cores_cost
    }

    /// Occupies the rank's core for `time` from `ready` on; when it is done, and whether it had to wait for the core.
    #[inline]
    fn core(&mut self, rank: Rank, ready: u64, time: u64) -> (u64, Limit) {
        let free = &mut self.cores[rank as usize];
        let (start, limit) = match *free > ready {
            true => (*free, Limit::Core),
            false => (ready, Limit::Ready),
        };
        *free = start + time;
        (*free, limit)
    }

    #[inline]
    pub(crate) fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, Message, Limit) {
        let wire = self.wires[self.lane(at)];
        let mut first = false;
        if at.number == 0 {
            first = !std::mem::replace(&mut self.started[wire.fifo as usize], true);
        }
        let bytes = self.sizes.bytes(at, &at.run.target);
        if bytes == 0 && !first && at.run.kind != Kind::SyncTo {
            return (ready, Message { arrival: 0, bytes }, Limit::Ready);
        }
        let (mut start, mut limit) = (ready, Limit::Ready);
        if self.cores_cost {
            (start, limit) = self.core(at.rank, ready, self.links.overhead_ps());
        }
        let link = &mut self.states[wire.link as usize];
        if link.free_at > start {
            (start, limit) = (link.free_at, Limit::Link);
        }
        if link.last.0 != bytes {
            link.last = (bytes, link.cost.transfer_ps(bytes));
        }
        let time = link.last.1;
        let end = start + time;
        link.free_at = end;
        link.bytes += bytes;
        link.messages += 1;
        link.busy_ps += time;
        let arrival = end + link.cost.latency_ps();
        (end, Message { arrival, bytes }, limit)
    }

    /// Until when the rank's core reduces a message that is applied at `ready`, and whether it had to wait for it.
    ///
    /// The step itself counts as complete at once: whatever it enables needs the core too, and queues behind it.
    #[inline]
    pub(crate) fn recv(&mut self, at: &At<'_>, message: Message, ready: u64) -> (u64, Limit) {
        if !self.cores_cost || at.run.kind != Kind::RecvReduce {
            return (ready, Limit::Ready);
        }
        self.core(at.rank, ready, self.links.reduce_ps(message.bytes))
    }

    /// When the rank's core has taken in a message.
    #[inline]
    pub(crate) fn land(&mut self, at: &At<'_>, message: &Message, ready: u64) -> (u64, Limit) {
        if !self.cores_cost || (message.arrival == 0 && message.bytes == 0) {
            return (ready, Limit::Ready);
        }
        self.core(at.rank, ready, self.links.overhead_ps())
    }

    /// Until when the rank's core works on a local step, which counts as complete at once, as in [`recv`](Timed::recv).
    #[inline]
    pub(crate) fn local(&mut self, at: &At<'_>, ready: u64) -> (u64, Limit) {
        if !self.cores_cost {
            return (ready, Limit::Ready);
        }
        if self.in_place
            && at.run.kind == Kind::Copy
            && let [source] = &*at.run.sources
            && source.location == Location::Input
            && (source.span, source.stride) == (at.run.target.span, at.run.target.stride)
        {
            return (ready, Limit::Ready);
        }
        // n sources are n - 1 reductions; a single one is a pass over the data as well.
        let passes = at.run.sources.len().saturating_sub(1).max(1) as u64;
        let bytes = self.sizes.bytes(at, &at.run.target);
        let time = self.links.reduce_ps(bytes).saturating_mul(passes);
        self.core(at.rank, ready, time)
    }

    pub(crate) fn report(&self, mut outcome: Outcome<u64>, path: Option<Vec<Hop>>) -> Report {
        // Local work at the very end enables nothing, but lasts.
        for (time, core) in outcome.times.iter_mut().zip(&self.cores) {
            *time = (*time).max(*core);
        }
        let loads = self.states.iter().map(|l| LinkLoad {
            from: l.from,
            to: l.to,
            bytes: l.bytes,
            messages: l.messages,
            busy_ps: l.busy_ps,
        });
        let links: Vec<LinkLoad> = loads.collect();
        // The first of the busiest.
        let bottleneck = links.iter().rev().max_by_key(|l| l.busy_ps).copied();
        Report {
            total_ps: outcome.times.iter().copied().max().unwrap_or(0),
            time_ps: outcome.times,
            path,
            messages: links.iter().map(|l| l.messages).sum(),
            steps: outcome.steps,
            bottleneck,
            links,
        }
    }
}

impl Model for Timed<'_> {
    type Time = u64;
    type Message = Message;

    #[inline]
    fn send(&mut self, at: &At<'_>, ready: u64) -> (u64, Message) {
        let (done, message, _) = Timed::send(self, at, ready);
        (done, message)
    }

    #[inline]
    fn land(&mut self, at: &At<'_>, message: &Message, ready: u64) -> u64 {
        Timed::land(self, at, message, ready).0
    }

    #[inline]
    fn recv(&mut self, at: &At<'_>, message: Message, ready: u64) -> u64 {
        Timed::recv(self, at, message, ready);
        ready
    }

    #[inline]
    fn local(&mut self, at: &At<'_>, ready: u64) -> u64 {
        Timed::local(self, at, ready);
        ready
    }

    #[inline]
    fn arrival(&self, message: &Message) -> u64 {
        message.arrival
    }

    fn posts_ahead(&self) -> bool {
        true
    }

    fn in_time_order(&self) -> bool {
        self.cores_cost || self.shared
    }
}
