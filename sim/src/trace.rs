//! A report as JSON, and what happened when as a trace for `chrome://tracing` and <https://ui.perfetto.dev>.
//!
//! The trace has one track per rank (its copies and reductions) and one per directed link (its messages). Times are
//! microseconds of virtual time.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use unisono_evaluator::LinkLoad;

use crate::record::Record;
use crate::report::Report;

impl Report {
    /// The report as one JSON object on one line. `trace_hash` is a string of 16 hexadecimal digits, `error` null or text.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) -> fmt::Result {
        write!(out, "{{\"virtual_us\":{},\"ranks\":[", Us(self.total_ps))?;
        for (i, rank) in self.ranks.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let (done, crashed) = (Maybe(rank.finished_ps), Maybe(rank.crashed_ps));
            write!(
                out,
                "{comma}{{\"rank\":{},\"finished_us\":{done},\"crashed_us\":{crashed}}}",
                rank.rank
            )?;
        }
        out.push_str("],\"links\":[");
        for (i, link) in self.links.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_link(out, link)?;
        }
        out.push_str("],\"bottleneck\":");
        match &self.bottleneck {
            Some(link) => write_link(out, link)?,
            None => out.push_str("null"),
        }
        write!(
            out,
            ",\"messages\":{},\"lost\":{},\"events\":{},\"trace_hash\":\"{:016x}\",\"error\":",
            self.messages, self.lost, self.events, self.trace_hash
        )?;
        match &self.error {
            Some(error) => write!(out, "\"{}\"}}", Escaped(&error.to_string())),
            None => out.write_str("null}"),
        }
    }

    /// What happened when, in the Trace Event Format; empty unless [`Cluster::record`](crate::Cluster::record) was asked.
    pub fn chrome_trace(&self) -> String {
        let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let _ = self.write_trace(&mut out);
        out.push_str("\n]}\n");
        out
    }

    fn write_trace(&self, out: &mut String) -> fmt::Result {
        out.push_str(
            "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"ranks\"}},\n\
             {\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"links\"}}",
        );
        for rank in &self.ranks {
            let rank = rank.rank;
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{rank},\"name\":\"thread_name\",\"args\":{{\"name\":\"rank {rank}\"}}}}"
            )?;
        }
        let tracks: BTreeSet<_> = self.links.iter().map(|link| (link.from, link.to)).collect();
        let tracks: Vec<_> = tracks.into_iter().collect();
        for (track, (from, to)) in tracks.iter().enumerate() {
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":\"{from} to {to}\"}}}}"
            )?;
        }
        for record in &self.records {
            match *record {
                Record::Compute {
                    rank,
                    start_ps,
                    end_ps,
                    bytes,
                } => write!(
                    out,
                    ",\n{{\"ph\":\"X\",\"pid\":0,\"tid\":{rank},\"name\":\"compute\",\"ts\":{},\"dur\":{},\"args\":{{\"bytes\":{bytes}}}}}",
                    Us(start_ps),
                    Us(end_ps - start_ps)
                )?,
                Record::Message {
                    from,
                    to,
                    channel,
                    start_ps,
                    end_ps,
                    arrival_ps,
                    bytes,
                    operation,
                    message,
                } => {
                    let Ok(track) = tracks.binary_search(&(from, to)) else {
                        continue;
                    };
                    let arrival = Maybe(arrival_ps);
                    write!(
                        out,
                        ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{track},\"name\":\"op {operation} message {message}\",\"ts\":{},\"dur\":{},\
                         \"args\":{{\"bytes\":{bytes},\"channel\":{channel},\"arrival_us\":{arrival}}}}}",
                        Us(start_ps),
                        Us(end_ps - start_ps)
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn write_link(out: &mut String, link: &LinkLoad) -> fmt::Result {
    write!(
        out,
        "{{\"from\":{},\"to\":{},\"bytes\":{},\"messages\":{},\"busy_us\":{}}}",
        link.from,
        link.to,
        link.bytes,
        link.messages,
        Us(link.busy_ps)
    )
}

/// Picoseconds as a decimal number of microseconds, exactly.
struct Us(u64);

impl fmt::Display for Us {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

struct Maybe(Option<u64>);

impl fmt::Display for Maybe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ps) => Us(ps).fmt(f),
            None => f.write_str("null"),
        }
    }
}

/// Text inside a JSON string.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
