//! Who is connected to whom: lanes numbered through, ends of FIFOs, and which lanes wait for which.

use std::ops::Range;
use std::sync::Arc;

use unisono_core::Rank;

use crate::{LaneKind, Program};

/// No actor, no FIFO.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Send,
    Recv,
    Local,
}

/// What proceeds on its own: one end of a FIFO with all its strands, or a local lane.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) rank: Rank,
    pub(super) role: Role,
    /// The FIFO; `NONE` for local lanes.
    pub(super) fifo: u32,
    /// Where its lanes stand in `Wiring::strands`.
    pub(super) strands: Range<u32>,
}

/// One FIFO.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) channel: u16,
    pub(super) sender: u32,
    pub(super) receiver: u32,
}

/// The fixed part of a run.
#[derive(Debug)]
pub(super) struct Wiring {
    /// Number of the first lane of each rank; one more than there are ranks.
    pub(super) first_lane: Vec<u32>,
    pub(super) actors: Vec<Actor>,
    pub(super) strands: Vec<u32>,
    pub(super) fifos: Vec<Ends>,
    first_waiter: Vec<u32>,
    waiters: Vec<u32>,
}

impl Wiring {
    pub(super) fn new(programs: &[Arc<Program>]) -> Wiring {
        let mut wiring = Wiring {
            first_lane: Vec::with_capacity(programs.len() + 1),
            actors: Vec::new(),
            strands: Vec::new(),
            fifos: Vec::new(),
            first_waiter: Vec::new(),
            waiters: Vec::new(),
        };
        let mut lanes = 0;
        for program in programs {
            wiring.first_lane.push(lanes);
            lanes += program.lanes.len() as u32;
        }
        wiring.first_lane.push(lanes);
        wiring.connect(programs);
        wiring.collect_waiters(programs, lanes as usize);
        wiring
    }

    fn connect(&mut self, programs: &[Arc<Program>]) {
        // (from, to, channel, receiving end, actor): sorted, the two ends of a FIFO are neighbours.
        let mut ends: Vec<(Rank, Rank, u16, bool, u32)> = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            let (rank, first) = (rank as Rank, self.first_lane[rank]);
            let mut order: Vec<u32> = (0..program.lanes.len() as u32).collect();
            // Stable: strands of one FIFO stay in lane order.
            order.sort_by_key(|&l| program.lanes[l as usize].kind);
            // What proceeds on its own, by its first lane: the order in which an engine looks at it.
            let kind_of = |l: &u32| program.lanes[*l as usize].kind;
            let alone = |l: &u32| matches!(kind_of(l), LaneKind::Local { .. });
            let mut units: Vec<&[u32]> = order
                .chunk_by(|a, b| kind_of(a) == kind_of(b) && !alone(a))
                .collect();
            units.sort_by_key(|lanes| lanes[0]);
            for lanes in units {
                let kind = kind_of(&lanes[0]);
                let actor = self.actors.len() as u32;
                let role = match kind {
                    LaneKind::Send { peer, channel } => {
                        ends.push((rank, peer, channel, false, actor));
                        Role::Send
                    }
                    LaneKind::Recv { peer, channel } => {
                        ends.push((peer, rank, channel, true, actor));
                        Role::Recv
                    }
                    LaneKind::Local { .. } => Role::Local,
                };
                let start = self.strands.len() as u32;
                self.strands.extend(lanes.iter().map(|l| first + l));
                self.actors.push(Actor {
                    rank,
                    role,
                    fifo: NONE,
                    strands: start..self.strands.len() as u32,
                });
            }
        }
        ends.sort_unstable();
        for (from, to, channel, receives, actor) in ends {
            let joins = self
                .fifos
                .last()
                .is_some_and(|f| (f.from, f.to, f.channel) == (from, to, channel));
            if !joins {
                self.fifos.push(Ends {
                    from,
                    to,
                    channel,
                    sender: NONE,
                    receiver: NONE,
                });
            }
            let index = self.fifos.len() - 1;
            let fifo = &mut self.fifos[index];
            *(if receives {
                &mut fifo.receiver
            } else {
                &mut fifo.sender
            }) = actor;
            self.actors[actor as usize].fifo = index as u32;
        }
    }

    fn collect_waiters(&mut self, programs: &[Arc<Program>], lanes: usize) {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            let first = self.first_lane[rank];
            let start = edges.len();
            for (l, lane) in program.lanes.iter().enumerate() {
                for wait in lane.runs.iter().flat_map(|r| &r.waits) {
                    let edge = (first + wait.lane, first + l as u32);
                    if edges.last() != Some(&edge) && (wait.lane as usize) < program.lanes.len() {
                        edges.push(edge);
                    }
                }
            }
            let mine = &mut edges[start..];
            mine.sort_unstable();
        }
        edges.dedup();
        self.first_waiter = Vec::with_capacity(lanes + 1);
        for (awaited, waiter) in edges {
            while self.first_waiter.len() <= awaited as usize {
                self.first_waiter.push(self.waiters.len() as u32);
            }
            self.waiters.push(waiter);
        }
        self.first_waiter
            .resize(lanes + 1, self.waiters.len() as u32);
    }

    /// The lanes that somewhere wait for `lane`.
    pub(super) fn waiters(&self, lane: usize) -> &[u32] {
        &self.waiters[self.first_waiter[lane] as usize..self.first_waiter[lane + 1] as usize]
    }
}
