//! Contents of phantom memory: what it would hold, without holding it.
//!
//! Each byte position of a phantom has a value in the ring of 64-bit integers, and stretches of memory hold a linear
//! function of the position: `start + step * offset`. That is closed under all that a collective does:
//!
//! | work | on values |
//! |---|---|
//! | copy, send, receive | the function moves with its bytes |
//! | reduce | functions are added, whatever the operator |
//! | finish (of an average) | functions are multiplied by an odd constant |
//!
//! Every rank contributes a function of its own with random coefficients. The result is right exactly when it is the
//! sum of all contributions: a byte from the wrong place, a contribution missing or counted twice, a finish left out
//! all change it (but for a chance of 2^-64). So 8 GiB at 1,000 ranks cost a few stretches each.

use std::collections::BTreeMap;
use std::sync::Arc;

use unisono::parts::{PhantomSpace, Piece};
use unisono_contract::OutOfMemory;
use unisono_core::Rank;

use crate::random::{draw, mix};
use crate::world::Shared;

const START: u64 = 11;
const STEP: u64 = 12;
/// What finishing an average multiplies by.
pub(crate) const FINISH: u64 = 0x9e37_79b9_7f4a_7c15;

/// A linear function of the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// At offset 0.
    pub start: u64,
    /// What each further byte adds.
    pub step: u64,
}

impl Value {
    /// What `rank` contributes under `seed`.
    pub fn of_rank(seed: u64, rank: Rank) -> Value {
        Value {
            start: draw(seed, START, u64::from(rank), 0),
            step: draw(seed, STEP, u64::from(rank), 0) | 1,
        }
    }

    /// The same function seen from `offset` on.
    #[must_use]
    pub fn at(self, offset: u64) -> Value {
        let start = self.start.wrapping_add(self.step.wrapping_mul(offset));
        Value { start, ..self }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Value) -> Value {
        Value {
            start: self.start.wrapping_add(other.start),
            step: self.step.wrapping_add(other.step),
        }
    }

    /// What finishing an average makes of it.
    #[must_use]
    pub fn finished(self) -> Value {
        Value {
            start: self.start.wrapping_mul(FINISH),
            step: self.step.wrapping_mul(FINISH),
        }
    }
}

/// So many bytes that hold one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) len: u64,
    pub(crate) value: Value,
}

impl Stretch {
    pub(crate) fn fingerprint(&self) -> u64 {
        mix(mix(mix(self.len) ^ self.value.start) ^ self.value.step)
    }
}

/// Phantom memory of a run. Clones are the same memory.
#[derive(Clone)]
pub struct Phantoms {
    shared: Arc<Shared>,
    space: PhantomSpace,
    seed: u64,
}

impl Phantoms {
    pub(crate) fn new(shared: Arc<Shared>, space: PhantomSpace, seed: u64) -> Phantoms {
        Phantoms {
            shared,
            space,
            seed,
        }
    }

    /// Memory of so many bytes that holds noise.
    ///
    /// # Errors
    /// More than a phantom can have, 2^46 bytes.
    pub fn alloc(&self, bytes: usize) -> Result<Piece, OutOfMemory> {
        self.space.alloc(bytes)
    }

    /// What `rank` contributes in this run.
    pub fn contribution(&self, rank: Rank) -> Value {
        Value::of_rank(self.seed, rank)
    }

    /// Fills `piece` with `value`, seen from its first byte.
    pub fn fill(&self, piece: Piece, value: Value) {
        let (addr, len) = (piece.addr() as u64, piece.len() as u64);
        let stretch = Stretch { len, value };
        self.shared.lock().phantoms.write(addr, stretch);
    }

    /// Forgets what `piece` holds; it holds noise again.
    pub fn free(&self, piece: Piece) {
        let (addr, len) = (piece.addr() as u64, piece.len() as u64);
        self.shared.lock().phantoms.forget(addr, len);
    }

