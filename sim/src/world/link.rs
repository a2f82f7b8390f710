//! Links: what occupies them, and what befalls what they carry.

use smallvec::SmallVec;
use unisono_core::Rank;
use unisono_evaluator::LinkCost;

use super::World;
use crate::fault::{Fault, Mishap, Part};
use crate::random::{draw, unit};

const JITTER: u64 = 1;
const LOSS: u64 = 2;
const BIT: u64 = 3;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) from: Rank,
    pub(crate) to: Rank,
    cost: LinkCost,
    free_at: u64,
    /// Size and time of the last message: mostly that of the next.
    last: (u64, u64),
    segments: SmallVec<[u32; 2]>,
    /// Faults that concern it.
    faults: SmallVec<[u32; 2]>,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) busy_ps: u64,
}

/// What a link makes of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    pub(super) start: u64,
    /// When it has left the link.
    pub(super) end: u64,
    pub(super) arrival: u64,
    pub(super) is_lost: bool,
    pub(super) is_double: bool,
    pub(super) corrupt: Option<(Part, u64)>,
}

impl LinkState {
    pub(crate) fn latency_ps(&self) -> u64 {
        self.cost.latency_ps()
    }
}

impl World {
    pub(super) fn link(&mut self, from: Rank, to: Rank) -> u32 {
        if let Some(index) = self.link_index.get(&(from, to)) {
            return *index;
        }
        let index = self.links.len() as u32;
        let faults = (0..).zip(&self.settings.faults).filter_map(|(i, fault)| {
            let concerned = fault.cable().is_some_and(|c| c.carries(from, to));
            concerned.then_some(i)
        });
        self.links.push(LinkState {
            from,
            to,
            cost: self.settings.network.links().cost(from, to),
            free_at: 0,
            last: (0, 0),
            segments: self.settings.network.segments_of(from, to).collect(),
            faults: faults.collect(),
            bytes: 0,
            messages: 0,
            busy_ps: 0,
        });
        self.link_index.insert((from, to), index);
        index
    }

    /// Puts a message of `bytes` on a link, from now on; `None` when nothing will ever pass it again.
    pub(super) fn pass(&mut self, index: u32, bytes: u64) -> Option<Passage> {
        let link = &mut self.links[index as usize];
        if link.last.0 != bytes {
            link.last = (bytes, link.cost.transfer_ps(bytes));
        }
        let mut time = link.last.1;
        let mut latency = link.cost.latency_ps();
        if self.settings.jitter > 0.0 {
            let whose = u64::from(link.from) << 32 | u64::from(link.to);
            let chance = unit(draw(self.settings.seed, JITTER, whose, link.messages));
            let factor = 1.0 + self.settings.jitter * chance;
            time = (time as f64 * factor) as u64;
            latency = (latency as f64 * factor) as u64;
        }
        let mut start = self.now.max(link.free_at);
        let mut longest = 0;
        for &segment in &link.segments {
            let state = &self.segments[segment as usize];
            start = start.max(state.free_at);
            let beta = state.rate;
            longest = longest.max(LinkCost { alpha_ns: 0, beta }.transfer_ps(bytes));
        }
        let mut passage = Passage {
            start,
            end: 0,
            arrival: latency,
            is_lost: false,
            is_double: false,
            corrupt: None,
        };
        if !link.faults.is_empty() && !self.befall(index, bytes, &mut time, &mut passage) {
            return None;
        }
        passage.end = passage.start + time.max(longest);
        passage.arrival += passage.end;
        let link = &mut self.links[index as usize];
        link.free_at = passage.start + time;
        link.bytes += bytes;
        link.messages += 1;
        link.busy_ps += time;
        for &segment in &link.segments {
            let state = &mut self.segments[segment as usize];
            let beta = state.rate;
            state.free_at = passage.start + LinkCost { alpha_ns: 0, beta }.transfer_ps(bytes);
        }
        Some(passage)
    }

    /// Applies the faults of a link; false when nothing will ever pass it again. `passage.arrival` is the latency.
    fn befall(&mut self, index: u32, bytes: u64, time: &mut u64, passage: &mut Passage) -> bool {
        let link = &self.links[index as usize];
        let (seed, whose) = (
            self.settings.seed,
            u64::from(link.from) << 32 | u64::from(link.to),
        );
        let faults = link.faults.clone();
        for &fault in &faults {
            if let Fault::Slow { factor, at_ps, .. } = self.settings.faults[fault as usize]
                && passage.start >= at_ps
            {
                *time = (*time as f64 / factor) as u64;
            }
        }
        // Until no interval moves it: they may come in any order.
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for &fault in &faults {
                let Fault::Down { at_ps, up_ps, .. } = self.settings.faults[fault as usize] else {
                    continue;
                };
                let there = passage.start + *time + passage.arrival;
                if there <= at_ps {
                    continue;
                }
                match up_ps {
                    None => return false,
                    Some(up) if passage.start < up => {
                        passage.start = up;
                        moved = true;
                    }
                    Some(_) => {}
                }
            }
        }
        let there = passage.start + *time + passage.arrival;
        for &fault in &faults {
            match self.settings.faults[fault as usize] {
                Fault::OneWay { at_ps, .. } => passage.is_lost |= there > at_ps,
                Fault::Loss { rate, .. } => {
                    let which = self.links[index as usize].messages;
                    let chance = unit(draw(seed ^ u64::from(fault), LOSS, whose, which));
                    passage.is_lost |= chance < rate;
                }
                Fault::Message { nth, what, .. } => {
                    let seen = &mut self.seen[fault as usize];
                    *seen += 1;
                    if *seen == nth {
                        match what {
                            Mishap::Drop => passage.is_lost = true,
                            Mishap::Duplicate => passage.is_double = true,
                            Mishap::Delay(by) => passage.arrival += by,
                            Mishap::Corrupt(part) => {
                                let part = if bytes == 0 { Part::Frame } else { part };
                                let word = draw(seed ^ u64::from(fault), BIT, whose, nth);
                                passage.corrupt = Some((part, word));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        true
    }
}
