//! [`Compute`]: who does the local work of operations, the copies and reductions between messages.
//!
//! An engine does it itself, at once, on the memory that pieces name. An environment that has to know of it (a
//! simulator charges time for it), or whose pieces have no memory, installs its own by [`Engine::with_compute`]. What it
//! does not want to do differently it leaves to [`Direct`]:
//!
//! ```
//! use unisono_contract::{Piece, Revoked};
//! use unisono_engine::{Compute, Direct, Engine, Work};
//! use unisono_reduce::Kernels;
//!
//! /// Counts the bytes that are copied and reduced.
//! #[derive(Default)]
//! struct Counting {
//!     copied: u64,
//!     reduced: u64,
//! }
//!
//! impl Compute for Counting {
//!     fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
//!         self.copied += target.len() as u64;
//!         Direct.copy(work, target, source)
//!     }
//!
//!     fn reduce(
//!         &mut self,
//!         kernels: &Kernels,
//!         target: Piece,
//!         sources: &[Piece],
//!         finish: Option<u32>,
//!     ) -> Result<(), Revoked> {
//!         self.reduced += target.len() as u64;
//!         Direct.reduce(kernels, target, sources, finish)
//!     }
//! }
//!
//! let _engine = Engine::new(0, 0).with_compute(Box::new(Counting::default()));
//! ```
//!
//! [`Engine::with_compute`]: crate::Engine::with_compute

use smallvec::SmallVec;
use unisono_contract::memory::{access, copy, copy_bytes_across};
use unisono_contract::{Operand, OutOfMemory, Piece, Region, Revoked};
use unisono_core::Rank;
use unisono_reduce::{Kernels, Operand as Source};

use crate::plan::Plan;

/// Does the local work of an engine's operations.
///
/// Calls come in the order in which the engine wants the work done; what a call has written must be there for every
/// call and post that follows it.
pub trait Compute: Send {
    /// Makes `target` what `source` is. Both have the same length; they are never the same memory, and may overlap only
    /// where the caller's buffers do.
    ///
    /// # Errors
    /// Memory that cannot be reached.
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked>;

    /// Makes `target` the reduction of `sources`, all of its length, from left to right: at least one, and one that is
    /// exactly `target` (address and length) is the target's own old contents. With `finish` the result is that of all
    /// so many ranks, which an average divides by.
    ///
    /// A message that is reduced into place is the reduction of two: old contents, message. Everything else is a local
    /// step of the program.
    ///
    /// # Errors
    /// Memory that cannot be reached.
    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked>;

    /// Private memory for one operation, at least `bytes` of it: scratch, staging, packing space. `phantom`: the memory
    /// that the operation was given is phantom, at least in part. Contents do not matter.
    ///
    /// # Errors
    /// No memory; the operation does not start.
    fn workspace(&mut self, bytes: usize, phantom: bool) -> Result<Workspace, OutOfMemory> {
        let _ = phantom;
        Region::alloc(bytes).map(Workspace::Region)
    }

    /// Takes back the private memory of an operation that is done. That of operations which were abandoned does not come
    /// back: it is dropped.
    fn release(&mut self, workspace: Workspace) {
        drop(workspace);
    }
}

/// What a copy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// It is a local step of the program.
    Step,
    /// A message arrived before its place was free, and goes there now.
    Landing,
    /// A message has more pieces than the endpoint takes, and is packed.
    Packing,
}

/// Private memory of one operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Workspace {
    /// Kept by whoever has this value.
    Region(Region),
    /// Kept elsewhere, or phantom.
    Piece(Piece),
}

impl Workspace {
    /// All of it.
    pub fn piece(&self) -> Piece {
        match self {
            Workspace::Region(region) => region.piece(0..region.len()),
            Workspace::Piece(piece) => *piece,
        }
    }
}

/// The engine's own way: at once, by the processor that asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl Compute for Direct {
    #[inline]
    fn copy(&mut self, _: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        copy(target, source)
    }

    #[inline]
    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        access(target, sources, |bytes, operands| match operands {
            [Operand::Target, Operand::Bytes(b)] if finish.is_none() => {
                kernels.accumulate(bytes, b);
            }
            [Operand::Bytes(a), Operand::Bytes(b)] if finish.is_none() => {
                kernels.combine(bytes, a, b);
            }
            operands => many(kernels, bytes, operands, finish),
        })
    }
}

fn many(kernels: &Kernels, target: &mut [u8], operands: &[Operand<'_>], finish: Option<Rank>) {
    let operands: SmallVec<[Source<'_>; 16]> = operands
        .iter()
        .map(|o| match o {
            Operand::Target => Source::Target,
            Operand::Bytes(bytes) => Source::Bytes(bytes),
        })
        .collect();
    kernels.many(target, &operands, finish);
}

/// The compute that was installed, if one was.
#[derive(Default)]
pub(crate) struct Hook(Option<Box<dyn Compute>>);

impl Hook {
    pub(crate) fn new(compute: Box<dyn Compute>) -> Hook {
        Hook(Some(compute))
    }

    /// Nothing is installed.
    #[inline]
    pub(crate) fn is_direct(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        match &mut self.0 {
            None => Direct.copy(work, target, source),
            Some(compute) => compute.copy(work, target, source),
        }
    }

    #[inline]
    pub(crate) fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        match &mut self.0 {
            None => Direct.reduce(kernels, target, sources, finish),
            Some(compute) => compute.reduce(kernels, target, sources, finish),
        }
    }

    /// Copies a gather list to one piece.
    #[inline]
    pub(crate) fn pack(&mut self, target: Piece, pieces: &[Piece]) -> Result<(), Revoked> {
        let Some(compute) = &mut self.0 else {
            return copy_bytes_across(&[target], pieces).map(|_| ());
        };
        let mut at = 0;
        for piece in pieces {
            let end = at + piece.len();
            compute.copy(Work::Packing, target.slice(at..end), *piece)?;
            at = end;
        }
        Ok(())
    }

    /// Private memory for one operation of `plan` over `memory`; `None` when it needs none.
    #[inline]
    pub(crate) fn workspace(
        &mut self,
        plan: &Plan,
        memory: [Piece; 2],
    ) -> Result<Option<Workspace>, OutOfMemory> {
        let Some(compute) = &mut self.0 else {
            return Ok(plan.workspace()?.map(Workspace::Region));
        };
        let none = OutOfMemory { bytes: usize::MAX };
        let bytes = usize::try_from(plan.workspace_bytes()).map_err(|_| none)?;
        if bytes == 0 {
            return Ok(None);
        }
        let phantom = memory.iter().any(Piece::is_phantom);
        let workspace = compute.workspace(bytes, phantom)?;
        match workspace.piece().len() >= bytes {
            true => Ok(Some(workspace)),
            false => Err(OutOfMemory { bytes }),
        }
    }

    /// Takes back what [`workspace`](Hook::workspace) gave.
    #[inline]
    pub(crate) fn release(&mut self, plan: &Plan, workspace: Workspace) {
        match (&mut self.0, workspace) {
            (Some(compute), workspace) => compute.release(workspace),
            (None, Workspace::Region(region)) => plan.give_back(region),
            (None, Workspace::Piece(_)) => {}
        }
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_direct() {
            "direct"
        } else {
            "installed"
        })
    }
}
