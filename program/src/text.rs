//! The short text form of programs: what a person reads, and what snapshot tests hold.
//!
//! One row is one run of equal steps, so a regular program is as short at 1,024 ranks as at 4. Numbers that advance are
//! written as the loop of the paper would write them: `k` counts the steps of a run.
//!
//! ```text
//! ring all_reduce: 4 ranks, 4 blocks
//! rank 0
//!   lane 0 to 1    #0     send input[0]
//!                  #1 x5  send work[3-k]          after 1#k
//!   lane 1 from 3  #0 x3  recv_reduce input[3-k]
//!                  #3 x3  recv work[-k]           after 0#k
//! ```
//!
//! `{}` on a [`Program`] writes this, `{:#}` puts the [`LEGEND`] above it, and [`set`] writes the programs of all ranks
//! below one legend. The form says all that a program says: [`parse`] reads it back.

mod fold;
mod parse;

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::sync::Arc;

use crate::{Kind, LaneKind, Location, Operand, Program, Run, Span, Wait};
use fold::{Affine, Token, fold};

pub use parse::{ParseError, parse};

/// How to read the text form.
pub const LEGEND: &str = "\
# lane L to P     messages to rank P, in order; `from P`: messages from it; `local`: reductions and copies
# #A xN           N equal steps of the lane, the first is its step A; k = 0, 1, ... counts them
# send, recv      of these blocks: [b], or [b; n] for n blocks from b, modulo the number of blocks
# recv_reduce     work = (what is named) (+) incoming;  reduce: work = sources in this order, finish: divided by ranks
# input, work     where a block is read: still in the input, or in its work home; mixed: so many blocks of each in turn
# scratch[s]      a private block;  [b].c  block b of copy c (channels and parts)
# after L#A       waits until lane L has done its step A (the same segment of it, or A* all segments); A < 0: no wait
# @(h, o)         in a schedule of waves, at slot h*S + o for S segments
# lane .. xN      N lanes alike, j = 0, 1, ... counts them;  item xN in a list: N items, i = 0, 1, ... counts them
";

/// Writes the programs of a set (or some of them): the legend, and what they share, once.
pub fn set(programs: &[Arc<Program>], out: &mut impl Write) -> fmt::Result {
    out.write_str(LEGEND)?;
    let mut last = String::new();
    for program in programs {
        let header = header(program);
        if header != last {
            writeln!(out, "{header}")?;
            last = header;
        }
        rank(program, out)?;
    }
    Ok(())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            f.write_str(LEGEND)?;
        }
        writeln!(f, "{}", header(self))?;
        rank(self, f)
    }
}