    /// What `piece` holds, if it is one function.
    pub fn value(&self, piece: Piece) -> Option<Value> {
        let mut found = Vec::new();
        let (addr, len) = (piece.addr() as u64, piece.len() as u64);
        self.shared.lock().phantoms.read(addr, len, &mut found);
        match found[..] {
            [Stretch { value, .. }] => Some(value),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Phantoms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phantoms").finish_non_exhaustive()
    }
}

/// What phantom memory holds, by address.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    stretches: BTreeMap<u64, Stretch>,
}

impl Contents {
    /// Appends what the `len` bytes at `addr` hold. What nobody wrote holds noise.
    pub(crate) fn read(&self, addr: u64, len: u64, out: &mut Vec<Stretch>) {
        let end = addr + len;
        let mut at = addr;
        let before = self.stretches.range(..addr).next_back();
        let within = self.stretches.range(addr..end);
        for (&start, stretch) in before.into_iter().chain(within) {
            let stop = (start + stretch.len).min(end);
            if stop <= at {
                continue;
            }
            if start > at {
                push(out, noise(at, start - at));
                at = start;
            }
            let value = stretch.value.at(at - start);
            push(
                out,
                Stretch {
                    len: stop - at,
                    value,
                },
            );
            at = stop;
        }
        if at < end {
            push(out, noise(at, end - at));
        }
    }

    /// Forgets what the `len` bytes at `addr` hold.
    pub(crate) fn forget(&mut self, addr: u64, len: u64) {
        let end = addr + len;
        if let Some((&start, &stretch)) = self.stretches.range(..addr).next_back() {
            let stop = start + stretch.len;
            if stop > addr {
                let first = Stretch {
                    len: addr - start,
                    ..stretch
                };
                self.stretches.insert(start, first);
                if stop > end {
                    self.keep_tail(start, stretch, end);
                }
            }
        }
        while let Some((&start, &stretch)) = self.stretches.range(addr..end).next() {
            self.stretches.remove(&start);
            if start + stretch.len > end {
                self.keep_tail(start, stretch, end);
            }
        }
    }

    fn keep_tail(&mut self, start: u64, stretch: Stretch, from: u64) {
        let tail = Stretch {
            len: start + stretch.len - from,
            value: stretch.value.at(from - start),
        };
        self.stretches.insert(from, tail);
    }

    /// Writes a function.
    pub(crate) fn write(&mut self, addr: u64, stretch: Stretch) {
        if stretch.len == 0 {
            return;
        }
        self.forget(addr, stretch.len);
        let (mut addr, mut stretch) = (addr, stretch);
        if let Some((&start, before)) = self.stretches.range(..addr).next_back()
            && start + before.len == addr
            && continues(before, &stretch)
        {
            stretch = Stretch {
                len: before.len + stretch.len,
                value: before.value,
            };
            addr = start;
        }
        let end = addr + stretch.len;
        if let Some(after) = self.stretches.get(&end).copied()
            && continues(&stretch, &after)
        {
            self.stretches.remove(&end);
            stretch.len += after.len;
        }
        self.stretches.insert(addr, stretch);
    }

    /// Writes bytes `from..from + len` of a sequence of stretches.
    pub(crate) fn write_part(&mut self, addr: u64, stretches: &[Stretch], from: u64, len: u64) {
        let (mut at, end) = (0, from + len);
        for stretch in stretches {
            let (start, stop) = (at.max(from), (at + stretch.len).min(end));
            if start < stop {
                let part = Stretch {
                    len: stop - start,
                    value: stretch.value.at(start - at),
                };
                self.write(addr + (start - from), part);
            }
            at += stretch.len;
        }
    }

