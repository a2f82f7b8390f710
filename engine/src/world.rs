//! All ranks of a world stepped by one thread over the null network: how programs are tried without a thread.

use std::sync::Arc;

use unisono_contract::null::{Net, Policy};
use unisono_contract::{Endpoint, Piece, WaitSet};
use unisono_core::Rank;
use unisono_program::Program;

use crate::{Drive, Engine, EngineError, Plan, PlanError, Request, Ticket};

/// One engine and one null endpoint per rank.
pub struct World {
    ranks: Vec<(Engine, Vec<Box<dyn Endpoint>>)>,
    net: Net,
}

/// Why a world did not come to an end.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A program could not be bound.
    #[error("rank {rank}: {error}")]
    Plan {
        /// The rank.
        rank: Rank,
        /// Why.
        error: PlanError,
    },
    /// A rank failed.
    #[error("rank {rank}: {error}")]
    Rank {
        /// The rank.
        rank: Rank,
        /// Why.
        error: EngineError,
    },
    /// Nobody can move and operations are left.
    #[error("nobody can move; rank {rank} waits for {waits}")]
    Stuck {
        /// The first rank with an unfinished operation.
        rank: Rank,
        /// What it waits for: directions and peers.
        waits: String,
    },
}

impl World {
    /// `size` ranks over a null network with this policy.
    pub fn new(size: Rank, policy: Policy) -> World {
        let ends = Net::new(size as usize, policy);
        let net = ends.first().map(|e| e.net()).unwrap_or_else(|| {
            unreachable!("a world has at least one rank");
        });
        let ranks = ends
            .into_iter()
            .map(|e| (Engine::new(0, 0), vec![Box::new(e) as Box<dyn Endpoint>]))
            .collect();
        World { ranks, net }
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The engine of a rank.
    pub fn engine(&mut self, rank: Rank) -> &mut Engine {
        &mut self.ranks[rank as usize].0
    }

    /// Binds the programs of all ranks to a call.
    pub fn plans(
        &mut self,
        programs: &[Arc<Program>],
        request: &Request,
    ) -> Result<Vec<Arc<Plan>>, WorldError> {
        programs
            .iter()
            .map(|program| self.plan(Arc::clone(program), request))
            .collect()
    }

    /// Binds the program of one rank to a call.
    pub fn plan(
        &mut self,
        program: Arc<Program>,
        request: &Request,
    ) -> Result<Arc<Plan>, WorldError> {
        let rank = program.rank;
        let (engine, endpoints) = &mut self.ranks[rank as usize];
        engine
            .plan(program, request, endpoints)
            .map_err(|error| WorldError::Plan { rank, error })
    }

    /// Starts an operation at one rank.
    pub fn submit(
        &mut self,
        rank: Rank,
        plan: &Arc<Plan>,
        input: Piece,
        output: Piece,
    ) -> Result<Ticket, WorldError> {
        self.ranks[rank as usize]
            .0
            .submit(plan, input, output)
            .map_err(|error| WorldError::Rank { rank, error })
    }

    /// Steps all ranks in turn until every operation is done.
    ///
    /// # Errors
    /// The first rank that fails, also because a message lies there that it has called otherwise; [`WorldError::Stuck`] when a whole round moves nothing although the network held
    /// nothing back (over a network that holds polls back, after a thousand such rounds).
    pub fn run(&mut self) -> Result<(), WorldError> {
        let (mut idle, mut bytes) = (0, self.net.bytes());
        while self.ranks.iter().any(|(e, _)| e.running() > 0) {
            let mut moved = false;
            for (rank, (engine, endpoints)) in self.ranks.iter_mut().enumerate() {
                let rank = rank as Rank;
                let drive = engine
                    .drive(endpoints)
                    .map_err(|error| WorldError::Rank { rank, error })?;
                moved |= drive == Drive::Progress;
                while engine.finished().is_some() {}
            }
            let now = self.net.bytes();
            moved |= now != std::mem::replace(&mut bytes, now);
            idle = if moved { 0 } else { idle + 1 };
            if idle > 1000 {
                return Err(self.stuck());
            }
        }
        Ok(())
    }

    fn stuck(&mut self) -> WorldError {
        for (rank, (engine, endpoints)) in self.ranks.iter_mut().enumerate() {
            if let Err(error) = engine.unclaimed(endpoints, &mut WaitSet::new()) {
                let rank = rank as Rank;
                return WorldError::Rank { rank, error };
            }
        }
        let unfinished = self.ranks.iter().position(|(e, _)| e.running() > 0);
        let rank = unfinished.unwrap_or(0);
        let waits: Vec<String> = self.ranks[rank]
            .0
            .waiting_for()
            .map(|(peer, direction)| format!("{direction} {peer}"))
            .collect();
        WorldError::Stuck {
            rank: rank as Rank,
            waits: waits.join(", "),
        }
    }
}