/// What the programs of all ranks share.
fn header(p: &Program) -> String {
    let mut text = format!(
        "{} {}: {}, {}",
        p.algorithm,
        p.collective,
        counted(p.size.into(), "rank"),
        counted(p.blocks, "block"),
    );
    let mut add = |given: bool, what: String| {
        if given {
            text.push_str(", ");
            text.push_str(&what);
        }
    };
    let rooted = p.collective.is_rooted() || p.collective.is_point_to_point();
    add(p.subs > 1, format!("{} copies", p.subs));
    add(
        p.params.channels > 1,
        format!("{} channels", p.params.channels),
    );
    add(rooted, format!("root {}", p.root));
    add(!p.commutative, "operands in rank order".to_owned());
    add(p.average, "average".to_owned());
    text
}

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The part of one rank: its name and private blocks, then its lanes in columns.
fn rank(p: &Program, out: &mut impl Write) -> fmt::Result {
    write!(out, "rank {}", p.rank)?;
    let spans = |title: &str, spans: Vec<Span>, out: &mut dyn Write| {
        if spans.is_empty() {
            return Ok(());
        }
        let items: Vec<_> = spans.iter().map(|&s| span(p, s, 0)).collect();
        let mut tokens = Vec::new();
        list(&items, ", ", &mut tokens);
        write!(out, "  {title} {}", fold::plain(&tokens))
    };
    let likes = p.slots.iter().map(|s| Span {
        first: s.like,
        len: 1,
    });
    spans("scratch like", likes.collect(), out)?;
    spans("without output home", p.homeless.clone(), out)?;
    writeln!(out)?;

    let lanes: Vec<Vec<Token>> = (0..p.lanes.len()).map(|i| lane(p, i)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in fold(&lanes, J, MAX_PERIOD) {
        let mut tokens = group.tokens;
        if group.count > 1 {
            tokens.insert(2, Token::Text(format!(" x{}", group.count).into()));
        }
        fold::rows(&tokens, &mut rows);
    }
    columns(&rows, out)
}

/// The variables of [`Affine`]: step of a run, lane of a group, item of a list.
const K: usize = 0;
const J: usize = 1;
const I: usize = 2;

/// Lanes repeat in groups of up to so many: send, receive and something else per peer.
const MAX_PERIOD: usize = 4;

/// One lane as rows of cells: lane, steps, what, after.
fn lane(p: &Program, index: usize) -> Vec<Token> {
    let lane = &p.lanes[index];
    let mut t: Vec<Token> = vec![text("lane "), Affine::number(index as i64, 0).into()];
    let channel = match lane.kind {
        LaneKind::Send { peer, channel } => {
            t.extend([
                text(" to "),
                Affine::number(peer.into(), p.size.into()).into(),
            ]);
            channel
        }
        LaneKind::Recv { peer, channel } => {
            t.extend([
                text(" from "),
                Affine::number(peer.into(), p.size.into()).into(),
            ]);
            channel
        }
        LaneKind::Local { channel } => {
            t.push(text(" local"));
            channel
        }
    };
    if channel != 0 {
        t.push(Token::Text(format!(" ch {channel}").into()));
    }
    for (i, run) in lane.runs.iter().enumerate() {
        if i > 0 {
            t.push(Token::Row);
        }
        t.push(Token::Cell);
        let many = if run.count > 1 {
            format!(" x{}", run.count)
        } else {
            String::new()
        };
        t.push(Token::Text(format!("#{}{many}", run.start).into()));
        t.push(Token::Cell);
        what(p, run, &mut t);
        if !run.waits.is_empty() {
            t.extend([Token::Cell, text("after ")]);
            let items: Vec<_> = run.waits.iter().map(wait).collect();
            list(&items, ", ", &mut t);
        }
        if let Some((first, stride)) = run.stage {
            let affine = |first, stride| Token::from(Affine::number(first, 0).with(K, stride));
            t.extend([
                if run.waits.is_empty() {
                    Token::Cell
                } else {
                    text(" ")
                },
                text("@("),
                affine(first.hops, stride.hops),
                text(", "),
                affine(first.offset, stride.offset),
                text(")"),
            ]);
        }
    }
    t.push(Token::Row);
    t
}

/// What the steps of a run do.
fn what(p: &Program, run: &Run, t: &mut Vec<Token>) {
    let (name, finish) = match run.kind {
        Kind::Send => ("send ", false),
        Kind::Recv => ("recv ", false),
        Kind::RecvReduce => ("recv_reduce ", false),
        Kind::SyncTo => return t.push(text("sync_to")),
        Kind::SyncFrom => return t.push(text("sync_from")),
        Kind::Reduce { finish } => ("reduce ", finish),
        Kind::Copy => ("copy ", false),
    };
    t.push(text(name));
    t.extend(operand(p, &run.target));
    if !run.sources.is_empty() {
        t.push(text(" = "));
        let items: Vec<_> = run.sources.iter().map(|s| operand(p, s)).collect();
        list(&items, " + ", t);
    }
    if finish {
        t.push(text(", finish"));
    }
}

/// Where it is, and the span.
fn operand(p: &Program, o: &Operand) -> Vec<Token> {
    let place: Cow<'static, str> = match &o.location {
        _ if !p.is_data(o.span.first) => "scratch".into(),
        Location::Input => "input".into(),
        Location::Work => "work".into(),
        Location::Mixed(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|(n, work)| format!("{n} {}", if *work { "work" } else { "input" }))
                .collect();
            format!("mixed({})", parts.join(", ")).into()
        }
    };
    let mut t = vec![Token::Text(place)];
    t.extend(span(p, o.span, o.stride));
    t
}

/// `[first; len].copy`
fn span(p: &Program, s: Span, stride: i64) -> Vec<Token> {
    let data = p.is_data(s.first) && p.blocks > 0;
    let (copy, first, modulus) = if data {
        (s.first / p.blocks, s.first % p.blocks, p.blocks)
    } else {
        (0, s.first - p.data_indices().min(s.first), 0)
    };
    let mut t = vec![
        text("["),
        Affine::number(first as i64, modulus).with(K, stride).into(),
    ];
    t.push(if s.len == 1 {
        text("]")
    } else {
        Token::Text(format!("; {}]", s.len).into())
    });
    if data && p.subs > 1 {
        t.push(Token::Text(format!(".{copy}").into()));
    }
    t
}

/// `lane#step`
fn wait(w: &Wait) -> Vec<Token> {
    let mut t = vec![
        Affine::number(w.lane.into(), 0).into(),
        text("#"),
        Affine::number(w.step, 0).with(K, w.stride).into(),
    ];
    if w.whole {
        t.push(text("*"));
    }
    t
}

/// The items with `between` between them; five and more that advance evenly become one.
fn list(items: &[Vec<Token>], between: &'static str, out: &mut Vec<Token>) {
    for (n, group) in fold(items, I, 1).into_iter().enumerate() {
        if n > 0 {
            out.push(text(between));
        }
        out.extend(group.tokens);
        if group.count > 1 {
            out.push(Token::Text(format!(" x{}", group.count).into()));
        }
    }
}

fn text(s: &'static str) -> Token {
    Token::Text(s.into())
}

/// Writes rows in columns as wide as their widest cell, up to a limit.
fn columns(rows: &[Vec<String>], out: &mut impl Write) -> fmt::Result {
    const WIDEST: usize = 48;
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (i, cell) in row.iter().enumerate() {
            if i == widths.len() {
                widths.push(0);
            }
            widths[i] = widths[i].max(cell.len().min(WIDEST));
        }
    }
    for row in rows {
        for (i, cell) in row.iter().enumerate() {
            if i + 1 == row.len() {
                writeln!(out, "  {cell}")?;
            } else {
                write!(out, "  {cell:width$}", width = widths[i])?;
            }
        }
    }
    Ok(())
}
