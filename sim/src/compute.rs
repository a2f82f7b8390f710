//! The simulated core of a rank at work: copies and reductions take virtual time, and phantoms are added up.

use std::sync::Arc;

use unisono::parts::{Compute, Direct, Work, Workspace};
use unisono_contract::{OutOfMemory, Piece, Revoked};
use unisono_core::Rank;
use unisono_reduce::Kernels;

use crate::world::Shared;

pub(crate) struct SimCompute {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rank: Rank,
    pub(crate) space: unisono::parts::PhantomSpace,
}

impl Compute for SimCompute {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        let phantom = target.is_phantom() || source.is_phantom();
        if phantom {
            both(&target, &[source])?;
        } else {
            Direct.copy(work, target, source)?;
        }
        // Detours of the engine are not what an algorithm costs.
        let costs = work == Work::Step;
        if phantom || costs {
            let mut world = self.shared.lock();
            let bytes = target.len() as u64;
            if phantom {
                let (to, from) = (target.addr() as u64, source.addr() as u64);
                world.phantoms.reduce(to, &[from], bytes, false);
            }
            if costs {
                world.compute(self.rank, bytes);
            }
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        let bytes = target.len() as u64;
        let phantom = target.is_phantom() || sources.iter().any(Piece::is_phantom);
        if phantom {
            both(&target, sources)?;
        } else {
            Direct.reduce(kernels, target, sources, finish)?;
        }
        let mut world = self.shared.lock();
        if phantom {
            let from: Vec<u64> = sources.iter().map(|s| s.addr() as u64).collect();
            let to = target.addr() as u64;
            world.phantoms.reduce(to, &from, bytes, finish.is_some());
        }
        // n sources are n - 1 reductions; a single one is a pass over the data as well.
        let passes = sources.len().saturating_sub(1).max(1) as u64;
        world.compute(self.rank, bytes * passes);
        Ok(())
    }

    fn workspace(&mut self, bytes: usize, phantom: bool) -> Result<Workspace, OutOfMemory> {
        if phantom {
            return self.space.alloc(bytes).map(Workspace::Piece);
        }
        Direct.workspace(bytes, false)
    }

    fn release(&mut self, workspace: Workspace) {
        if let Workspace::Piece(piece) = workspace {
            let mut world = self.shared.lock();
            world
                .phantoms
                .forget(piece.addr() as u64, piece.len() as u64);
        }
    }
}

/// Phantoms are reduced with phantoms only.
fn both(target: &Piece, sources: &[Piece]) -> Result<(), Revoked> {
    let all = target.is_phantom() && sources.iter().all(Piece::is_phantom);
    all.then_some(()).ok_or(Revoked::Phantom)
}
