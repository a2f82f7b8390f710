//! `unisono draw`: the programs of an algorithm, as text or as a picture.
//!
//! Text is written rank by rank: at 1,024 ranks a program set may be large, and no more than one program of it is
//! needed at a time on each core.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use unisono_core::Rank;
use unisono_program::build::rotate;
use unisono_program::text::LEGEND;
use unisono_program::{Algorithm, Context, Params, Symmetry, build, build_all, draw};

use crate::args::draw::Args;
use crate::catalogue;
use crate::output::Output;
use crate::parallel::in_order;

/// Builds the programs and writes or draws them.
///
/// # Errors
/// The algorithm does not offer this; the root is no rank; the picture would be too large; the file cannot be written.
pub(crate) fn run(args: &Args, out: &mut Output) -> Result<()> {
    let algorithm = catalogue::algorithms().find(&args.algorithm.0)?;
    let (op, ranks, root) = (args.op, args.ranks, args.root);
    if root >= ranks {
        bail!(
            "root {root} is out of range: the world has {ranks} ranks, 0 to {}",
            ranks - 1
        );
    }
    let params = Params::default().with_channels(args.channels);
    let root = if op.is_rooted() { root } else { 0 };
    let cx = Context::full(op, 0, ranks)
        .with_root(root)
        .with_params(params);
    match &args.output {
        None => text(algorithm.as_ref(), &cx, out),
        Some(file) => picture(algorithm.as_ref(), &cx, file, out),
    }
}

fn text(algorithm: &dyn Algorithm, cx: &Context, out: &mut Output) -> Result<()> {
    let first = build(algorithm, cx)?;
    let rotation = algorithm.symmetry(cx) == Symmetry::Rotation;
    let text = |rank: usize| -> Result<String> {
        let rank = rank as Rank;
        let program = match rotation {
            true => rotate(&first, rank),
            false => build(algorithm, &cx.at_rank(rank))?,
        };
        let text = program.to_string();
        let (header, rest) = text.split_once('\n').unwrap_or((&text, ""));
        // All programs of a set share the first line.
        let header = if rank == 0 {
            format!("{header}\n")
        } else {
            String::new()
        };
        Ok(header + &within(LINES, rest))
    };
    out.text(LEGEND)?;
    in_order(cx.size() as usize, text, |_, text| out.text(text?))?;
    out.flush()
}

/// At most so many lines for a rank, whatever the algorithm.
const LINES: usize = 20;

/// The text of one rank in no more than `lines` lines: below its first line, as many rows side by side as it takes.
fn within(lines: usize, text: &str) -> String {
    let mut rows = text.lines();
    let heading = rows.next().unwrap_or_default();
    let rows: Vec<&str> = rows.collect();
    let abreast = rows.len().div_ceil(lines - 1);
    if abreast < 2 {
        return text.to_owned();
    }
    let width = rows.iter().map(|r| r.chars().count()).max().unwrap_or(0);
    let mut packed = format!("{heading}\n");
    for side_by_side in rows.chunks(abreast) {
        let padded: Vec<String> = side_by_side.iter().map(|r| format!("{r:width$}")).collect();
        packed += padded.join("  |").trim_end();
        packed.push('\n');
    }
    packed
}

fn picture(algorithm: &dyn Algorithm, cx: &Context, file: &Path, out: &mut Output) -> Result<()> {
    // A picture has a limit of its own, far below what takes long to build: ask before building all.
    let first = build(algorithm, cx)?;
    if first.steps().saturating_mul(cx.size().into()) > 16 * draw::MAX_MESSAGES {
        bail!(
            "{} {} on {} ranks has too many messages for a picture (at most {}); leave out -o to write the text form",
            algorithm.name(),
            cx.collective(),
            cx.size(),
            draw::MAX_MESSAGES
        );
    }
    let picture = draw::svg(&build_all(algorithm, cx)?)?;
    if file == Path::new("-") {
        out.text(picture)?;
        return out.flush();
    }
    std::fs::write(file, picture).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_programs_are_set_in_columns() {
        let short = "rank 0\n  a\n  b\n";
        assert_eq!(within(3, short), short);
        assert_eq!(
            within(3, "rank 0\n  a\n  bcd\n  e\n"),
            "rank 0\n  a    |  bcd\n  e\n"
        );
    }
}
