//! The signs: arrowheads, sums, copies, labels. Shapes tell what happens, colours tell to which block.

use super::layout::Point;
use super::paint::PAPER;
use super::palette::Colour;
use super::schedule::{End, What};
use super::svg::{N, Svg};

/// Thicker for more blocks.
pub(super) fn thickness(what: What) -> f64 {
    1.7 + 0.45 * (what.len.max(1) as f64).log2().min(5.0)
}

/// How far before its point an arrow's line ends.
pub(super) fn reach(end: End, scale: f64) -> f64 {
    scale
        * if end == End::Reduce {
            RADIUS
        } else {
            HEAD - 1.0
        }
}

const RADIUS: f64 = 5.6;
const HEAD: f64 = 9.0;

/// The point `by` before `to`, seen from `from`.
pub(super) fn back(to: Point, from: Point, by: f64) -> Point {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy).max(1e-6);
    Point {
        x: to.x - dx / length * by,
        y: to.y - dy / length * by,
    }
}

/// A filled arrowhead: what arrives is stored.
pub(super) fn head(svg: &mut Svg, tip: Point, from: Point, scale: f64, hue: Colour) {
    let base = back(tip, from, HEAD * scale);
    let half = 0.45;
    let (dx, dy) = ((tip.x - base.x) * half, (tip.y - base.y) * half);
    let points = format!(
        "{},{} {},{} {},{}",
        N(tip.x),
        N(tip.y),
        N(base.x - dy),
        N(base.y + dx),
        N(base.x + dy),
        N(base.y - dx)
    );
    svg.shape("polygon", &[("points", &points), ("fill", &hue)]);
}

/// A plus in a hollow circle: what arrives is added.
pub(super) fn ring_sum(svg: &mut Svg, at: Point, scale: f64, hue: Colour) {
    let r = RADIUS * scale;
    svg.shape(
        "circle",
        &[
            ("cx", &N(at.x)),
            ("cy", &N(at.y)),
            ("r", &N(r)),
            ("fill", &PAPER),
            ("stroke", &hue),
            ("stroke-width", &N(1.7 * scale)),
        ],
    );
    if scale > 0.5 {
        plus(svg, at, 0.58 * r, 1.5 * scale, &hue);
    }
}

fn plus(svg: &mut Svg, at: Point, arm: f64, width: f64, ink: &dyn std::fmt::Display) {
    let d = format!(
        "M{} {}H{}M{} {}V{}",
        N(at.x - arm),
        N(at.y),
        N(at.x + arm),
        N(at.x),
        N(at.y - arm),
        N(at.y + arm)
    );
    svg.shape(
        "path",
        &[("d", &d), ("stroke", ink), ("stroke-width", &N(width))],
    );
}

/// A filled diamond with a plus for a local reduction, a filled square for a copy.
pub(super) fn local(svg: &mut Svg, at: Point, reduces: bool, scale: f64, hue: Colour) {
    let r = scale * if reduces { 6.6 } else { 3.8 };
    let d = if reduces {
        let (x, y) = (N(at.x), N(at.y));
        let (left, right, top, bottom) = (N(at.x - r), N(at.x + r), N(at.y - r), N(at.y + r));
        format!("M{left} {y}L{x} {top}L{right} {y}L{x} {bottom}Z")
    } else {
        let (left, top, side) = (N(at.x - r), N(at.y - r), N(2.0 * r));
        format!("M{left} {top}h{side}v{side}h-{side}Z")
    };
    svg.shape(
        "path",
        &[
            ("d", &d),
            ("fill", &hue),
            ("stroke", &PAPER),
            ("stroke-width", &N(scale)),
        ],
    );
    if reduces && scale > 0.5 {
        plus(svg, at, 0.42 * r, 1.3 * scale, &PAPER);
    }
}

/// A word on a ground of its own.
pub(super) fn pill(svg: &mut Svg, at: Point, width: f64, size: f64, hue: Colour, text: &str) {
    let height = 1.4 * size;
    svg.shape(
        "rect",
        &[
            ("x", &N(at.x - 0.5 * width)),
            ("y", &N(at.y - 0.5 * height)),
            ("width", &N(width)),
            ("height", &N(height)),
            ("rx", &N(0.5 * height)),
            ("fill", &hue),
            ("stroke", &PAPER),
            ("stroke-width", &"1"),
        ],
    );
    svg.text(at.x, at.y + 0.36 * size, &[], &text);
}
