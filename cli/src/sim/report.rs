//! What `sim` says: a table, or an object per row.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use unisono_core::{DType, Rank};
use unisono_sim::LinkLoad;

use super::failure::Failure;
use super::plan::Plan;
use super::study::{Engine, Study};
use crate::args::sim::{Args, Payload};
use crate::output::Output;

/// The payload of a row that was not executed.
const PRICED: &str = "none";

/// What an engine found out.
pub(super) struct Found {
    /// Until the last rank is done, in picoseconds.
    pub(super) total_ps: u64,
    pub(super) trace_hash: u64,
    pub(super) bottleneck: Option<LinkLoad>,
    pub(super) links: Vec<LinkLoad>,
    pub(super) messages: u64,
    pub(super) lost: u64,
    pub(super) failure: Option<Failure>,
    /// With records, if they were asked for.
    pub(super) recorded: Option<Box<unisono_sim::Report>>,
}

/// One row. The names and their order are part of the interface.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    op: String,
    algorithm: String,
    ranks: Rank,
    /// Of the larger buffer of a rank.
    bytes: u64,
    /// Until the last rank is done.
    virtual_us: f64,
    /// GB/s: bytes / virtual time. `null` if that is nothing, or the operation failed.
    algbw: Option<f64>,
    /// GB/s: algbw times the share that the busiest link carries.
    busbw: Option<f64>,
    /// The link that was busy longest, `0>1`. `null` if nothing was sent.
    bottleneck: Option<String>,
    /// Every direction that carried something.
    links: Vec<Link>,
    /// Sends, receives, reductions and copies of all ranks, in segments.
    steps: u64,
    /// 16 hexadecimal digits.
    trace_hash: String,
    /// Real time.
    wall_ms: f64,
    engine: String,
    payload: &'static str,
    dtype: &'static str,
    segments: u64,
    messages: u64,
    /// Messages that faults took off the wire.
    lost: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Link {
    from: Rank,
    to: Rank,
    bytes: u64,
    messages: u64,
    busy_us: f64,
}

impl Row {
    pub(super) fn new(
        args: &Args,
        study: &Study,
        plan: &Plan,
        found: &Found,
        wall: Duration,
    ) -> Row {
        let case = &study.case;
        let passes = found.failure.is_none() && found.total_ps > 0;
        // Bytes in a picosecond are TB/s.
        let algbw = passes.then(|| case.bytes() as f64 * 1e3 / found.total_ps as f64);
        let busbw = algbw.map(|b| b * case.op.bus_factor(case.ranks));
        let links = found.links.iter().map(|l| Link {
            from: l.from,
            to: l.to,
            bytes: l.bytes,
            messages: l.messages,
            busy_us: us(l.busy_ps),
        });
        Row {
            op: case.op.to_string(),
            algorithm: study.algorithm().to_owned(),
            ranks: case.ranks,
            bytes: case.bytes(),
            virtual_us: us(found.total_ps),
            algbw: algbw.map(rounded),
            busbw: busbw.map(rounded),
            bottleneck: found.bottleneck.map(|l| format!("{}>{}", l.from, l.to)),
            links: links.collect(),
            steps: plan.steps,
            trace_hash: format!("{:016x}", found.trace_hash),
            wall_ms: (wall.as_secs_f64() * 1e6).round() / 1e3,
            engine: study.engine.to_string(),
            payload: match (study.engine, args.payload) {
                (Engine::Evaluator, _) => PRICED,
                (_, Payload::Phantom) => "phantom",
                (_, Payload::Real) => "real",
            },
            dtype: DType::name(case.dtype),
            segments: study.chosen.segments,
            messages: found.messages,
            lost: found.lost,
            error: found.failure.as_ref().map(|f| f.cause.clone()),
        }
    }
}

/// Picoseconds as microseconds.
fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Six digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Writes rows, and a line at the end that sums up.
pub(super) struct Report<'a> {
    json: bool,
    out: &'a mut Output,
    rows: usize,
    executed: usize,
}

impl Report<'_> {
    pub(super) fn new(json: bool, out: &mut Output) -> Report<'_> {
        Report {
            json,
            out,
            rows: 0,
            executed: 0,
        }
    }

    /// Where it runs, and what the columns mean.
    pub(super) fn head(&mut self, place: &str, args: &Args) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.out.line(format_args!(
            "# unisono {} sim: {place}",
            env!("CARGO_PKG_VERSION")
        ))?;
        let faults = args.fault.iter().map(|fault| format!(", {fault}"));
        self.out.line(format_args!(
            "# seed {}, jitter {}{}; GB/s: algbw = bytes / time, busbw = algbw x share of the busiest link",
            args.seed,
            args.jitter,
            faults.collect::<String>()
        ))?;
        self.out.line(format_args!(
            "# {:<14} {:<19} {:>5} {:>11} {:>9} {:>5} {:>14} {:>9} {:>9} {:>10} {:>11} {:>16} {:>10}",
            "op", "algorithm", "ranks", "bytes", "engine", "segm", "virtual us", "algbw", "busbw", "bottleneck",
            "steps", "trace hash", "wall ms"
        ))?;
        self.out.flush()
    }

    /// One row.
    pub(super) fn row(&mut self, row: &Row) -> Result<()> {
        self.rows += 1;
        self.executed += usize::from(row.payload != PRICED);
        if self.json {
            return self.out.json(row);
        }
        let rate = |value: Option<f64>| match (&row.error, value) {
            (Some(_), _) => "failed".to_owned(),
            (None, Some(value)) => format!("{value:.3}"),
            (None, None) => "-".to_owned(),
        };
        self.out.line(format_args!(
            "  {:<14} {:<19} {:>5} {:>11} {:>9} {:>5} {:>14.3} {:>9} {:>9} {:>10} {:>11} {:>16} {:>10.1}",
            row.op,
            row.algorithm,
            row.ranks,
            row.bytes,
            row.engine,
            row.segments,
            row.virtual_us,
            rate(row.algbw),
            rate(row.busbw),
            row.bottleneck.as_deref().unwrap_or("-"),
            row.steps,
            row.trace_hash,
            row.wall_ms
        ))?;
        self.out.flush()
    }

    /// The last line.
    pub(super) fn summary(&mut self, failed: usize) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let s = if self.rows == 1 { "" } else { "s" };
        let end = match (failed, self.executed) {
            (0, 0) => "priced, not executed".to_owned(),
            (0, _) => "every result right".to_owned(),
            (n, _) => format!("{n} failed"),
        };
        self.out.line(format_args!("# {} run{s}: {end}", self.rows))
    }
}
