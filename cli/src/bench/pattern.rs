//! The data of a bench: different per rank and index, and with results that every element type holds exactly.
//!
//! Values repeat with a period that is a prime and so shares no factor with block sizes: data that land in the wrong
//! place, or at the wrong rank, are seen. One period per rank and one of the reduction are enough to fill and to check
//! buffers of any size by comparing memory.
//!
//! Sums stay below 257 and products below 65 for up to [`MOST_RANKS`] ranks, which even bf16 holds exactly in any order
//! of the operands; averages are of values that were spread around them.

use half::{bf16, f16};
use unisono_core::{Element, Op, Rank};

use super::case::{Stretch, Whose};

/// More ranks than this have sums that bf16 does not hold.
pub(crate) const MOST_RANKS: Rank = 256;

const PERIOD: usize = 1021;

/// An element type that can be made from small whole numbers.
pub(crate) trait Sample: Element {
    /// The value of `number`; integers wrap.
    fn sample(number: i64) -> Self;
}

macro_rules! samples {
    ($($t:ty: |$n:ident| $value:expr),* $(,)?) => {$(
        impl Sample for $t {
            fn sample($n: i64) -> $t {
                $value
            }
        }
    )*};
}

samples! {
    i8: |n| n as i8, i16: |n| n as i16, i32: |n| n as i32, i64: |n| n,
    u8: |n| n as u8, u16: |n| n as u16, u32: |n| n as u32, u64: |n| n as u64,
    f16: |n| f16::from_f64(n as f64), bf16: |n| bf16::from_f64(n as f64),
    f32: |n| n as f32, f64: |n| n as f64,
}

/// One period of each rank's contribution, and of their reduction.
#[derive(Debug)]
pub(crate) struct Patterns<T> {
    ranks: Vec<Vec<T>>,
    reduced: Vec<T>,
}

impl<T: Sample> Patterns<T> {
    /// For so many ranks and this operator; `None` where nothing is reduced.
    pub(crate) fn new(ranks: Rank, op: Option<Op>) -> Patterns<T> {
        let period = |value: &dyn Fn(usize) -> i64| -> Vec<T> {
            (0..PERIOD).map(|k| T::sample(value(k))).collect()
        };
        let of = |rank, k| contribution(op, ranks, rank, k);
        Patterns {
            ranks: (0..ranks).map(|r| period(&|k| of(r, k))).collect(),
            reduced: match op {
                Some(op) => period(&|k| reduced(op, (0..ranks).map(|r| of(r, k)))),
                None => Vec::new(),
            },
        }
    }

    fn of(&self, whose: Whose) -> &[T] {
        match whose {
            Whose::Of(rank) => &self.ranks[rank as usize],
            Whose::Reduced => &self.reduced,
        }
    }

    /// Writes what `stretches` say into `buffer`, which they cover.
    pub(crate) fn fill(&self, buffer: &mut [T], stretches: &[Stretch]) {
        let mut rest = buffer;
        for stretch in stretches {
            let (part, behind) = rest.split_at_mut(stretch.len);
            let mut chunks = Chunks::new(self.of(stretch.whose), stretch);
            let mut at = 0;
            while let Some(chunk) = chunks.next() {
                part[at..at + chunk.len()].copy_from_slice(chunk);
                at += chunk.len();
            }
            rest = behind;
        }
    }

    /// Counts the elements of `buffer` that have other bits than `stretches` say.
    pub(crate) fn wrong(&self, buffer: &[T], stretches: &[Stretch]) -> u64 {
        let (mut wrong, mut at) = (0, 0);
        for stretch in stretches {
            let mut chunks = Chunks::new(self.of(stretch.whose), stretch);
            while let Some(chunk) = chunks.next() {
                wrong += differences(&buffer[at..at + chunk.len()], chunk);
                at += chunk.len();
            }
        }
        wrong
    }
}

fn differences<T: Sample>(found: &[T], expected: &[T]) -> u64 {
    let (a, b): (&[u8], &[u8]) = (bytemuck::cast_slice(found), bytemuck::cast_slice(expected));
    if a == b {
        return 0;
    }
    let size = size_of::<T>();
    let pairs = a.chunks_exact(size).zip(b.chunks_exact(size));
    pairs.filter(|(a, b)| a != b).count() as u64
}

/// The data of a stretch, in pieces of one period.
struct Chunks<'a, T> {
    period: &'a [T],
    offset: usize,
    left: usize,
}

