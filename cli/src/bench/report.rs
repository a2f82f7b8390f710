//! What `bench` says: a table in the manner of nccl-tests, or an object per row.

use anyhow::Result;
use serde::Serialize;
use unisono_core::{DType, Rank};

use super::case::Case;
use super::measure::Measured;
use crate::args::names::Transport;
use crate::output::Output;

/// One row. The names and their order are part of the interface.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    op: String,
    transport: String,
    algorithm: String,
    ranks: Rank,
    /// Of the larger buffer of a rank.
    bytes: u64,
    /// Elements in `bytes`.
    count: u64,
    dtype: &'static str,
    iters: u32,
    p50_us: f64,
    p99_us: f64,
    mean_us: f64,
    /// GB/s: bytes / mean time.
    algbw: f64,
    /// GB/s: algbw times the share that the busiest link carries.
    busbw: f64,
    /// `null`: not checked.
    wrong: Option<u64>,
}

impl Row {
    /// The row of a case.
    pub(super) fn new(
        case: &Case,
        transport: Transport,
        algorithm: &str,
        measured: &Measured,
    ) -> Row {
        let nanos = &measured.nanos;
        let mean_us = nanos.iter().sum::<u64>() as f64 / nanos.len().max(1) as f64 / 1e3;
        let algbw = match case.bytes() {
            0 => 0.0,
            bytes => bytes as f64 / mean_us.max(1e-3) / 1e3,
        };
        Row {
            op: case.op.to_string(),
            transport: transport.to_string(),
            algorithm: algorithm.to_owned(),
            ranks: case.ranks,
            bytes: case.bytes(),
            count: case.count,
            dtype: DType::name(case.dtype),
            iters: case.iters,
            p50_us: rounded(percentile(nanos, 50) as f64 / 1e3, 1e3),
            p99_us: rounded(percentile(nanos, 99) as f64 / 1e3, 1e3),
            mean_us: rounded(mean_us, 1e3),
            algbw: rounded(algbw, 1e6),
            busbw: rounded(algbw * case.op.bus_factor(case.ranks), 1e6),
            wrong: measured.wrong,
        }
    }

    /// Wrong elements.
    pub(super) fn wrong(&self) -> u64 {
        self.wrong.unwrap_or(0)
    }
}

/// The smallest figure that so many percent do not exceed; `sorted` ascends.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or(0)
}

fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

/// Writes rows, and a line at the end that sums up.
pub(super) struct Report<'a> {
    json: bool,
    out: &'a mut Output,
    rows: u64,
    checked: u64,
    wrong_rows: u64,
    busbw: f64,
}

impl Report<'_> {
    pub(super) fn new(json: bool, out: &mut Output) -> Report<'_> {
        Report {
            json,
            out,
            rows: 0,
            checked: 0,
            wrong_rows: 0,
            busbw: 0.0,
        }
    }

    /// What the columns mean.
    pub(super) fn head(&mut self, what: &str) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.out.line(format_args!(
            "# unisono {}: {what}",
            env!("CARGO_PKG_VERSION")
        ))?;
        self.out.line("# a call takes as long as its slowest rank; GB/s: algbw = bytes / mean, busbw = algbw x share of the busiest link")?;
        self.out.line(format_args!(
            "# {:<14} {:<19} {:>5} {:>11} {:>11} {:>6} {:>6} {:>10} {:>10} {:>10} {:>9} {:>9} {:>7}",
            "op", "algorithm", "ranks", "bytes", "count", "dtype", "iters", "p50 us", "p99 us", "mean us", "algbw", "busbw", "wrong"
        ))?;
        self.out.flush()
    }

    /// One row.
    pub(super) fn row(&mut self, row: &Row) -> Result<()> {
        self.rows += 1;
        self.checked += u64::from(row.wrong.is_some());
        self.wrong_rows += u64::from(row.wrong() > 0);
        self.busbw += row.busbw;
        if self.json {
            return self.out.json(row);
        }
        let wrong = row.wrong.map_or("-".to_owned(), |w| w.to_string());
        self.out.line(format_args!(
            "  {:<14} {:<19} {:>5} {:>11} {:>11} {:>6} {:>6} {:>10} {:>10} {:>10} {:>9} {:>9} {:>7}",
            row.op,
            row.algorithm,
            row.ranks,
            row.bytes,
            row.count,
            row.dtype,
            row.iters,
            digits(row.p50_us),
            digits(row.p99_us),
            digits(row.mean_us),
            digits(row.algbw),
            digits(row.busbw),
            wrong
        ))?;
        self.out.flush()
    }

    /// The last line.
    pub(super) fn summary(&mut self) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let Report {
            rows,
            checked,
            wrong_rows,
            ..
        } = *self;
        let s = if rows == 1 { "" } else { "s" };
        let result = match (checked, wrong_rows) {
            (0, _) => "not checked (--check compares every element)".to_owned(),
            (c, 0) if c == rows => "every element right".to_owned(),
            (_, 0) => format!("every element of {checked} right"),
            (_, w) => format!("WRONG in {w}"),
        };
        let mean = self.busbw / rows.max(1) as f64;
        self.out.line(format_args!(
            "# {rows} row{s}: {result}; average bus bandwidth {} GB/s",
            digits(mean)
        ))
    }
}

/// Four significant digits at most, for people.
fn digits(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 1.0 => format!("{v:.4}"),
        v if v < 10.0 => format!("{v:.3}"),
        v if v < 100.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_figures_that_were_measured() {
        let all: Vec<u64> = (1..=100).collect();
        assert_eq!((percentile(&all, 50), percentile(&all, 99)), (50, 99));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 99)), (7, 7));
        assert_eq!(percentile(&[1, 2, 3, 4], 99), 4);
        assert_eq!(percentile(&[], 50), 0);
    }
}
