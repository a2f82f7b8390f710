//! Putting a schedule on paper: the frame, the axes, and in layers above each other arrows, their ends and their labels.

use std::collections::HashMap;

use super::layout::{Arrow, Layout};
use super::legend::Legend;
use super::palette::{Colour, GREY, colour};
use super::schedule::{End, Message, Schedule, What};
use super::signs::{back, head, local, pill, reach, ring_sum, thickness};
use super::svg::{N, Svg};
use crate::Program;

pub(super) const INK: &str = "#1f2328";
pub(super) const FADED: &str = "#59636e";
pub(super) const PAPER: &str = "#ffffff";

/// The whole picture; `program` is any of the set.
pub(super) fn paint(program: &Program, schedule: &Schedule) -> String {
    let layout = Layout::new(program.size, schedule);
    let name = format!("{} {}", program.algorithm, program.collective);
    let width = layout
        .width()
        .max(40.0 + 10.2 * name.chars().count() as f64);
    let legend = Legend::new(program, schedule, width);
    let height = layout.bottom() + legend.height();
    let mut svg = Svg::new(width, height, &name);
    frame(&mut svg, &layout, width, height);
    heading(&mut svg, program, schedule, &name);
    axes(&mut svg, &layout);

    let arrows = layout.arrows(&schedule.messages);
    let hues: Vec<Colour> = schedule.messages.iter().map(|m| hue(program, m)).collect();
    messages(&mut svg, program, &layout, schedule, &arrows, &hues);
    ends(&mut svg, &layout, schedule, &arrows, &hues);
    marks(&mut svg, program, &layout, schedule);
    if layout.labels && !layout.dense && !one_block(program) {
        labels(&mut svg, program, &layout, schedule, &arrows, &hues);
    }
    legend.paint(&mut svg, layout.bottom());
    svg.finish()
}

/// The colour tells the block; where there is but one, it tells the sender instead.
fn hue(program: &Program, m: &Message) -> Colour {
    match m.end {
        End::Sync => GREY,
        _ if one_block(program) => colour(m.from.into(), program.size.into()),
        _ => colour(m.what.block, program.blocks),
    }
}

/// Whether there is but one block to speak of.
pub(super) fn one_block(program: &Program) -> bool {
    program.data_indices() <= 1
}

fn frame(svg: &mut Svg, layout: &Layout, width: f64, height: f64) {
    svg.shape(
        "rect",
        &[
            ("x", &"0.5"),
            ("y", &"0.5"),
            ("width", &N(width - 1.0)),
            ("height", &N(height - 1.0)),
            ("rx", &"10"),
            ("fill", &PAPER),
            ("stroke", &"#d0d7de"),
        ],
    );
    let top = layout.rank(0) - 18.0;
    svg.open("g", &[("class", &"slots"), ("fill", &"#f3f5f8")]);
    for slot in (0..layout.slots).step_by(2) {
        svg.shape(
            "rect",
            &[
                ("x", &N(layout.time(slot))),
                ("y", &N(top)),
                ("width", &N(layout.slot)),
                ("height", &N(layout.bottom() - top)),
            ],
        );
    }
    svg.close();
}

