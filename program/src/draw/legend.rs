//! What the signs mean: only those that the picture shows.

use super::layout::Point;
use super::paint::{FADED, INK, one_block};
use super::palette::{GREY, colour};
use super::schedule::{End, Schedule};
use super::signs::{head, local, pill, ring_sum};
use super::svg::{N, Svg};
use crate::Program;

/// The legend below a picture.
pub(super) struct Legend {
    items: Vec<(Sign, &'static str, Point)>,
    /// How many colours there are.
    colours: u64,
    height: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Sign {
    /// The colours of the blocks or senders.
    Colours,
    Receive,
    Reduce,
    Sync,
    LocalReduce,
    Copy,
    /// Thick and thin.
    Thickness,
}

const SIZE: f64 = 11.0;
const LINE: f64 = 24.0;
const LEFT: f64 = 20.0;
/// Up to so many colours have a pill each; more share a band.
const PILLS: u64 = 16;

impl Legend {
    pub(super) fn new(program: &Program, schedule: &Schedule, width: f64) -> Legend {
        let ends = |end| schedule.messages.iter().any(|m| m.end == end);
        let marks = |reduces| schedule.marks.iter().any(|m| m.reduces == reduces);
        let moves = ends(End::Receive) || ends(End::Reduce);
        let several = moves && schedule.messages.iter().any(|m| m.what.len > 1);
        let shown = [
            (
                moves,
                Sign::Colours,
                if one_block(program) {
                    "sender"
                } else {
                    "block"
                },
            ),
            (ends(End::Receive), Sign::Receive, "receive"),
            (ends(End::Reduce), Sign::Reduce, "receive and reduce"),
            (ends(End::Sync), Sign::Sync, "sync"),
            (marks(true), Sign::LocalReduce, "reduce locally"),
            (marks(false), Sign::Copy, "copy"),
            (several, Sign::Thickness, "more blocks"),
        ];
        let colours = if one_block(program) {
            program.size.into()
        } else {
            program.blocks
        };
        let (mut x, mut y) = (LEFT, 0.0);
        let mut items = Vec::new();
        for (_, sign, text) in shown.into_iter().filter(|s| s.0) {
            let wide = sign.width(colours) + 8.0 + 0.56 * SIZE * text.len() as f64;
            if x + wide > width - LEFT && x > LEFT {
                (x, y) = (LEFT, y + LINE);
            }
            items.push((sign, text, Point { x, y }));
            x += wide + 22.0;
        }
        Legend {
            height: if items.is_empty() {
                14.0
            } else {
                y + LINE + 22.0
            },
            items,
            colours,
        }
    }

    pub(super) fn height(&self) -> f64 {
        self.height
    }

    pub(super) fn paint(&self, svg: &mut Svg, top: f64) {
        let small = N(SIZE);
        svg.open(
            "g",
            &[
                ("class", &"legend"),
                ("font-size", &small),
                ("fill", &FADED),
            ],
        );
        for (sign, text, at) in &self.items {
            let at = Point {
                x: at.x,
                y: top + 24.0 + at.y,
            };
            sign.paint(svg, at, self.colours);
            svg.text(
                at.x + sign.width(self.colours) + 8.0,
                at.y + 0.35 * SIZE,
                &[],
                text,
            );
        }
        svg.close();
    }
}

impl Sign {
    fn width(self, colours: u64) -> f64 {
        match self {
            Sign::Colours if colours <= PILLS => 20.0 * colours as f64 - 2.0,
            Sign::Colours => 190.0,
            Sign::Receive | Sign::Reduce | Sign::Sync => 34.0,
            Sign::LocalReduce | Sign::Copy => 12.0,
            Sign::Thickness => 26.0,
        }
    }

    /// Draws the sign from `at` to the right.
    fn paint(self, svg: &mut Svg, at: Point, colours: u64) {
        let right = |by: f64| Point {
            x: at.x + by,
            y: at.y,
        };
        let w = self.width(colours);
        match self {
            Sign::Colours => all_colours(svg, at, colours),
            Sign::Receive => {
                line(svg, at, w - 8.0, 1.7, false);
                head(svg, right(w), at, 1.0, GREY);
            }
            Sign::Reduce => {
                line(svg, at, w - 11.0, 1.7, false);
                ring_sum(svg, right(w - 5.6), 1.0, GREY);
            }
            Sign::Sync => {
                line(svg, at, w - 8.0, 1.7, true);
                head(svg, right(w), at, 1.0, GREY);
            }
            Sign::LocalReduce => local(svg, right(0.5 * w), true, 1.0, GREY),
            Sign::Copy => local(svg, right(0.5 * w), false, 1.0, GREY),
            Sign::Thickness => line(svg, at, w, 4.0, false),
        }
    }
}

fn line(svg: &mut Svg, at: Point, width: f64, thick: f64, dashed: bool) {
    let (x, y, end, thick) = (N(at.x), N(at.y), N(at.x + width), N(thick));
    let line: [super::svg::Attribute<'_>; 5] = [
        ("x1", &x),
        ("y1", &y),
        ("x2", &end),
        ("y2", &y),
        ("stroke", &GREY),
    ];
    let mut all = line.to_vec();
    all.push(("stroke-width", &thick));
    if dashed {
        all.push(("stroke-dasharray", &"5 3.5"));
    }
    svg.shape("line", &all);
}

fn all_colours(svg: &mut Svg, at: Point, colours: u64) {
    if colours <= PILLS {
        svg.open(
            "g",
            &[
                ("fill", &"#ffffff"),
                ("font-size", &"9.6"),
                ("font-weight", &"600"),
                ("text-anchor", &"middle"),
            ],
        );
        for b in 0..colours {
            let middle = Point {
                x: at.x + 20.0 * b as f64 + 9.0,
                y: at.y,
            };
            pill(svg, middle, 18.0, 9.6, colour(b, colours), &b.to_string());
        }
        svg.close();
        return;
    }
    // First and last number at the ends of a band of 24 samples.
    let last = (colours - 1).to_string();
    svg.text(at.x, at.y + 0.35 * SIZE, &[("fill", &INK)], &"0");
    for i in 0..24 {
        let hue = colour(i * (colours - 1) / 23, colours);
        svg.shape(
            "rect",
            &[
                ("x", &N(at.x + 12.0 + 6.0 * i as f64)),
                ("y", &N(at.y - 5.0)),
                ("width", &"6.2"),
                ("height", &"10"),
                ("fill", &hue),
            ],
        );
    }
    svg.text(at.x + 162.0, at.y + 0.35 * SIZE, &[("fill", &INK)], &last);
}
