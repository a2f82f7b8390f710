//! [`Table`]: for one kind of call, which candidate from which size on.
//!
//! ```text
//! price         at 10 sizes, 64 B * 8^i (above 64 ranks at 4, 1 KiB * 64^i), each candidate with its best segments;
//!   |           up to 64 ranks, where several are close, these at the doublings between as well
//!   |           between two sizes a price is a straight line, so the cheapest is the lower envelope of lines
//! rows          (from, candidate, segments), ascending; segments follow the size at each doubling
//!   |
//! lookup        the last row that begins at or below the size: one binary search
//! ```
//!
//! Whole numbers throughout: the table is the same on every machine, byte for byte.

use std::fmt;

use unisono_core::{Collective, Rank};

use crate::candidates::{Candidate, Kind, Survey, context};
use crate::facts::Facts;
use crate::price::{Price, Pricer, Unpriced};

/// Which candidate from which size on.
pub struct Table {
    rows: Vec<Row>,
    candidates: Vec<Candidate>,
    names: Vec<String>,
    sizes: usize,
}

/// One row: a candidate, from a size on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// Bytes of the larger buffer.
    pub(crate) from: u64,
    pub(crate) candidate: usize,
    pub(crate) segments: u64,
}

/// The sizes at which prices are made, in bytes of the larger buffer, and the doublings between two of them.
pub(crate) fn sizes(collective: Collective, ranks: Rank) -> (Vec<u64>, u32) {
    match (collective, ranks) {
        (Collective::Barrier, _) => (vec![0], 1),
        (_, 0..=64) => ((0..10).map(|i| 64 << (3 * i)).collect(), 3),
        _ => ((0..4).map(|i| 1024 << (6 * i)).collect(), 6),
    }
}

/// Bytes of the vector, or of one row, of a call with so many bytes in its larger buffer.
pub fn row_bytes(collective: Collective, ranks: Rank, total: u64) -> u64 {
    match collective.rows(ranks) {
        None | Some(0) => total,
        Some(_) => total.div_ceil(ranks.max(1).into()),
    }
}

impl Table {
    /// Prices the candidates of `survey`; those that have no price are refused in it. `None`: nobody has one.
    pub(crate) fn make(facts: &Facts, kind: Kind, survey: &mut Survey) -> Option<Table> {
        let mut candidates = Vec::new();
        let mut pricers = Vec::new();
        for candidate in survey.candidates.drain(..) {
            let network = &facts.networks()[candidate.network];
            let cx = context(network, kind, candidate.params);
            match Pricer::new(candidate.algorithm.as_ref(), &cx, network) {
                Ok(pricer) => {
                    candidates.push(candidate);
                    pricers.push(pricer);
                }
                Err(why) => survey.refusals.push(crate::candidates::Refusal {
                    algorithm: candidate.algorithm.name().to_owned(),
                    way: network.way(),
                    reason: why.to_string(),
                }),
            }
        }
        let (sizes, doublings) = sizes(kind.collective, facts.size());
        let mut prices: Vec<Vec<Option<Price>>> = Vec::new();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        for &total in &sizes {
            let n = row_bytes(kind.collective, facts.size(), total);
            let mut at = vec![None; candidates.len()];
            let mut best: Option<u64> = None;
            // The best of the last size first: whoever cannot beat it need not look for segments.
            for &c in &order {
                let price = pricers[c].price(n, best).ok();
                at[c] = price;
                best = best.into_iter().chain(price.map(|p| p.ps)).min();
            }
            order.sort_by_key(|&c| (at[c].map_or(u64::MAX, |p| p.ps), c));
            prices.push(at);
        }
        let (mut sizes, mut doublings) = (sizes, doublings);
        let made_at = sizes.len();
        if facts.size() <= MOST_REFINED && doublings > 1 {
            let price = |c: usize, total| {
                let n = row_bytes(kind.collective, facts.size(), total);
                pricers[c].price(n, None).ok()
            };
            (sizes, prices) = refined(&sizes, &prices, doublings, price);
            doublings = 0;
        }
        let rows = rows(&sizes, doublings, &prices);
        let name = |c: &Candidate| {
            let way = facts.networks()[c.network].way();
            format!(
                "{}(channels={})@{way}",
                c.algorithm.name(),
                c.params.channels
            )
        };
        (!rows.is_empty()).then(|| Table {
            rows,
            names: candidates.iter().map(name).collect(),
            candidates,
            sizes: made_at,
        })
    }

