//! Engines over pieces that have no memory.

mod support;

use std::sync::{Arc, Mutex};

use support::calls::calls;
use support::ranks::Ranks;
use support::{Call, Memory, registry};
use unisono_contract::null::{self, Policy};
use unisono_contract::{
    Completions, Drain, Endpoint, Frame, Limits, LinkCause, LinkError, OutOfMemory, PhantomSpace,
    Piece, Port, PostError, Ready, Region, Revoked, Token, WaitSet,
};
use unisono_core::{Collective, Rank};
use unisono_engine::{Compute, Direct, EngineError, Work, Workspace};
use unisono_reduce::Kernels;

/// What stands for phantom memory in a test: real memory beside every phantom piece.
#[derive(Clone, Default)]
struct Shadows {
    space: PhantomSpace,
    pairs: Arc<Mutex<Vec<(Piece, Region)>>>,
}

impl Shadows {
    fn alloc(&self, bytes: usize) -> Result<Piece, OutOfMemory> {
        let phantom = self.space.alloc(bytes)?;
        let region = Region::alloc(bytes)?;
        self.pairs.lock().expect("no panic").push((phantom, region));
        Ok(phantom)
    }

    /// The real memory of a phantom piece.
    fn real(&self, piece: Piece) -> Piece {
        assert!(piece.is_phantom(), "{piece:?}");
        let pairs = self.pairs.lock().expect("no panic");
        let found = pairs.iter().find_map(|(phantom, region)| {
            let at = piece.addr().checked_sub(phantom.addr())?;
            (at + piece.len() <= region.len()).then(|| region.piece(at..at + piece.len()))
        });
        found.expect("a piece of this space")
    }

    fn list(&self, pieces: &[Piece]) -> Vec<Piece> {
        pieces.iter().map(|p| self.real(*p)).collect()
    }
}

impl Compute for Shadows {
    fn copy(&mut self, work: Work, target: Piece, source: Piece) -> Result<(), Revoked> {
        Direct.copy(work, self.real(target), self.real(source))
    }

    fn reduce(
        &mut self,
        kernels: &Kernels,
        target: Piece,
        sources: &[Piece],
        finish: Option<Rank>,
    ) -> Result<(), Revoked> {
        Direct.reduce(kernels, self.real(target), &self.list(sources), finish)
    }

    fn workspace(&mut self, bytes: usize, phantom: bool) -> Result<Workspace, OutOfMemory> {
        assert!(phantom);
        self.alloc(bytes).map(Workspace::Piece)
    }
}

/// An endpoint that takes phantom pieces, and moves what is beside them.
struct Shadowed {
    inner: null::Endpoint,
    shadows: Shadows,
}

impl Endpoint for Shadowed {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }
    fn port(&mut self, peer: Rank, channel: u16) -> Option<Port> {
        self.inner.port(peer, channel)
    }
    fn post_send(
        &mut self,
        port: Port,
        frame: &Frame,
        data: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let data = self.shadows.list(data);
        self.inner.post_send(port, frame, &data, token)
    }
    fn post_recv(
        &mut self,
        port: Port,
        expect: &Frame,
        into: &[Piece],
        token: Token,
    ) -> Result<(), PostError> {
        let into = self.shadows.list(into);
        self.inner.post_recv(port, expect, &into, token)
    }
    fn poll(&mut self, done: &mut Completions) -> Result<(), LinkError> {
        self.inner.poll(done)
    }
    fn wait_on(&mut self, set: &mut WaitSet) -> Result<Ready, LinkError> {
        self.inner.wait_on(set)
    }
    fn quiesce(&mut self) -> Drain {
        self.inner.quiesce()
    }
}

#[test]
fn an_engine_over_phantom_pieces_touches_no_memory_and_asks_for_all_the_work() {
    for call in calls() {
        for algorithm in registry().iter() {
            let Some(programs) = call.programs(&**algorithm) else {
                continue;
            };
            let shadows = Shadows::default();
            let mut ranks = Ranks::new(call.size, Policy::hostile(call.count), |inner| {
                let shadows = shadows.clone();
                Box::new(Shadowed { inner, shadows })
            })
            .with_compute(|| Box::new(shadows.clone()));
            let memory: Vec<Memory> = (0..call.size).map(|r| Memory::new(&call, r)).collect();
            let pieces: Vec<_> = memory.iter().map(|m| shadow(m, &shadows)).collect();
            ranks.submit_all(&programs, &call.request(), &pieces);
            ranks.run();
            let name = algorithm.name();
            for ((m, (_, phantom)), rank) in memory.into_iter().zip(pieces).zip(0..) {
                if !phantom.is_empty() {
                    Direct
                        .copy(Work::Step, m.output, shadows.real(phantom))
                        .expect("both are there");
                }
                m.check(&call, name, rank);
            }
        }
    }
}

/// Phantom pieces that lie to each other as those of `memory` do, with its contents beside them.
fn shadow(memory: &Memory, shadows: &Shadows) -> (Piece, Piece) {
    let (input, output) = (memory.input, memory.output);
    let bounds = |p: Piece| p.addr()..p.addr() + p.len();
    let (i, o) = (bounds(input), bounds(output));
    let fresh = |piece: Piece| {
        let phantom = shadows.alloc(piece.len()).expect("memory");
        Direct
            .copy(Work::Step, shadows.real(phantom), piece)
            .expect("both are there");
        phantom
    };
    if i.start < o.end && o.start < i.end {
        let (from, to) = (i.start.min(o.start), i.end.max(o.end));
        let larger = if i.len() > o.len() { input } else { output };
        let both = fresh(larger);
        assert_eq!(both.len(), to - from);
        (
            both.slice(i.start - from..i.end - from),
            both.slice(o.start - from..o.end - from),
        )
    } else {
        (fresh(input), fresh(output))
    }
}

#[test]
fn phantom_pieces_without_an_environment_for_them_are_refused_by_type() {
    let call = Call {
        in_place: true,
        ..Call::new(Collective::AllReduce, 2, 100)
    };
    let algorithm = unisono_ring::Ring;
    let programs = call.programs(&algorithm).expect("it is offered");
    for policy in [Policy::instant(), Policy::hostile(3)] {
        let mut ranks = Ranks::new(2, policy, |end| Box::new(end));
        let space = PhantomSpace::new();
        let pieces: Vec<_> = (0..2).map(|_| space.alloc(400).expect("room")).collect();
        let pieces: Vec<_> = pieces.iter().map(|p| (*p, *p)).collect();
        ranks.submit_all(&programs, &call.request(), &pieces);
        // Whose piece it was is told so, and the other one that the link is closed.
        let mut causes = Vec::new();
        while causes.len() < 2 {
            for rank in 0..2 {
                match ranks.drive(rank) {
                    Ok(_) => {}
                    Err(EngineError::Link(link)) => causes.push(link.cause),
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let phantom = |c: &LinkCause| matches!(c, LinkCause::Revoked(Revoked::Phantom));
        assert!(causes.iter().any(phantom), "{causes:?}");
    }
}
