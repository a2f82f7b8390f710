//! What a run comes to: times and counts, or which lanes stand where.

use super::super::{Blocked, Leftover, Model, Outcome, Standing, Stuck};
use super::{Machine, Role};
use crate::ir::next_strand;
use crate::{Cursor, Run};

impl<M: Model> Machine<'_, M> {
    pub(super) fn finish(self) -> Result<Outcome<M::Time>, Stuck> {
        let lanes: Vec<Standing> = self.standing();
        let fifos = self.fifos.iter().zip(&self.wiring.fifos);
        let leftovers: Vec<Leftover> = fifos
            .filter(|(f, _)| !f.queue.is_empty())
            .map(|(f, ends)| Leftover {
                from: ends.from,
                to: ends.to,
                channel: ends.channel,
                messages: f.queue.len() as u64,
            })
            .collect();
        if !lanes.is_empty() || !leftovers.is_empty() {
            return Err(Stuck { lanes, leftovers });
        }
        let bounds = self.wiring.first_lane.windows(2);
        let times = bounds.map(|b| {
            let lanes = &self.lanes[b[0] as usize..b[1] as usize];
            lanes.iter().fold(M::Time::default(), |latest, l| {
                if l.last > latest { l.last } else { latest }
            })
        });
        Ok(Outcome {
            times: times.collect(),
            messages: self.messages,
            steps: self.steps,
        })
    }

    /// The lanes that have steps left, and what each lacks.
    fn standing(&self) -> Vec<Standing> {
        let mut standing = Vec::new();
        for actor in &self.wiring.actors {
            let program = &*self.programs[actor.rank as usize];
            let first = self.wiring.first_lane[actor.rank as usize];
            let strands = actor.strands.start as usize..actor.strands.end as usize;
            let strands = &self.wiring.strands[strands];
            let candidates = strands.iter().map(|&l| {
                let lane = &program.lanes[(l - first) as usize];
                (l as usize, lane, self.lanes[l as usize].cursor)
            });
            let next = next_strand(candidates, self.segments);
            for &l in strands {
                let lane = &program.lanes[(l - first) as usize];
                let state = &self.lanes[l as usize];
                let (Some(run), Some(next)) = (state.cursor.at(lane), next) else {
                    continue;
                };
                let blocked = if next == l as usize {
                    self.lacks(run, state.cursor, first, actor.role)
                } else {
                    let lane = next as u32 - first;
                    Blocked::Turn { lane }
                };
                standing.push(Standing {
                    rank: actor.rank,
                    lane: l - first,
                    faces: lane.kind,
                    step: state.done / self.segments,
                    segment: state.done % self.segments,
                    kind: run.kind,
                    blocked,
                });
            }
        }
        standing.sort_by_key(|s| (s.rank, s.lane));
        standing
    }

    fn lacks(&self, run: &Run, cursor: Cursor, first: u32, role: Role) -> Blocked {
        for wait in &run.waits {
            let need = wait.needs(cursor.k, cursor.segment, self.segments);
            if self.lanes[(first + wait.lane) as usize].done < need {
                return Blocked::Step {
                    lane: wait.lane,
                    step: (need - 1) / self.segments,
                    segment: (need - 1) % self.segments,
                };
            }
        }
        match role {
            Role::Send => Blocked::Room,
            _ => Blocked::Message,
        }
    }
}