    /// The row for a call with so many bytes in its larger buffer.
    #[inline]
    pub(crate) fn row(&self, bytes: u64) -> Row {
        let after = self.rows.partition_point(|r| r.from <= bytes);
        self.rows[after.saturating_sub(1)]
    }

    /// The candidate and the segments for a call with so many bytes in its larger buffer: one binary search.
    #[inline]
    pub fn lookup(&self, bytes: u64) -> (&str, u64) {
        let row = self.row(bytes);
        (&self.names[row.candidate], row.segments)
    }

    pub(crate) fn candidate(&self, row: Row) -> &Candidate {
        &self.candidates[row.candidate]
    }

    /// At how many sizes prices were made.
    pub fn sizes(&self) -> usize {
        self.sizes
    }
}

impl fmt::Display for Table {
    /// One row a line: from how many bytes on, which candidate, how many segments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let name = &self.names[row.candidate];
            writeln!(f, "{:>12}  {name}  {}", row.from, row.segments)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("names", &self.names)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Unpriced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpriced::Build(error) => write!(f, "{error}"),
            Unpriced::TooLong { steps } => write!(f, "{steps} steps are too many to price"),
            Unpriced::Stuck(text) => f.write_str(text),
        }
    }
}

/// Above so many ranks, prices between the sizes of the table are straight lines and nothing else.
const MOST_REFINED: Rank = 64;

/// Sizes, and at each of them the prices of all candidates.
type Prices = (Vec<u64>, Vec<Vec<Option<Price>>>);

/// The same prices with those at the doublings between two sizes, of the candidates that are close to the best there.
///
/// A price bends where segments begin to pay, so that a straight line may be a fifth too low; who is further behind than
/// that is out of the question.
fn refined(
    sizes: &[u64],
    prices: &[Vec<Option<Price>>],
    doublings: u32,
    price: impl Fn(usize, u64) -> Option<Price>,
) -> Prices {
    let (mut all_sizes, mut all) = (Vec::new(), Vec::new());
    for (pair, ends) in sizes.windows(2).zip(prices.windows(2)) {
        let (lo, left, right) = (pair[0], &ends[0], &ends[1]);
        all_sizes.push(lo);
        all.push(left.clone());
        let line = |c: usize, doubling: u32| {
            let (a, b) = (u128::from(left[c]?.ps), u128::from(right[c]?.ps));
            let (part, parts) = ((1u128 << doubling) - 1, (1u128 << doublings) - 1);
            Some((a * (parts - part) + b * part) / parts)
        };
        let mut contenders: Vec<usize> = Vec::new();
        for doubling in 0..=doublings {
            let at = (0..left.len()).filter_map(|c| Some((line(c, doubling)?, c)));
            let Some((least, _)) = at.clone().min() else {
                continue;
            };
            contenders.extend(at.filter(|&(ps, _)| ps * 4 <= least * 5).map(|(_, c)| c));
        }
        contenders.sort_unstable();
        contenders.dedup();
        for doubling in 1..doublings {
            let total = lo << doubling;
            let mut at = vec![None; left.len()];
            for &c in &contenders {
                let ends = (left[c].map(|p| p.segments), right[c].map(|p| p.segments));
                at[c] = match (contenders.len(), ends) {
                    // Nobody else, and no segments to be found: the line will do.
                    (1, (Some(1), Some(1))) => line(c, doubling).map(|ps| Price {
                        segments: 1,
                        ps: ps as u64,
                    }),
                    _ => price(c, total),
                };
            }
            all_sizes.push(total);
            all.push(at);
        }
    }
    all_sizes.extend(sizes.last());
    all.extend(prices.last().cloned());
    (all_sizes, all)
}

/// A stretch in which one candidate is the cheapest.
type Stretch = (u64, usize);