    /// Adds the `len` bytes at each of `sources` up at `target`.
    pub(crate) fn reduce(&mut self, target: u64, sources: &[u64], len: u64, finish: bool) {
        let mut sum: Vec<Stretch> = Vec::new();
        let mut operand = Vec::new();
        for (index, &source) in sources.iter().enumerate() {
            operand.clear();
            self.read(source, len, &mut operand);
            sum = match index {
                0 => operand.clone(),
                _ => add(&sum, &operand),
            };
        }
        if finish {
            sum.iter_mut().for_each(|s| s.value = s.value.finished());
        }
        self.write_part(target, &sum, 0, len);
    }
}

fn continues(before: &Stretch, after: &Stretch) -> bool {
    before.value.at(before.len) == after.value
}

fn push(out: &mut Vec<Stretch>, stretch: Stretch) {
    match out.last_mut() {
        Some(last) if continues(last, &stretch) => last.len += stretch.len,
        _ => out.push(stretch),
    }
}

/// What memory holds that nobody wrote: its own for every address.
fn noise(addr: u64, len: u64) -> Stretch {
    let value = Value {
        start: mix(addr),
        step: mix(!addr),
    };
    Stretch { len, value }
}

/// The sum of two sequences of the same length.
fn add(a: &[Stretch], b: &[Stretch]) -> Vec<Stretch> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j, mut a_at, mut b_at) = (0, 0, 0, 0);
    while i < a.len() && j < b.len() {
        let len = (a[i].len - a_at).min(b[j].len - b_at);
        let value = a[i].value.at(a_at).plus(b[j].value.at(b_at));
        push(&mut out, Stretch { len, value });
        a_at += len;
        b_at += len;
        if a_at == a[i].len {
            (i, a_at) = (i + 1, 0);
        }
        if b_at == b[j].len {
            (j, b_at) = (j + 1, 0);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contents as one value per byte, checked against plain arrays.
    fn bytes(contents: &Contents, addr: u64, len: u64) -> Vec<u64> {
        let mut out = Vec::new();
        contents.read(addr, len, &mut out);
        let each = |s: &Stretch| {
            let value = s.value;
            (0..s.len).map(move |i| value.at(i).start)
        };
        out.iter().flat_map(each).collect()
    }

    #[test]
    fn contents_are_what_an_array_of_values_would_hold() {
        let mut contents = Contents::default();
        let mut array: Vec<u64> = bytes(&contents, 0, 64);
        // Noise depends on where it is read from: start from something written.
        for at in 0..64 {
            let value = Value {
                start: mix(at),
                step: 1,
            };
            contents.write(at, Stretch { len: 1, value });
            array[at as usize] = value.start;
        }
        for round in 0..2000 {
            let r = |k: u64, n: u64| draw(3, round, k, 0) % n;
            let len = 1 + r(0, 16);
            let (to, a, b) = (r(1, 64 - len), r(2, 64 - len), r(3, 64 - len));
            let old = array.clone();
            match r(4, 3) {
                0 => {
                    let value = Value::of_rank(round, 1);
                    contents.write(to, Stretch { len, value });
                    for i in 0..len {
                        array[(to + i) as usize] = value.at(i).start;
                    }
                }
                1 => {
                    contents.reduce(to, &[a], len, false);
                    for i in 0..len {
                        array[(to + i) as usize] = old[(a + i) as usize];
                    }
                }
                _ => {
                    contents.reduce(to, &[a, b], len, true);
                    for i in 0..len {
                        let sum = old[(a + i) as usize].wrapping_add(old[(b + i) as usize]);
                        array[(to + i) as usize] = sum.wrapping_mul(FINISH);
                    }
                }
            }
            assert_eq!(bytes(&contents, 0, 64), array, "round {round}");
        }
    }

    #[test]
    fn pieces_of_one_function_become_one_stretch_again() {
        let mut contents = Contents::default();
        let value = Value::of_rank(1, 2);
        for at in [30, 0, 10, 40, 20] {
            let value = value.at(at);
            contents.write(at, Stretch { len: 10, value });
        }
        assert_eq!(contents.stretches.len(), 1);
        contents.forget(20, 10);
        assert_eq!(contents.stretches.len(), 2);
    }
}
