//! The program set, unrolled: one node per step of every rank, and the edges between them.
//!
//! ```text
//!   lane order      step i of a lane  ->  step i + 1
//!   waits           step waited for   ->  waiting step
//!   messages        k-th send of a FIFO  ->  k-th receive of it
//! ```
//!
//! [`Graph::new`] pairs the two ends of every message (and refuses what does not match) and puts all steps in an order
//! in which each follows what it needs; no such order exists if steps wait for each other in a circle.

use std::collections::BTreeMap;
use std::sync::Arc;

use unisono_core::Rank;

use super::checks::same_sizes;
use super::{Flaw, Place};
use crate::{Cursor, Kind, LaneKind, Program, Run, Stage, Wait, ir};

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// One step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) rank: Rank,
    pub(super) lane: u32,
    pub(super) run: &'a Run,
    pub(super) k: u64,
}

impl Node<'_> {
    /// Index in the lane.
    pub(super) fn step(&self) -> u64 {
        self.run.start + self.k
    }
}

pub(super) struct Graph<'a> {
    pub(super) programs: &'a [Arc<Program>],
    nodes: Vec<Node<'a>>,
    /// Per rank, where its lanes begin in `lane_base`.
    rank_base: Vec<u32>,
    /// Per lane of all ranks, its first node.
    lane_base: Vec<u32>,
    /// Per node, the other end of its message.
    partner: Vec<u32>,
    /// All nodes, each after what it needs.
    pub(super) order: Vec<u32>,
    successors: Successors,
}

/// Who needs a node: compressed rows.
struct Successors {
    start: Vec<u32>,
    to: Vec<u32>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(programs: &'a [Arc<Program>]) -> Result<Graph<'a>, Flaw> {
        let steps = programs.iter().map(|p| p.steps()).sum();
        if steps > u64::from(u32::MAX / 2) {
            return Err(Flaw::TooLarge { steps });
        }
        let mut graph = Graph {
            programs,
            nodes: Vec::with_capacity(steps as usize),
            rank_base: Vec::new(),
            lane_base: Vec::new(),
            partner: vec![NONE; steps as usize],
            order: Vec::new(),
            successors: Successors {
                start: Vec::new(),
                to: Vec::new(),
            },
        };
        for p in programs {
            graph.rank_base.push(graph.lane_base.len() as u32);
            for (lane, l) in p.lanes.iter().enumerate() {
                graph.lane_base.push(graph.nodes.len() as u32);
                for run in &l.runs {
                    let node = |k| Node {
                        rank: p.rank,
                        lane: lane as u32,
                        run,
                        k,
                    };
                    graph.nodes.extend((0..run.count).map(node));
                }
            }
        }
        graph.pair()?;
        graph.link();
        graph.sort()?;
        Ok(graph)
    }

    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn node(&self, id: u32) -> Node<'a> {
        self.nodes[id as usize]
    }

