//! Local work: applying what landed in staging, copies, reductions.

use smallvec::SmallVec;
use unisono_contract::{Piece, Revoked};
use unisono_program::Kind;

use crate::compute::{Hook, Work};
use crate::fifo::Entry;
use crate::moves::{Move, Place};
use crate::operation::{Operation, staging};
use crate::pieces::Pieces;
use crate::plan::Plan;

/// Puts a message that landed in staging where it belongs.
pub(crate) fn landed(
    compute: &mut Hook,
    plan: &Plan,
    operation: &Operation,
    run: &Move,
    entry: &Entry,
) -> Result<(), Revoked> {
    let (binding, at) = (&operation.binding, &entry.place);
    let bytes = (at.to - at.from) * plan.element;
    let staged = staging(plan, operation, entry.unit, bytes as usize);
    let mut target = Pieces::new();
    plan.find_new(binding, run, at, &mut target);
    if run.kind == Kind::Recv {
        return each(&target, &[Cut::of(&[staged])], |target, sources| {
            compute.copy(Work::Landing, target, sources[0])
        });
    }
    let kernels = plan.kernels.as_ref().ok_or(Revoked::Ended)?;
    let mut old = Pieces::new();
    plan.find_old(binding, run, at, &mut old);
    if let ([target], [old]) = (&target[..], &old[..])
        && (target.addr(), target.len()) == (old.addr(), old.len())
        && compute.is_direct()
    {
        // The usual message. Staging has a place of its own, so the two never overlap.
        let done = target.write(|target| staged.read(|b| kernels.accumulate(target, b)));
        return done.and_then(|done| done);
    }
    let staged = [staged];
    each(
        &target,
        &[Cut::of(&old), Cut::of(&staged)],
        |target, sources| compute.reduce(kernels, target, sources, None),
    )
}

/// Runs one segment of a local step.
pub(crate) fn local(
    compute: &mut Hook,
    plan: &Plan,
    operation: &Operation,
    run: &Move,
    at: &Place,
) -> Result<(), Revoked> {
    let (from, to) = (at.from, at.to);
    if from == to {
        return Ok(());
    }
    let finder = plan.finder();
    let binding = &operation.binding;
    let mut target = Pieces::new();
    plan.find_new(binding, run, at, &mut target);
    // The pieces of all sources, one source after the other, and where each source ends.
    let (mut found, mut ends) = (Pieces::new(), SmallVec::<[usize; 16]>::new());
    for source in &run.sources {
        let span = plan.program.span_at(source, at.k);
        let location = Some(&source.location);
        finder.find(binding, span, location, from, to, &mut found);
        ends.push(found.len());
    }
    let Kind::Reduce { finish } = run.kind else {
        return each_stretch(&target, &found, &ends, |target, sources| {
            if target.addr() == sources[0].addr() {
                return Ok(()); // in place
            }
            compute.copy(Work::Step, target, sources[0])
        });
    };
    let finish = finish.then_some(plan.program.size);
    let kernels = plan.kernels.as_ref().ok_or(Revoked::Ended)?;
    each_stretch(&target, &found, &ends, |target, sources| {
        compute.reduce(kernels, target, sources, finish)
    })
}

/// [`each`] over sources whose pieces stand one after the other, up to the `ends`.
fn each_stretch(
    target: &[Piece],
    found: &[Piece],
    ends: &[usize],
    mut f: impl FnMut(Piece, &[Piece]) -> Result<(), Revoked>,
) -> Result<(), Revoked> {
    if let [target] = target
        && found.len() == ends.len()
    {
        return f(*target, found); // The usual step: everything lies in one piece.
    }
    let starts = std::iter::once(&0).chain(ends);
    let cuts: SmallVec<[Cut<'_>; 8]> = starts
        .zip(ends)
        .map(|(&start, &end)| Cut::of(&found[start..end]))
        .collect();
    each(target, &cuts, f)
}

/// A gather list and how far it has been used.
#[derive(Clone, Copy)]
struct Cut<'a> {
    pieces: &'a [Piece],
    offset: usize,
}

impl<'a> Cut<'a> {
    fn of(pieces: &'a [Piece]) -> Cut<'a> {
        Cut { pieces, offset: 0 }
    }

    fn rest(&self) -> usize {
        self.pieces.first().map_or(0, |p| p.len() - self.offset)
    }

    fn take(&mut self, bytes: usize) -> Piece {
        let piece = self.pieces[0].slice(self.offset..self.offset + bytes);
        self.offset += bytes;
        if self.offset == self.pieces[0].len() {
            self.pieces = &self.pieces[1..];
            self.offset = 0;
        }
        piece
    }
}

/// Calls `f` on every stretch over which the target and all sources lie in one piece each.
fn each(
    target: &[Piece],
    sources: &[Cut<'_>],
    mut f: impl FnMut(Piece, &[Piece]) -> Result<(), Revoked>,
) -> Result<(), Revoked> {
    if let [target] = target
        && sources.len() <= 2
        && sources.iter().all(|s| s.pieces.len() == 1)
    {
        // The usual step: everything lies in one piece.
        let first = sources[0].pieces[0];
        let last = sources[sources.len() - 1].pieces[0];
        return f(*target, &[first, last][..sources.len()]);
    }
    let mut target = Cut::of(target);
    let mut sources: SmallVec<[Cut<'_>; 8]> = sources.iter().copied().collect();
    loop {
        let bytes = sources
            .iter()
            .map(Cut::rest)
            .fold(target.rest(), usize::min);
        if bytes == 0 {
            return Ok(());
        }
        let into = target.take(bytes);
        let from: SmallVec<[Piece; 8]> = sources.iter_mut().map(|s| s.take(bytes)).collect();
        f(into, &from)?;
    }
}
