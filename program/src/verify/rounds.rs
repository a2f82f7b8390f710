//! How long the chains of messages are, with and without a limit on ports.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Graph;

/// Messages on the longest chain: the time if a message takes one unit and ports are no limit.
pub(super) fn depth(graph: &Graph<'_>) -> u64 {
    let mut at = vec![0u64; graph.len() as usize];
    for &id in &graph.order {
        let mut latest = 0;
        graph.needs(id, |need| latest = latest.max(at[need as usize]));
        if let Some(sender) = graph.sender(id) {
            latest = latest.max(at[sender as usize] + 1);
        }
        at[id as usize] = latest;
    }
    at.into_iter().max().unwrap_or(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The step has all it needs; a send now wants the sender's port.
    Ready,
    /// The message of this receive reaches the receiver's port.
    Arrives,
    /// The message of this receive is there.
    Arrived,
}

/// The time if each rank can send one message and receive one message per unit, in the order in which they are ready.
pub(super) fn one_port(graph: &Graph<'_>) -> u64 {
    let ranks = graph.programs.len();
    let (mut out_free, mut in_free) = (vec![0u64; ranks], vec![0u64; ranks]);
    let mut open = graph.needs_counts();
    let mut ready = vec![0u64; graph.len() as usize];
    let mut events: BinaryHeap<Reverse<(u64, u32, Event)>> = (0..graph.len())
        .filter(|&id| open[id as usize] == 0)
        .map(|id| Reverse((0, id, Event::Ready)))
        .collect();
    let mut end = 0;
    while let Some(Reverse((now, id, event))) = events.pop() {
        let rank = graph.node(id).rank as usize;
        end = end.max(now);
        match event {
            Event::Ready => {
                let partner = graph.partner(id).filter(|_| graph.sends(id));
                let done = if partner.is_some() {
                    let start = now.max(out_free[rank]);
                    out_free[rank] = start + 1;
                    start + 1
                } else {
                    now
                };
                for &next in graph.needed_by(id) {
                    if Some(next) == partner {
                        events.push(Reverse((done - 1, next, Event::Arrives)));
                        continue;
                    }
                    // The next send of the lane is posted right behind; all others need the memory back.
                    let posted = graph.before(next) == Some(id);
                    let at = if posted { now } else { done };
                    release(&mut open, &mut ready, &mut events, next, at);
                }
            }
            Event::Arrives => {
                let start = now.max(in_free[rank]);
                in_free[rank] = start + 1;
                events.push(Reverse((start + 1, id, Event::Arrived)));
            }
            Event::Arrived => release(&mut open, &mut ready, &mut events, id, now),
        }
    }
    end
}

fn release(
    open: &mut [u32],
    ready: &mut [u64],
    events: &mut BinaryHeap<Reverse<(u64, u32, Event)>>,
    id: u32,
    at: u64,
) {
    let i = id as usize;
    ready[i] = ready[i].max(at);
    open[i] -= 1;
    if open[i] == 0 {
        events.push(Reverse((ready[i], id, Event::Ready)));
    }
}