    pub(super) fn program(&self, id: u32) -> &'a Program {
        &self.programs[self.nodes[id as usize].rank as usize]
    }

    pub(super) fn place(&self, id: u32) -> Box<Place> {
        let node = self.node(id);
        Box::new(Place::of(self.program(id), node.lane, node.step()))
    }

    /// The last step of a rank, in the order found.
    pub(super) fn last_place(&self, rank: Rank) -> Option<Box<Place>> {
        let mut back = self.order.iter().rev();
        back.find(|&&id| self.node(id).rank == rank)
            .map(|&id| self.place(id))
    }

    /// The node of step `step` of lane `lane` of `rank`.
    pub(super) fn id(&self, rank: Rank, lane: u32, step: u64) -> u32 {
        self.lane_base[(self.rank_base[rank as usize] + lane) as usize] + step as u32
    }

    /// The step before it in its lane.
    pub(super) fn before(&self, id: u32) -> Option<u32> {
        (self.node(id).step() > 0).then(|| id - 1)
    }

    /// The step that `id` waits for by `wait`, one of its waits.
    pub(super) fn waited(&self, id: u32, wait: &Wait) -> Option<u32> {
        let node = self.node(id);
        let step = wait.step_at(node.k);
        (step >= 0).then(|| self.id(node.rank, wait.lane, step as u64))
    }

    /// The other end of its message.
    pub(super) fn partner(&self, id: u32) -> Option<u32> {
        Some(self.partner[id as usize]).filter(|&p| p != NONE)
    }

    /// Whether it is the sending end of a message.
    pub(super) fn sends(&self, id: u32) -> bool {
        matches!(self.node(id).run.kind, Kind::Send | Kind::SyncTo)
    }

    /// The send whose message it receives.
    pub(super) fn sender(&self, id: u32) -> Option<u32> {
        self.partner(id).filter(|_| !self.sends(id))
    }

    pub(super) fn stage(&self, id: u32) -> Option<Stage> {
        let node = self.node(id);
        node.run.stage_at(node.k)
    }

    /// What must have happened before it, by lane order, waits and messages.
    pub(super) fn needs(&self, id: u32, mut f: impl FnMut(u32)) {
        self.before(id).into_iter().for_each(&mut f);
        for wait in &self.node(id).run.waits {
            self.waited(id, wait).into_iter().for_each(&mut f);
        }
        self.sender(id).into_iter().for_each(&mut f);
    }

    /// What needs it.
    pub(super) fn needed_by(&self, id: u32) -> &[u32] {
        let (a, b) = (
            self.successors.start[id as usize],
            self.successors.start[id as usize + 1],
        );
        &self.successors.to[a as usize..b as usize]
    }

    /// Finds the other end of every message.
    fn pair(&mut self) -> Result<(), Flaw> {
        let mut fifos: BTreeMap<(Rank, Rank, u16), [Vec<u32>; 2]> = BTreeMap::new();
        for p in self.programs {
            for (i, lane) in p.lanes.iter().enumerate() {
                let (fifo, end) = match lane.kind {
                    LaneKind::Send { peer, channel } => ((p.rank, peer, channel), 0),
                    LaneKind::Recv { peer, channel } => ((peer, p.rank, channel), 1),
                    LaneKind::Local { .. } => continue,
                };
                fifos.entry(fifo).or_default()[end].push(i as u32);
            }
        }
        for ((from, to, channel), [sends, recvs]) in fifos {
            let ends = [(from, &sends), (to, &recvs)];
            let strands = sends.len().max(recvs.len());
            // One strand: message k is step k, whatever the number of segments.
            for segments in 1..=if strands > 1 { 4 } else { 1 } {
                let [sent, received] =
                    ends.map(|(rank, lanes)| self.messages(rank, lanes, segments));
                if sent.len() != received.len() {
                    let missing = sent.len().min(received.len());
                    let extra = sent.get(missing).or(received.get(missing));
                    return Err(Flaw::Unmatched {
                        from,
                        to,
                        channel,
                        sent: sent.len() as u64 / segments,
                        received: received.len() as u64 / segments,
                        place: self.place(extra.map_or(0, |m| m.0)),
                    });
                }
                for (number, (&s, &r)) in sent.iter().zip(&received).enumerate() {
                    self.meet(number as u64, s, r, segments)?;
                }
            }
        }
        Ok(())
    }

    /// The messages of one end of a FIFO in order: (node, segment).
    fn messages(&self, rank: Rank, lanes: &[u32], segments: u64) -> Vec<(u32, u64)> {
        let program = &*self.programs[rank as usize];
        if let [lane] = *lanes {
            let steps = program.lanes[lane as usize].steps;
            let all = (0..steps).flat_map(|i| (0..segments).map(move |s| (i, s)));
            return all.map(|(i, s)| (self.id(rank, lane, i), s)).collect();
        }
        let mut cursors = vec![Cursor::default(); lanes.len()];
        let mut out = Vec::new();
        loop {
            let strands = lanes.iter().zip(&cursors).enumerate();
            let strands = strands.map(|(i, (&l, &c))| (i, &program.lanes[l as usize], c));
            let Some(i) = ir::next_strand(strands, segments) else {
                return out;
            };
            let lane = &program.lanes[lanes[i] as usize];
            if let Some(run) = cursors[i].at(lane) {
                let id = self.id(rank, lanes[i], run.start + cursors[i].k);
                out.push((id, cursors[i].segment));
            }
            cursors[i].advance(lane, segments);
        }
    }

    /// Message `number` is sent by `s` and received by `r`, each a node and a segment.
    fn meet(
        &mut self,
        number: u64,
        s: (u32, u64),
        r: (u32, u64),
        segments: u64,
    ) -> Result<(), Flaw> {
        let (send, recv) = (self.node(s.0), self.node(r.0));
        let sync = |kind| matches!(kind, Kind::SyncTo | Kind::SyncFrom);
        let why = if s.1 != r.1 || (segments > 1 && self.partner[s.0 as usize] != r.0) {
            Some("the order of the messages depends on the number of segments")
        } else if sync(send.run.kind) != sync(recv.run.kind) {
            Some("a sync meets data")
        } else {
            let (a, b) = (self.program(s.0), self.program(r.0));
            let (x, y) = (
                a.span_at(&send.run.target, send.k),
                b.span_at(&recv.run.target, recv.k),
            );
            (!same_sizes(a, x, b, y)).then_some("its blocks are of different sizes")
        };
        if let Some(why) = why {
            return Err(Flaw::Mismatch {
                number,
                send: self.place(s.0),
                recv: self.place(r.0),
                why,
            });
        }
        self.partner[s.0 as usize] = r.0;
        self.partner[r.0 as usize] = s.0;
        Ok(())
    }

    fn link(&mut self) {
        let n = self.nodes.len();
        let mut start = vec![0u32; n + 1];
        for id in 0..n as u32 {
            self.needs(id, |need| start[need as usize + 1] += 1);
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut to = vec![NONE; start[n] as usize];
        let mut at = start.clone();
        for id in 0..n as u32 {
            self.needs(id, |need| {
                let slot = &mut at[need as usize];
                to[*slot as usize] = id;
                *slot += 1;
            });
        }
        self.successors = Successors { start, to };
    }

    /// How many steps each step needs.
    pub(super) fn needs_counts(&self) -> Vec<u32> {
        let mut open = vec![0u32; self.nodes.len()];
        for &to in &self.successors.to {
            open[to as usize] += 1;
        }
        open
    }

    fn sort(&mut self) -> Result<(), Flaw> {
        let mut open = self.needs_counts();
        let mut order: Vec<u32> = (0..self.len())
            .filter(|&id| open[id as usize] == 0)
            .collect();
        let mut at = 0;
        while let Some(&id) = order.get(at) {
            at += 1;
            for &next in self.needed_by(id) {
                open[next as usize] -= 1;
                if open[next as usize] == 0 {
                    order.push(next);
                }
            }
        }
        if order.len() < self.nodes.len() {
            return Err(self.circle(&open));
        }
        self.order = order;
        Ok(())
    }

    /// A circle among the nodes that still need something: from each to one that it needs until one comes twice.
    fn circle(&self, open: &[u32]) -> Flaw {
        let mut path = Vec::new();
        let mut seen = vec![NONE; self.nodes.len()];
        let mut id = (0..self.len()).find(|&i| open[i as usize] > 0).unwrap_or(0);
        while seen[id as usize] == NONE {
            seen[id as usize] = path.len() as u32;
            path.push(id);
            let mut next = id;
            self.needs(id, |need| {
                if open[need as usize] > 0 {
                    next = need;
                }
            });
            id = next;
        }
        let circle = &path[seen[id as usize] as usize..];
        Flaw::Cycle {
            places: circle.iter().map(|&i| *self.place(i)).collect(),
        }
    }
}
