//! Pictures of a run: ranks down and time across, and how busy each link was.
//!
//! ```text
//! rank 0 ──■■■────────────■■■──      a bar: a copy or reduction
//!            ╲          ╱            a line: a message, from when its link took it until it was there
//! rank 1 ─────■■■─────╱────────
//! ```

use std::fmt::{self, Write};

use crate::error::Micros;
use crate::record::Record;
use crate::report::Report;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 30.0;
/// Records that a picture shows; more would be a black page.
const MOST: usize = 20_000;

impl Report {
    /// Ranks down, time across, as SVG; without records a picture without messages.
    pub fn timeline_svg(&self) -> String {
        let height = 26.0_f64
            .min(6000.0 / self.ranks.len().max(1) as f64)
            .max(3.0);
        let rows = self.ranks.len() as f64 * height;
        let mut out = header(TOP + rows + 10.0);
        let _ = self.draw_timeline(&mut out, height);
        out.push_str("</svg>\n");
        out
    }

    fn draw_timeline(&self, out: &mut String, height: f64) -> fmt::Result {
        let latest = self.records.iter().map(end_of).max().unwrap_or(0);
        let end = self.total_ps.max(latest).max(1);
        let x = |ps: u64| LEFT + (WIDTH - LEFT - 10.0) * (ps as f64 / end as f64);
        let y = |rank: u32| TOP + (f64::from(rank) + 0.5) * height;
        write!(
            out,
            "<text x=\"{LEFT}\" y=\"16\">{} ranks, {}, {} messages",
            self.ranks.len(),
            Micros(self.total_ps),
            self.messages
        )?;
        if self.records.len() > MOST {
            write!(out, " (the first {MOST} of {} shown)", self.records.len())?;
        }
        out.push_str("</text>\n");
        for rank in &self.ranks {
            let (row, until) = (y(rank.rank), rank.finished_ps.or(rank.crashed_ps));
            let colour = if rank.crashed_ps.is_some() {
                "#c00"
            } else {
                "#bbb"
            };
            writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{row:.1}\" x2=\"{:.2}\" y2=\"{row:.1}\" stroke=\"{colour}\"/>",
                x(until.unwrap_or(end))
            )?;
            if height >= 10.0 {
                let (text, rank) = (row + 4.0, rank.rank);
                writeln!(out, "<text x=\"4\" y=\"{text:.1}\">rank {rank}</text>")?;
            }
        }
        for record in self.records.iter().take(MOST) {
            match *record {
                Record::Compute {
                    rank,
                    start_ps,
                    end_ps,
                    ..
                } => {
                    let (left, width) = (x(start_ps), (x(end_ps) - x(start_ps)).max(0.3));
                    let (top, tall) = (y(rank) - height * 0.25, height * 0.5);
                    writeln!(
                        out,
                        "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{tall:.1}\" fill=\"#e69f00\"/>"
                    )?;
                }
                Record::Message {
                    from,
                    to,
                    start_ps,
                    end_ps,
                    arrival_ps,
                    ..
                } => {
                    let colour = if arrival_ps.is_some() {
                        "#0072b2"
                    } else {
                        "#c00\" stroke-dasharray=\"4 3"
                    };
                    let arrival = arrival_ps.unwrap_or(end_ps);
                    writeln!(
                        out,
                        "<line x1=\"{:.2}\" y1=\"{:.1}\" x2=\"{:.2}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
                        x(start_ps),
                        y(from),
                        x(arrival),
                        y(to)
                    )?;
                }
            }
        }
        Ok(())
    }

    /// How busy each directed link was, busiest first, as SVG.
    pub fn links_svg(&self) -> String {
        let mut links: Vec<_> = self.links.iter().filter(|link| link.messages > 0).collect();
        links.sort_by_key(|link| (std::cmp::Reverse(link.busy_ps), link.from, link.to));
        links.truncate(200);
        let mut out = header(TOP + links.len() as f64 * 16.0 + 10.0);
        let total = self.total_ps.max(1) as f64;
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"16\">share of {} that each link was busy</text>",
            Micros(self.total_ps)
        );
        for (row, link) in links.iter().enumerate() {
            let top = TOP + row as f64 * 16.0;
            let share = (link.busy_ps as f64 / total).min(1.0);
            let width = (WIDTH - LEFT - 250.0) * share;
            let right = LEFT + width + 6.0;
            let base = top + 11.0;
            let _ = writeln!(
                out,
                "<text x=\"4\" y=\"{base:.1}\">{} to {}</text><rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.2}\" \
                 height=\"12\" fill=\"#0072b2\"/><text x=\"{right:.1}\" y=\"{base:.1}\">{:.1} %, {} bytes</text>",
                link.from,
                link.to,
                share * 100.0,
                link.bytes
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

fn header(height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    )
}

fn end_of(record: &Record) -> u64 {
    match *record {
        Record::Compute { end_ps, .. } => end_ps,
        Record::Message {
            end_ps, arrival_ps, ..
        } => arrival_ps.unwrap_or(end_ps),
    }
}
