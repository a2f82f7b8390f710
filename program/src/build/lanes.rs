//! Lanes while they are being built: which lane a step goes to, and which waits its order already implies.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::roll::{self, Step};
use crate::hazards::Access;
use crate::{Kind, Lane, LaneKind, Program, Span, Stage, Wait};

#[derive(Default)]
pub(super) struct Lanes {
    lanes: Vec<Building>,
    by_kind: HashMap<LaneKind, SmallVec<[u32; 1]>>,
    last: Option<(LaneKind, Option<Stage>, u32)>,
}

struct Building {
    lane: Lane,
    /// Per other lane, the latest step that some step of this lane has waited for.
    waited: SmallVec<[(u32, u64); 2]>,
    last_stage: Option<Stage>,
}

/// The waits of one step, at most one per lane.
pub(super) struct Waits {
    own: u32,
    waits: SmallVec<[(u32, u64, bool); 4]>,
}

impl Waits {
    pub(super) fn new(own: u32) -> Waits {
        Waits {
            own,
            waits: SmallVec::new(),
        }
    }

    /// Waits for `access`, whose span overlaps `span` of the waiting step.
    pub(super) fn add(&mut self, access: &Access, span: Span) {
        if access.lane == self.own {
            return; // steps of one lane are applied in order
        }
        // Segment s of both steps holds the same elements only if both name the same blocks.
        let whole = access.span != span;
        match self.waits.iter_mut().find(|w| w.0 == access.lane) {
            Some(w) if w.1 == access.step => w.2 |= whole,
            Some(w) if w.1 > access.step => {}
            Some(w) => (w.1, w.2) = (access.step, whole),
            None => self.waits.push((access.lane, access.step, whole)),
        }
    }
}

impl Lanes {
    /// The lane for a step of this kind at this stage, made if need be.
    ///
    /// Under waves a step goes to the first strand whose last stage + S it does not undercut for any S.
    pub(super) fn lane(&mut self, kind: LaneKind, stage: Option<Stage>) -> u32 {
        if stage.is_none()
            && let Some((last, None, lane)) = self.last
            && last == kind
        {
            return lane;
        }
        let strands = self.by_kind.entry(kind).or_default();
        let local = matches!(kind, LaneKind::Local { .. });
        let found = strands.iter().copied().find(|&i| {
            let last = self.lanes[i as usize].last_stage;
            match (last, stage) {
                (Some(last), Some(stage)) if !local => follows(last, stage),
                _ => true,
            }
        });
        let lane = found.unwrap_or_else(|| {
            let index = self.lanes.len() as u32;
            strands.push(index);
            self.lanes.push(Building {
                lane: Lane {
                    kind,
                    steps: 0,
                    runs: Vec::new(),
                },
                waited: SmallVec::new(),
                last_stage: None,
            });
            index
        });
        self.lanes[lane as usize].last_stage = stage;
        self.last = Some((kind, stage, lane));
        lane
    }

    pub(super) fn steps(&self, lane: u32) -> u64 {
        self.lanes[lane as usize].lane.steps
    }

    /// The waits that the order of the lane does not already imply, sorted by lane.
    ///
    /// An earlier step of this lane that waited for any segment of a step has, at its last segment, waited for all of
    /// them; what comes after it is applied after it.
    pub(super) fn drop_implied(&mut self, lane: u32, waits: Waits) -> Vec<Wait> {
        let waited = &mut self.lanes[lane as usize].waited;
        let mut kept: Vec<Wait> = Vec::new();
        for (other, step, whole) in waits.waits {
            match waited.iter_mut().find(|w| w.0 == other) {
                Some(w) if w.1 >= step => continue,
                Some(w) => w.1 = step,
                None => waited.push((other, step)),
            }
            kept.push(Wait {
                lane: other,
                step: step as i64,
                stride: 0,
                whole,
            });
        }
        kept.sort_unstable_by_key(|w| w.lane);
        kept
    }

    pub(super) fn push(&mut self, lane: u32, step: Step, program: &Program) {
        let lane = &mut self.lanes[lane as usize].lane;
        let start = lane.steps;
        lane.steps += 1;
        if let Some(last) = lane.runs.last_mut()
            && roll::extend(last, &step, program)
        {
            return;
        }
        lane.runs.push(step.into_run(start));
    }

    /// Lets the local reduction `writer` divide by itself; false if it is none or is rolled with others.
    pub(super) fn finish_in_place(&mut self, writer: Access) -> bool {
        let lane = &mut self.lanes[writer.lane as usize].lane;
        let Some(run) = lane.runs.iter_mut().find(|r| r.start == writer.step) else {
            return false;
        };
        match &mut run.kind {
            Kind::Reduce { finish } if run.count == 1 => {
                *finish = true;
                true
            }
            _ => false,
        }
    }

    pub(super) fn into_lanes(self) -> Vec<Lane> {
        self.lanes.into_iter().map(|b| b.lane).collect()
    }
}

/// Whether all segments of a step at `last` come before the first one of a step at `stage`, for every S >= 1.
fn follows(last: Stage, stage: Stage) -> bool {
    let hops = stage.hops - last.hops - 1;
    hops >= 0 && hops + stage.offset - last.offset >= 0
}
