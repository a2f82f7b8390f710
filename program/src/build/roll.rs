//! Rolling equal steps into runs, so that a regular program does not grow with the world.

use crate::{Kind, Operand, Program, Run, Stage, Wait};

/// One step before it is rolled; operands have stride 0, waits stride 0.
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) target: Operand,
    pub(super) sources: Box<[Operand]>,
    pub(super) waits: Vec<Wait>,
    pub(super) stage: Option<Stage>,
}

impl Step {
    pub(super) fn into_run(self, start: u64) -> Run {
        Run {
            start,
            count: 1,
            kind: self.kind,
            target: self.target,
            sources: self.sources,
            waits: self.waits,
            stage: self.stage.map(|s| (s, Stage::default())),
        }
    }
}

/// Appends `step` to `run` if it continues it; false (and nothing changed) if not.
pub(super) fn extend(run: &mut Run, step: &Step, program: &Program) -> bool {
    if run.kind != step.kind
        || run.sources.len() != step.sources.len()
        || run.stage.is_some() != step.stage.is_some()
    {
        return false;
    }
    let second = run.count == 1;
    let Some(target) = stride(&run.target, &step.target, run.count, program) else {
        return false;
    };
    let mut strides = smallvec::SmallVec::<[i64; 8]>::new();
    for (a, b) in run.sources.iter().zip(&step.sources) {
        match stride(a, b, run.count, program) {
            Some(s) => strides.push(s),
            None => return false,
        }
    }
    let stage = match (run.stage, step.stage) {
        (Some((first, _)), Some(now)) if second => Some((
            first,
            Stage {
                hops: now.hops - first.hops,
                offset: now.offset - first.offset,
            },
        )),
        (Some(_), Some(now)) if run.stage_at(run.count) == Some(now) => run.stage,
        (None, None) => None,
        _ => return false,
    };
    if second {
        match join_waits(&run.waits, &step.waits) {
            Some(waits) => run.waits = waits,
            None => return false,
        }
    } else if !waits_continue(run, step) {
        return false;
    }
    run.target.stride = target;
    for (source, stride) in run.sources.iter_mut().zip(strides) {
        source.stride = stride;
    }
    run.stage = stage;
    run.count += 1;
    true
}

/// The stride by which `now` is step `count` of a run that starts with `first`.
fn stride(first: &Operand, now: &Operand, count: u64, program: &Program) -> Option<i64> {
    if first.span.len != now.span.len || first.location != now.location {
        return None;
    }
    let (a, b) = (first.span.first, now.span.first);
    if program.is_data(a) != program.is_data(b) {
        return None;
    }
    if count > 1 {
        return (program.span_at(first, count) == now.span).then_some(first.stride);
    }
    if !program.is_data(a) || program.blocks == 0 {
        return Some(b as i64 - a as i64);
    }
    let n = program.blocks;
    if a / n != b / n {
        return None;
    }
    // The representative nearest to zero, so that rotated programs are rolled alike.
    let forward = (b % n + n - a % n) % n;
    Some(if forward * 2 > n {
        forward as i64 - n as i64
    } else {
        forward as i64
    })
}

/// Waits of a run of two steps. A wait that only the second has begins at index -1, which always holds.
fn join_waits(first: &[Wait], second: &[Wait]) -> Option<Vec<Wait>> {
    let mut joined = Vec::with_capacity(second.len());
    let mut unmatched = first.len();
    for now in second {
        let wait = match first.iter().find(|w| w.lane == now.lane) {
            Some(w) if w.whole == now.whole => {
                unmatched -= 1;
                Wait {
                    stride: now.step - w.step,
                    ..*w
                }
            }
            Some(_) => return None,
            None => Wait {
                step: -1,
                stride: now.step + 1,
                ..*now
            },
        };
        joined.push(wait);
    }
    (unmatched == 0).then_some(joined)
}

fn waits_continue(run: &Run, step: &Step) -> bool {
    run.waits.len() == step.waits.len()
        && run.waits.iter().zip(&step.waits).all(|(w, now)| {
            w.lane == now.lane && w.whole == now.whole && w.step_at(run.count) == now.step
        })
}
