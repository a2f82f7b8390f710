//! Ranks that are stepped one by one, over null endpoints that a test may wrap.

use std::sync::Arc;

use unisono_contract::null::{self, Net, Policy};
use unisono_contract::{Endpoint, Piece};
use unisono_core::Rank;
use unisono_engine::{Compute, Drive, Engine, EngineError, Plan, Request};
use unisono_program::Program;

pub(crate) struct Ranks {
    pub(crate) net: Net,
    pub(crate) engines: Vec<Engine>,
    pub(crate) ends: Vec<Vec<Box<dyn Endpoint>>>,
}

impl Ranks {
    pub(crate) fn new(
        size: Rank,
        policy: Policy,
        wrap: impl Fn(null::Endpoint) -> Box<dyn Endpoint>,
    ) -> Ranks {
        let ends = Net::new(size as usize, policy);
        Ranks {
            net: ends[0].net(),
            engines: (0..size).map(|_| Engine::new(0, 0)).collect(),
            ends: ends.into_iter().map(|e| vec![wrap(e)]).collect(),
        }
    }

    /// The same with local work done by somebody else.
    pub(crate) fn with_compute(mut self, mut compute: impl FnMut() -> Box<dyn Compute>) -> Ranks {
        let engines = self.engines.drain(..);
        self.engines = engines.map(|e| e.with_compute(compute())).collect();
        self
    }

    pub(crate) fn plan(&mut self, program: &Arc<Program>, request: &Request) -> Arc<Plan> {
        let rank = program.rank as usize;
        self.engines[rank]
            .plan(Arc::clone(program), request, &mut self.ends[rank])
            .expect("a plan")
    }

    pub(crate) fn submit(&mut self, rank: Rank, plan: &Arc<Plan>, input: Piece, output: Piece) {
        self.engines[rank as usize]
            .submit(plan, input, output)
            .expect("submitted");
    }

    /// Starts one operation at every rank.
    pub(crate) fn submit_all(
        &mut self,
        programs: &[Arc<Program>],
        request: &Request,
        pieces: &[(Piece, Piece)],
    ) {
        for (program, (input, output)) in programs.iter().zip(pieces) {
            let plan = self.plan(program, request);
            self.submit(program.rank, &plan, *input, *output);
        }
    }

    pub(crate) fn drive(&mut self, rank: usize) -> Result<Drive, EngineError> {
        self.engines[rank].drive(&mut self.ends[rank])
    }

    /// Steps everyone until all operations are done.
    pub(crate) fn run(&mut self) {
        for _ in 0..1_000_000 {
            for rank in 0..self.engines.len() {
                self.drive(rank)
                    .unwrap_or_else(|e| panic!("rank {rank}: {e}"));
            }
            if self.engines.iter().all(|e| e.running() == 0) {
                return;
            }
        }
        panic!("nobody moves");
    }
}
