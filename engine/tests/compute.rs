//! Local work done by somebody else: every byte of it, and to the same bits.

mod support;

use std::sync::{Arc, Mutex};

use support::calls::calls;
use support::ranks::Ranks;
use support::{Call, Memory, assert_identical, registry};
use unisono_contract::null::Policy;
use unisono_contract::{OutOfMemory, Piece, Region, Revoked};
use unisono_core::{Collective, Rank};
use unisono_engine::{Compute, Direct, EngineError, Work, Workspace};
use unisono_program::{Kind, Program};
use unisono_reduce::Kernels;

/// What all ranks of a world did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    steps: u64,
    landings: u64,
    packings: u64,
    reduced: u64,
    lent: u64,
    released: u64,
}

/// Counts bytes and leaves the work to [`Direct`].
struct Counting(Arc<Mutex<Tally>>);

impl Compute for Counting {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        assert_ne!(target.addr(), source.addr(), "in place there is no copy");
        let mut tally = self.0.lock().expect("no panic");
        let bytes = target.len() as u64;
        match work {
            Work::Step => tally.steps += bytes,
            Work::Landing => tally.landings += bytes,
            _ => tally.packings += bytes,
        }
        Direct.copy(work, target, source)
    }

    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        let passes = (sources.len() as u64 - 1).max(1);
        self.0.lock().expect("no panic").reduced += passes * target.len() as u64;
        Direct.reduce(kernels, target, sources, finish)
    }

    fn workspace(&mut self, bytes: usize, phantom: bool) -> Result<Workspace, OutOfMemory> {
        assert!(!phantom);
        self.0.lock().expect("no panic").lent += 1;
        Region::alloc(bytes).map(Workspace::Region)
    }

    fn release(&mut self, _: Workspace) {
        self.0.lock().expect("no panic").released += 1;
    }
}

#[test]
fn counted_work_gives_the_same_bits_as_the_engines_own() {
    let mut total = Tally::default();
    for call in calls() {
        for algorithm in registry().iter() {
            let Some(programs) = call.programs(&**algorithm) else {
                continue;
            };
            let policy = Policy::hostile(call.count);
            let own = call.run(&programs, policy);
            let tally = Arc::new(Mutex::new(Tally::default()));
            let mut ranks = Ranks::new(call.size, policy, |end| Box::new(end))
                .with_compute(|| Box::new(Counting(Arc::clone(&tally))));
            let memory: Vec<Memory> = (0..call.size).map(|r| Memory::new(&call, r)).collect();
            let pieces: Vec<_> = memory.iter().map(|m| (m.input, m.output)).collect();
            ranks.submit_all(&programs, &call.request(), &pieces);
            ranks.run();
            let name = algorithm.name();
            let outputs: Vec<_> = memory
                .into_iter()
                .zip(0..)
                .map(|(m, rank)| m.check(&call, name, rank))
                .collect();
            assert_identical(&call, name, &outputs);
            assert!(outputs == own, "{name} {call:?}");
            let tally = std::mem::take(&mut *tally.lock().expect("no panic"));
            assert_eq!(
                tally.reduced,
                reduced(&programs, &call),
                "{name} {call:?}: {tally:?}"
            );
            assert_eq!(tally.lent, tally.released, "{name} {call:?}");
            total.steps += tally.steps;
            total.landings += tally.landings;
            total.packings += tally.packings;
            total.lent += tally.lent;
        }
    }
    assert!(
        total.steps > 0 && total.landings > 0 && total.packings > 0 && total.lent > 0,
        "the calls exercise everything: {total:?}"
    );
}

/// The bytes that programs reduce, by their text: every element as often as it is a second operand.
fn reduced(programs: &[Arc<Program>], call: &Call) -> u64 {
    let shape = unisono_core::Shape::new(
        call.collective,
        call.count,
        programs[0].blocks,
        programs[0].subs,
    );
    let mut elements = 0;
    for program in programs {
        for run in program.lanes.iter().flat_map(|l| &l.runs) {
            let passes = match run.kind {
                Kind::RecvReduce => 1,
                Kind::Reduce { .. } => (run.sources.len() as u64 - 1).max(1),
                _ => continue,
            };
            for k in 0..run.count {
                let span = program.span_at(&run.target, k);
                let slot = span.first.checked_sub(program.data_indices());
                elements += passes
                    * match slot {
                        None => shape.span(span.first, span.len),
                        Some(slot) => shape.len(program.slots[slot as usize].like),
                    };
            }
        }
    }
    elements * call.dtype.size() as u64
}

/// Gives less than it is asked for.
struct Stingy;

impl Compute for Stingy {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        Direct.copy(work, target, source)
    }
    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        Direct.reduce(kernels, target, sources, finish)
    }
    fn workspace(&mut self, bytes: usize, _: bool) -> Result<Workspace, OutOfMemory> {
        Region::alloc(bytes - 1).map(Workspace::Region)
    }
}

#[test]
fn a_workspace_that_is_too_small_is_no_memory() {
    let call = Call::new(Collective::AllReduce, 2, 100);
    let programs = call.programs(&unisono_ring::Ring).expect("it is offered");
    let mut ranks =
        Ranks::new(2, Policy::instant(), |end| Box::new(end)).with_compute(|| Box::new(Stingy));
    let plan = ranks.plan(&programs[0], &call.request());
    assert!(plan.workspace_bytes() > 0);
    let memory = Memory::new(&call, 0);
    let engine = &mut ranks.engines[0];
    let error = engine.submit(&plan, memory.input, memory.output);
    assert!(matches!(error, Err(EngineError::OutOfMemory(_))));
    assert_eq!(engine.running(), 0);
}
