//! Where things go: slots to x, ranks to y, and a place of its own for each end of each arrow.

use std::collections::HashMap;

use unisono_core::Rank;

use super::schedule::{Message, Schedule};

/// A point in the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A message from its sender's line to its receiver's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arrow {
    pub(super) from: Point,
    pub(super) to: Point,
    /// Where it is taken: to the right of `to` if it had to lie there for a while.
    pub(super) taken: Point,
}

/// The geometry of one picture.
pub(super) struct Layout {
    /// Left end of slot 0.
    pub(super) left: f64,
    /// The line of rank 0.
    pub(super) top: f64,
    /// Width of a slot.
    pub(super) slot: f64,
    /// Distance of two ranks.
    pub(super) row: f64,
    pub(super) slots: u64,
    pub(super) ranks: Rank,
    /// What is drawn on lines, relative to its size in a small world.
    pub(super) scale: f64,
    /// Whether messages bear their blocks and ends have room for symbols.
    pub(super) labels: bool,
    /// Whether arrows are so many that they would hide each other's signs.
    pub(super) dense: bool,
    /// From the end of a slot to the last arrival in it, and to the first send of the next.
    gap: f64,
    /// Distance of two arrivals at one place.
    port: f64,
    /// Room to the right of the last slot.
    right: f64,
}

/// Worlds up to this size are drawn with labels.
const LABELLED: Rank = 24;

/// Up to so many messages of one rank in one slot bear labels.
const DENSE: usize = 7;

impl Layout {
    pub(super) fn new(ranks: Rank, schedule: &Schedule) -> Layout {
        let slots = schedule.end.max(1);
        let labels = ranks <= LABELLED;
        let fan = most(schedule.messages.iter().map(|m| (m.to, m.taken))).max(1) as f64;
        let crowd = most(schedule.messages.iter().map(|m| (0, m.sent)));
        let last = schedule.marks.iter().filter(|m| m.at == schedule.end);
        let last = most(last.map(|m| (m.rank, m.at))) as f64;
        let (row, scale) = match ranks {
            0..=8 => (62.0, 1.0),
            9..=16 => (46.0, 0.9),
            17..=LABELLED => (34.0, 0.8),
            _ => ((1100.0 / f64::from(ranks)).clamp(3.0, 24.0), 0.4),
        };
        let port = if labels { 12.5 * scale } else { 3.0 };
        let gap = match (labels, schedule.marks.is_empty()) {
            (true, true) => 9.0 * scale,
            (true, false) => 15.0 * scale,
            _ => 1.0,
        };
        let slot = if labels {
            let even = (760.0 / slots as f64)
                .clamp(60.0, 320.0 + 12.0 * f64::from(ranks.saturating_sub(8)));
            even.max(2.0 * gap + port * (fan - 1.0).min(12.0) + 44.0)
        } else {
            (1400.0 / slots as f64).clamp(8.0, 80.0)
        };
        Layout {
            left: if labels {
                66.0
            } else {
                50.0 + 5.5 * f64::from(ranks.ilog10())
            },
            top: 106.0 + if labels { 10.0 } else { 0.0 },
            slot,
            row,
            slots,
            ranks,
            scale,
            labels,
            dense: crowd > DENSE * ranks as usize,
            gap,
            port: port.min(slot * 0.5 / (fan - 1.0).max(1.0)),
            right: 30.0 + (last - 1.0).clamp(0.0, 12.0) * 13.0 * scale,
        }
    }

    /// The end of the last slot.
    pub(super) fn end(&self) -> f64 {
        self.time(self.slots)
    }

    pub(super) fn width(&self) -> f64 {
        (self.end() + self.right).max(420.0)
    }

    /// Below the line of the last rank.
    pub(super) fn bottom(&self) -> f64 {
        self.rank(self.ranks.saturating_sub(1)) + (0.5 * self.row).clamp(8.0, 26.0)
    }

    /// The end of `slot` slots.
    pub(super) fn time(&self, slot: u64) -> f64 {
        self.left + slot as f64 * self.slot
    }

    /// The line of a rank.
    pub(super) fn rank(&self, rank: Rank) -> f64 {
        self.top + f64::from(rank) * self.row
    }

    /// Where the `n`-th of `of` local steps at one place goes.
    pub(super) fn mark(&self, rank: Rank, at: u64, n: usize, of: usize) -> Point {
        let room = 0.45 * self.slot;
        let pitch = (13.0 * self.scale).min(room / (of.max(2) - 1) as f64);
        Point {
            x: self.time(at) + n as f64 * pitch,
            y: self.rank(rank),
        }
    }