fn heading(svg: &mut Svg, program: &Program, schedule: &Schedule, name: &str) {
    let (x, bold) = (20.0, ("font-weight", &"600" as &dyn std::fmt::Display));
    svg.text(
        x,
        34.0,
        &[("font-size", &"17"), bold, ("fill", &INK)],
        &name,
    );
    let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let blocks = (program.blocks > 0).then(|| counted(program.blocks, "block"));
    let facts = [
        Some(counted(program.size.into(), "rank")),
        blocks,
        Some(counted(schedule.messages.len() as u64, "message")),
        Some(counted(schedule.end, "slot")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let facts = facts.join("  \u{b7}  ");
    svg.text(x, 54.0, &[("font-size", &"12"), ("fill", &FADED)], &facts);
}

fn axes(svg: &mut Svg, layout: &Layout) {
    let small = if layout.labels { "11" } else { "9" };
    svg.open(
        "g",
        &[("class", &"axes"), ("font-size", &small), ("fill", &FADED)],
    );
    let (y, x) = (layout.rank(0) - 25.0, layout.left - 14.0);
    let end: (&'static str, &dyn std::fmt::Display) = ("text-anchor", &"end");
    svg.text(x, y, &[end], &"slot");
    for slot in (0..layout.slots).step_by(spacing(layout.slot, 24.0)) {
        let middle = layout.time(slot) + 0.5 * layout.slot;
        svg.text(middle, y, &[("text-anchor", &"middle")], &slot);
    }
    let every = spacing(layout.row, 12.0);
    for rank in 0..layout.ranks {
        let y = layout.rank(rank);
        if (rank as usize).is_multiple_of(every) {
            svg.text(x, y + 3.7, &[end], &format_args!("rank {rank}"));
        }
        svg.shape(
            "line",
            &[
                ("x1", &N(layout.left - 6.0)),
                ("y1", &N(y)),
                ("x2", &N(layout.end() + 6.0)),
                ("y2", &N(y)),
                ("stroke", &"#afb8c1"),
                ("stroke-width", &N(1.3 * layout.scale)),
            ],
        );
    }
    svg.close();
}

/// Every how many an axis is written on, for labels to be `least` apart.
fn spacing(pitch: f64, least: f64) -> usize {
    let decades = std::iter::successors(Some(1_usize), |d| d.checked_mul(10));
    let mut steps = decades.flat_map(|d| [d, d.saturating_mul(2), d.saturating_mul(5)]);
    steps.find(|&s| s as f64 * pitch >= least).unwrap_or(1)
}

/// The lines of the arrows: each with a halo, so that what passes over another is seen to pass.
fn messages(
    svg: &mut Svg,
    program: &Program,
    layout: &Layout,
    schedule: &Schedule,
    arrows: &[Arrow],
    hues: &[Colour],
) {
    let mut order: Vec<usize> = (0..arrows.len()).collect();
    order.sort_by_key(|&i| {
        let m = &schedule.messages[i];
        (m.sent, std::cmp::Reverse(m.from.abs_diff(m.to)))
    });
    // In a fan, halos would cut up the neighbours.
    let halo = arrows.len() as u64 <= 2 * u64::from(layout.ranks) * layout.slots;
    svg.open("g", &[("fill", &"none")]);
    for i in order {
        let (m, a, hue) = (&schedule.messages[i], arrows[i], hues[i]);
        let short = back(
            a.to,
            a.from,
            if m.taken > m.arrived {
                0.0
            } else {
                reach(m.end, layout.scale)
            },
        );
        let mut path = format!(
            "M{} {}L{} {}",
            N(a.from.x),
            N(a.from.y),
            N(short.x),
            N(short.y)
        );
        if m.taken > m.arrived {
            let x = a.taken.x - reach(m.end, layout.scale);
            path.push_str(&format!("H{}", N(x)));
        }
        let width = layout.scale * thickness(m.what);
        let class = match m.end {
            End::Receive => "message receive",
            End::Reduce => "message reduce",
            End::Sync => "message sync",
        };
        svg.open("g", &[("class", &class)]);
        svg.title(&tooltip(program, m));
        if layout.labels && halo {
            svg.shape(
                "path",
                &[
                    ("d", &path),
                    ("stroke", &PAPER),
                    ("stroke-opacity", &"0.8"),
                    ("stroke-width", &N(width + 3.0)),
                ],
            );
        }
        let line: [super::svg::Attribute<'_>; 3] =
            [("d", &path), ("stroke", &hue), ("stroke-width", &N(width))];
        let dashed: [super::svg::Attribute<'_>; 1] = [("stroke-dasharray", &"5 3.5")];
        let dashes = if m.end == End::Sync { &dashed[..] } else { &[] };
        svg.shape("path", &[&line[..], dashes].concat());
        svg.close();
    }
    svg.close();
}

fn ends(svg: &mut Svg, layout: &Layout, schedule: &Schedule, arrows: &[Arrow], hues: &[Colour]) {
    svg.open("g", &[("class", &"ends")]);
    for ((m, a), hue) in schedule.messages.iter().zip(arrows).zip(hues) {
        let from = if m.taken > m.arrived { a.to } else { a.from };
        match m.end {
            End::Reduce => ring_sum(svg, a.taken, layout.scale, *hue),
            _ => head(svg, a.taken, from, layout.scale, *hue),
        }
        if layout.labels {
            let r = N(2.1 * layout.scale);
            svg.shape(
                "circle",
                &[
                    ("cx", &N(a.from.x)),
                    ("cy", &N(a.from.y)),
                    ("r", &r),
                    ("fill", hue),
                ],
            );
        }
    }
    svg.close();
}

fn marks(svg: &mut Svg, program: &Program, layout: &Layout, schedule: &Schedule) {
    let place = |m: &super::schedule::Mark| (m.rank, m.at);
    let mut total: HashMap<_, usize> = HashMap::new();
    for mark in &schedule.marks {
        *total.entry(place(mark)).or_default() += 1;
    }
    let mut seen: HashMap<_, usize> = HashMap::new();
    svg.open("g", &[("class", &"marks")]);
    for mark in &schedule.marks {
        let n = seen.entry(place(mark)).or_default();
        let at = layout.mark(mark.rank, mark.at, *n, total[&place(mark)]);
        *n += 1;
        let verb = if mark.reduces { "reduces" } else { "copies" };
        let hue = if one_block(program) {
            GREY
        } else {
            colour(mark.what.block, program.blocks)
        };
        svg.open(
            "g",
            &[(
                "class",
                &if mark.reduces {
                    "mark reduce"
                } else {
                    "mark copy"
                },
            )],
        );
        svg.title(&format_args!(
            "rank {} {verb} {}",
            mark.rank,
            blocks(program, mark.what)
        ));
        local(svg, at, mark.reduces, layout.scale, hue);
        svg.close();
    }
    svg.close();
}

fn labels(
    svg: &mut Svg,
    program: &Program,
    layout: &Layout,
    schedule: &Schedule,
    arrows: &[Arrow],
    hues: &[Colour],
) {
    let size = 9.6 * layout.scale;
    let texts: Vec<String> = schedule
        .messages
        .iter()
        .map(|m| label(program, m))
        .collect();
    let width = |t: &String| size * (0.62 * t.chars().count() as f64 + 0.85).max(1.45);
    let widths: Vec<f64> = texts.iter().map(width).collect();
    let places = layout.labels(arrows, &schedule.messages, &widths);
    svg.open(
        "g",
        &[
            ("class", &"labels"),
            ("font-size", &N(size)),
            ("font-weight", &"600"),
            ("text-anchor", &"middle"),
            ("fill", &PAPER),
        ],
    );
    for (i, text) in texts.iter().enumerate().filter(|(_, t)| !t.is_empty()) {
        pill(svg, places[i], widths[i], size, hues[i], text);
    }
    svg.close();
}

/// The blocks of a message in a few letters; nothing for sync.
fn label(program: &Program, m: &Message) -> String {
    let What { block, copy, len } = m.what;
    if m.end == End::Sync || len == 0 {
        return String::new();
    }
    let copy = if program.subs > 1 {
        format!(".{copy}")
    } else {
        String::new()
    };
    match len {
        1 => format!("{block}{copy}"),
        _ => format!(
            "{block}\u{2013}{}{copy}",
            (block + len - 1) % program.blocks
        ),
    }
}

fn blocks(program: &Program, what: What) -> String {
    let copy = if program.subs > 1 {
        format!(" of copy {}", what.copy)
    } else {
        String::new()
    };
    match what.len {
        1 => format!("block {}{copy}", what.block),
        n => format!("{n} blocks from {}{copy}", what.block),
    }
}

fn tooltip(program: &Program, m: &Message) -> String {
    let Message { from, to, sent, .. } = m;
    let what = match m.end {
        End::Sync => "sync".to_owned(),
        _ => blocks(program, m.what),
    };
    let end = if m.end == End::Reduce {
        ", reduced"
    } else {
        ""
    };
    format!("slot {sent}: rank {from} to rank {to}, {what}{end}")
}