impl<'a, T> Chunks<'a, T> {
    fn new(period: &'a [T], stretch: &Stretch) -> Chunks<'a, T> {
        Chunks {
            period,
            offset: stretch.start % PERIOD,
            left: stretch.len,
        }
    }

    fn next(&mut self) -> Option<&'a [T]> {
        if self.left == 0 {
            return None;
        }
        let len = self.left.min(PERIOD - self.offset);
        let chunk = &self.period[self.offset..self.offset + len];
        self.left -= len;
        self.offset = 0;
        Some(chunk)
    }
}

/// Element k of what `rank` contributes.
fn contribution(op: Option<Op>, ranks: Rank, rank: Rank, k: usize) -> i64 {
    let (p, r, h) = (i64::from(ranks), i64::from(rank), scrambled(k));
    match op {
        Some(Op::Sum) => (h + 5 * r) % (256 / p).clamp(2, 64),
        // Twos at up to six ranks, ones elsewhere.
        Some(Op::Prod) => match (r + h) % p < 6 {
            true => 1 + ((h / p) >> (r % 40)) % 2,
            false => 1,
        },
        Some(Op::Avg) => {
            // What one of a pair of ranks has more than the average, the other has less.
            let paired = p <= 160 && (r ^ 1) < p;
            let spread = match (paired, r % 2) {
                (false, _) => 0,
                (true, 0) => spread(r / 2, h),
                (true, _) => -spread(r / 2, h),
            };
            average(p, k) + spread
        }
        _ => (h + 37 * r) % 121,
    }
}

/// -1, 0 or 1, for each pair another sequence.
fn spread(pair: i64, h: i64) -> i64 {
    (h >> 5) / (pair + 1) % 3 - 1
}

/// Element k of all averages.
fn average(p: i64, k: usize) -> i64 {
    1 + scrambled(k) % (160 / p).clamp(1, 32)
}

/// The exact reduction of one element of every rank.
fn reduced(op: Op, all: impl Iterator<Item = i64>) -> i64 {
    match op {
        Op::Prod => all.product(),
        Op::Min => all.min().unwrap_or(0),
        Op::Max => all.max().unwrap_or(0),
        Op::Avg => {
            let all: Vec<i64> = all.collect();
            all.iter().sum::<i64>() / all.len().max(1) as i64
        }
        _ => all.sum(),
    }
}

/// A number without a pattern (the finalizer of SplitMix64), not negative.
fn scrambled(k: usize) -> i64 {
    let mut z = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 16) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_partial_result_is_exact_in_eight_bits_of_mantissa() {
        for ranks in [1, 2, 3, 4, 7, 64, 100, 129, 160, 161, MOST_RANKS] {
            for k in 0..PERIOD {
                let all = |op| (0..ranks).map(move |r| contribution(Some(op), ranks, r, k));
                assert!(all(Op::Sum).sum::<i64>() <= 256);
                assert!(all(Op::Prod).product::<i64>() <= 64);
                assert!(all(Op::Avg).filter(|v| *v > 0).sum::<i64>() <= 256);
                assert!(all(Op::Avg).all(|v| v >= 0));
                assert_eq!(
                    all(Op::Avg).sum::<i64>(),
                    average(ranks.into(), k) * i64::from(ranks)
                );
            }
        }
    }

    #[test]
    fn data_differ_per_rank_and_index() {
        for op in [
            None,
            Some(Op::Sum),
            Some(Op::Prod),
            Some(Op::Min),
            Some(Op::Avg),
        ] {
            let patterns = Patterns::<f32>::new(16, op);
            for r in 1..16 {
                assert!(patterns.ranks[r] != patterns.ranks[0], "{op:?}");
            }
            for shift in 1..PERIOD / 2 {
                let moved = &patterns.ranks[0][shift..];
                assert!(*moved != patterns.ranks[0][..PERIOD - shift], "{op:?}");
            }
        }
    }

    #[test]
    fn what_was_filled_is_right_until_a_byte_changes() {
        let patterns = Patterns::<u16>::new(3, Some(Op::Max));
        let stretches = [
            Stretch {
                whose: Whose::Of(2),
                start: 1000,
                len: 1500,
            },
            Stretch {
                whose: Whose::Reduced,
                start: 7,
                len: 10,
            },
        ];
        let mut buffer = vec![0; 1510];
        patterns.fill(&mut buffer, &stretches);
        assert_eq!(buffer[0], patterns.ranks[2][1000]);
        assert_eq!(buffer[21], patterns.ranks[2][0]);
        assert_eq!(buffer[1500], patterns.reduced[7]);
        assert_eq!(patterns.wrong(&buffer, &stretches), 0);
        buffer[21] ^= 0x100;
        buffer[1509] ^= 1;
        assert_eq!(patterns.wrong(&buffer, &stretches), 2);
    }
}