    /// Each message's arrow. No two messages that are taken at one time share a place on the line of their receiver.
    ///
    /// The one from farthest away goes last, so that arrows from one side do not cross.
    pub(super) fn arrows(&self, messages: &[Message]) -> Vec<Arrow> {
        let mut places: HashMap<(Rank, u64), Vec<usize>> = HashMap::new();
        for (i, m) in messages.iter().enumerate() {
            places.entry((m.to, m.taken)).or_default().push(i);
        }
        let mut place_of = vec![0; messages.len()];
        for taken in places.values_mut() {
            taken.sort_by_key(|&i| {
                let m = &messages[i];
                (m.from.abs_diff(m.to), m.from, i)
            });
            for (n, &i) in taken.iter().enumerate() {
                place_of[i] = taken.len() - 1 - n;
            }
        }
        let arrow = |(m, place): (&Message, usize)| {
            let before = self.gap + place as f64 * self.port;
            let at = |x: f64, rank| Point {
                x,
                y: self.rank(rank),
            };
            Arrow {
                from: at(self.time(m.sent) + self.gap, m.from),
                to: at(self.time(m.arrived) - before, m.to),
                taken: at(self.time(m.taken) - before, m.to),
            }
        };
        messages.iter().zip(place_of).map(arrow).collect()
    }

    /// Where on its arrow each label goes: clear of other labels, lines and arrows where possible.
    pub(super) fn labels(
        &self,
        arrows: &[Arrow],
        messages: &[Message],
        widths: &[f64],
    ) -> Vec<Point> {
        let mut by_slot: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, m) in messages.iter().enumerate() {
            by_slot.entry(m.sent).or_default().push(i);
        }
        let mut order: Vec<usize> = (0..messages.len()).collect();
        // Steep arrows have the least choice.
        order.sort_by_key(|&i| {
            (
                messages[i].sent,
                messages[i].from.abs_diff(messages[i].to),
                i,
            )
        });
        let mut placed: Vec<Option<Point>> = vec![None; messages.len()];
        let half = 7.0 * self.scale;
        for i in order {
            let mut best = (f64::INFINITY, arrows[i].from);
            for step in 0..=32 {
                let f = 0.14 + 0.66 * f64::from(step) / 32.0;
                let at = between(arrows[i], f);
                let mut cost = (f - 0.4).abs();
                let line = ((at.y - self.top) / self.row).round() * self.row + self.top;
                let near = (at.y - line).abs() / half;
                cost += 3.0 * (1.7 - near).max(0.0);
                for &j in &by_slot[&messages[i].sent] {
                    if i == j {
                        continue;
                    }
                    if let Some(other) = placed[j] {
                        let dx = (at.x - other.x).abs() / (0.5 * (widths[i] + widths[j]) + 3.0);
                        let dy = (at.y - other.y).abs() / (2.0 * half + 2.0);
                        cost += 12.0 * (1.0 - dx).max(0.0).min((1.0 - dy).max(0.0));
                        cost += if dx < 1.0 && dy < 1.0 { 6.0 } else { 0.0 };
                    }
                    let away = distance(at, arrows[j]) / (half + 2.0);
                    cost += 1.2 * (1.0 - away).max(0.0);
                }
                if cost < best.0 {
                    best = (cost, at);
                }
            }
            placed[i] = Some(best.1);
        }
        placed.into_iter().flatten().collect()
    }
}

/// The point a fraction of the way along.
fn between(arrow: Arrow, f: f64) -> Point {
    let (a, b) = (arrow.from, arrow.to);
    Point {
        x: a.x + f * (b.x - a.x),
        y: a.y + f * (b.y - a.y),
    }
}

/// From a point to an arrow.
fn distance(p: Point, arrow: Arrow) -> f64 {
    let (a, b) = (arrow.from, arrow.to);
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let square = dx * dx + dy * dy;
    let f = if square > 0.0 {
        (((p.x - a.x) * dx + (p.y - a.y) * dy) / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let q = between(arrow, f);
    (p.x - q.x).hypot(p.y - q.y)
}

/// How many of `places` are the same, at most.
fn most(places: impl Iterator<Item = (Rank, u64)>) -> usize {
    let mut count: HashMap<(Rank, u64), usize> = HashMap::new();
    for place in places {
        *count.entry(place).or_default() += 1;
    }
    count.into_values().max().unwrap_or(0)
}