fn rows(sizes: &[u64], doublings: u32, prices: &[Vec<Option<Price>>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut push = |row: Row| match rows.last() {
        Some(last) if (last.candidate, last.segments) == (row.candidate, row.segments) => {}
        _ => rows.push(row),
    };
    for (i, pair) in prices.windows(2).enumerate() {
        let (lo, hi) = (sizes[i], sizes[i + 1]);
        for (from, until, candidate) in envelope(lo, hi, &pair[0], &pair[1]) {
            let segments = |end: &[Option<Price>]| end[candidate].map_or(1, |p| p.segments);
            let (first, last) = (segments(&pair[0]), segments(&pair[1]));
            if doublings == 0 {
                let segments = first;
                push(Row {
                    from,
                    candidate,
                    segments,
                });
            }
            for doubling in 0..doublings {
                let (a, b) = (lo << doubling, lo << (doubling + 1));
                if b <= from || a >= until {
                    continue;
                }
                push(Row {
                    from: a.max(from),
                    candidate,
                    segments: between(first, last, doubling, doublings),
                });
            }
        }
    }
    // What holds at the largest size holds beyond it.
    if let (Some(&size), Some(at)) = (sizes.last(), prices.last())
        && let Some((_, candidate)) = cheapest(at)
    {
        push(Row {
            from: size,
            candidate,
            segments: at[candidate].map_or(1, |p| p.segments),
        });
    }
    if let Some(first) = rows.first_mut() {
        first.from = 0;
    }
    rows
}

/// `part` of `parts` on the way from one number to another.
fn between(from: u64, to: u64, part: u32, parts: u32) -> u64 {
    let (from, to, part, parts) = (from as i64, to as i64, i64::from(part), i64::from(parts));
    (from + (to - from) * part / parts).max(1) as u64
}

fn cheapest(prices: &[Option<Price>]) -> Option<Stretch> {
    let priced = prices.iter().enumerate();
    priced
        .filter_map(|(c, price)| price.map(|p| (p.ps, c)))
        .min()
}

/// Who is the cheapest from where to where between two sizes: the lower envelope of straight lines.
fn envelope(
    lo: u64,
    hi: u64,
    left: &[Option<Price>],
    right: &[Option<Price>],
) -> Vec<(u64, u64, usize)> {
    let line = |c: usize| {
        let (a, b) = (left[c]?, right[c]?);
        Some((i128::from(a.ps), i128::from(b.ps) - i128::from(a.ps)))
    };
    let lines: Vec<Option<(i128, i128)>> = (0..left.len()).map(line).collect();
    let start = lines.iter().enumerate();
    // Of equal prices, the one that grows less.
    let start = start.filter_map(|(c, l)| l.map(|(y, rise)| (y, rise, c)));
    let Some((_, _, mut current)) = start.min() else {
        return Vec::new();
    };
    let width = i128::from(hi - lo);
    let (mut from, mut stretches) = (lo, Vec::new());
    loop {
        let Some((y, rise)) = lines[current] else {
            return stretches;
        };
        let crossings = lines.iter().enumerate().filter_map(|(c, line)| {
            let (other, slope) = (*line)?;
            if slope >= rise {
                return None;
            }
            let at = i128::from(lo) + (width * (other - y)).div_euclid(rise - slope) + 1;
            let at = at.max(i128::from(from));
            (at < i128::from(hi)).then_some((at as u64, slope, c))
        });
        match crossings.min() {
            None => {
                stretches.push((from, hi, current));
                return stretches;
            }
            Some((at, _, next)) => {
                if at > from {
                    stretches.push((from, at, current));
                }
                (from, current) = (at, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(ps: u64) -> Option<Price> {
        Some(Price { segments: 1, ps })
    }

    #[test]
    fn the_envelope_takes_each_line_where_it_is_lowest() {
        // y = 10 + x, y = 40 + x/4, y = 100; from 0 to 400: crossings at 40 and 240.
        let left = [price(10), price(40), price(100), None];
        let right = [price(410), price(140), price(100), price(1)];
        assert_eq!(
            envelope(0, 400, &left, &right),
            [(0, 41, 0), (41, 241, 1), (241, 400, 2)]
        );
        assert_eq!(
            envelope(8, 16, &[price(5), price(5)], &[price(9), price(7)]),
            [(8, 16, 1)]
        );
    }

    #[test]
    fn segments_follow_the_size_between_two_prices() {
        let at = |segments, ps| vec![Some(Price { segments, ps })];
        let rows = rows(&[64, 512], 3, &[at(1, 10), at(7, 20)]);
        let found: Vec<(u64, u64)> = rows.iter().map(|r| (r.from, r.segments)).collect();
        assert_eq!(found, [(0, 1), (128, 3), (256, 5), (512, 7)]);
    }

    #[test]
    fn sizes_are_ten_up_to_64_ranks_and_four_beyond() {
        assert_eq!(sizes(Collective::AllReduce, 64).0.len(), 10);
        let (few, doublings) = sizes(Collective::AllReduce, 65);
        assert_eq!((few.len(), doublings), (4, 6));
        assert_eq!(few[3], 256 << 20);
        assert_eq!(sizes(Collective::Barrier, 3).0, [0]);
    }
}
