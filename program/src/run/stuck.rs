//! Why a run cannot go on: which lanes stand where, and for what.

use std::fmt;
use std::sync::Arc;

use unisono_core::Rank;

use crate::{Kind, LaneKind, Program};

/// A run that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Stuck {
    /// Every lane that has steps left, by rank and lane.
    pub lanes: Vec<Standing>,
    /// Messages that were sent and never received, by sender and receiver.
    pub leftovers: Vec<Leftover>,
}

/// A lane that has steps left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The rank.
    pub rank: Rank,
    /// Index of the lane in its program.
    pub lane: u32,
    /// Which way it faces.
    pub faces: LaneKind,
    /// Step of the lane.
    pub step: u64,
    /// Segment of the step.
    pub segment: u64,
    /// What the step does.
    pub kind: Kind,
    /// What is missing.
    pub blocked: Blocked,
}

/// What a lane lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocked {
    /// Another lane of the same rank has not done this step (for a wait on a whole step: its last segment).
    Step {
        /// Index of that lane.
        lane: u32,
        /// The step waited for.
        step: u64,
        /// Its segment.
        segment: u64,
    },
    /// The peer has sent nothing more.
    Message,
    /// The peer has not taken what was sent before, and the FIFO is full.
    Room,
    /// The FIFO's next message belongs to another strand.
    Turn {
        /// Index of that lane.
        lane: u32,
    },
    /// The step waits for a lane that does not exist.
    NoLane {
        /// Index of that lane.
        lane: u32,
    },
}

/// Messages that nobody receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leftover {
    /// Who sent them.
    pub from: Rank,
    /// To whom.
    pub to: Rank,
    /// On which channel.
    pub channel: u16,
    /// How many (segments).
    pub messages: u64,
}

/// The lanes that wait for lanes which do not exist, each at its first step that does.
pub(super) fn waits_for_nothing(programs: &[Arc<Program>]) -> Vec<Standing> {
    let mut found = Vec::new();
    for (rank, program) in programs.iter().enumerate() {
        for (index, lane) in program.lanes.iter().enumerate() {
            let waits = lane
                .runs
                .iter()
                .flat_map(|r| r.waits.iter().map(move |w| (r, w)));
            let mut nowhere = waits.filter(|(_, w)| w.lane as usize >= program.lanes.len());
            if let Some((run, wait)) = nowhere.next() {
                found.push(Standing {
                    rank: rank as Rank,
                    lane: index as u32,
                    faces: lane.kind,
                    step: run.start,
                    segment: 0,
                    kind: run.kind,
                    blocked: Blocked::NoLane { lane: wait.lane },
                });
            }
        }
    }
    found
}

/// How many lanes and leftovers a message names.
const NAMED: usize = 6;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stuck: ")?;
        let mut first = true;
        for lane in self.lanes.iter().take(NAMED) {
            write!(f, "{}{lane}", if first { "" } else { "; " })?;
            first = false;
        }
        if self.lanes.len() > NAMED {
            write!(f, "; and {} more lanes", self.lanes.len() - NAMED)?;
        }
        for left in self.leftovers.iter().take(NAMED) {
            write!(f, "{}{left}", if first { "" } else { "; " })?;
            first = false;
        }
        if self.leftovers.len() > NAMED {
            write!(
                f,
                "; and so for {} more pairs",
                self.leftovers.len() - NAMED
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} lane {} ", self.rank, self.lane)?;
        match self.faces {
            LaneKind::Send { peer, channel } => write!(f, "(to {peer}, channel {channel})")?,
            LaneKind::Recv { peer, channel } => write!(f, "(from {peer}, channel {channel})")?,
            LaneKind::Local { .. } => f.write_str("(local)")?,
        }
        write!(f, " at step {}", self.step)?;
        if self.segment > 0 {
            write!(f, " segment {}", self.segment)?;
        }
        write!(f, " ({}) ", name(self.kind))?;
        match self.blocked {
            Blocked::Step {
                lane,
                step,
                segment,
            } => write!(f, "waits for step {step} segment {segment} of lane {lane}"),
            Blocked::Message => f.write_str("waits for a message"),
            Blocked::Room => f.write_str("waits for room in its FIFO"),
            Blocked::Turn { lane } => write!(f, "comes after lane {lane} in its FIFO"),
            Blocked::NoLane { lane } => write!(f, "waits for lane {lane}, which does not exist"),
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages from {} to {} on channel {} are never received",
            self.messages, self.from, self.to, self.channel
        )
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "send",
        Kind::Recv => "recv",
        Kind::RecvReduce => "recv_reduce",
        Kind::SyncTo => "sync_to",
        Kind::SyncFrom => "sync_from",
        Kind::Reduce { .. } => "reduce",
        Kind::Copy => "copy",
    }
}
