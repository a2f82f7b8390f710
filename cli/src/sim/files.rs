//! Traces and pictures of a run.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use unisono_sim::Report;

use crate::args::sim::Args;

/// The files that were asked for, open before anything runs: a run of an hour is not to end with a path that is wrong.
pub(super) struct Files {
    trace: Option<(PathBuf, File)>,
    svg: Option<(PathBuf, File)>,
}

impl Files {
    /// Creates them.
    ///
    /// # Errors
    /// There is more than one run to write, or they cannot be created.
    pub(super) fn open(args: &Args, runs: usize) -> Result<Files> {
        if runs != 1 && (args.trace.is_some() || args.svg.is_some()) {
            bail!(
                "--trace and --svg are for one run, and this makes {runs}: name one algorithm, operation and size"
            );
        }
        Ok(Files {
            trace: create(args.trace.as_deref())?,
            svg: create(args.svg.as_deref())?,
        })
    }

    /// Writes what was recorded.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&mut self, report: &Report) -> Result<()> {
        if let Some((path, file)) = &mut self.trace {
            write(path, file, &report.chrome_trace())?;
        }
        if let Some((path, file)) = &mut self.svg {
            write(
                path,
                file,
                &stacked(&report.timeline_svg(), &report.links_svg()),
            )?;
        }
        Ok(())
    }
}

fn create(path: Option<&Path>) -> Result<Option<(PathBuf, File)>> {
    let Some(path) = path else { return Ok(None) };
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some((path.to_owned(), file)))
}

fn write(path: &Path, file: &mut File, text: &str) -> Result<()> {
    let written = file.write_all(text.as_bytes());
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Two pictures as one, the second below the first.
fn stacked(above: &str, below: &str) -> String {
    let ((w1, h1), (w2, h2)) = (size(above), size(below));
    let (width, height) = (w1.max(w2), h1 + h2);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\n{}{}</svg>\n",
        placed(above, 0.0, (w1, h1)),
        placed(below, h1, (w2, h2)),
    )
}

fn placed(svg: &str, y: f64, (width, height): (f64, f64)) -> String {
    let place = format!("<svg y=\"{y}\" width=\"{width}\" height=\"{height}\" ");
    svg.replacen("<svg ", &place, 1)
}

/// Width and height of a picture, from its `viewBox`.
fn size(svg: &str) -> (f64, f64) {
    let numbers = svg.split_once("viewBox=\"").and_then(|(_, rest)| {
        let (numbers, _) = rest.split_once('"')?;
        let mut numbers = numbers.split_whitespace().skip(2).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    numbers.unwrap_or((1000.0, 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_picture_stands_below_the_first() {
        let both = stacked(
            "<svg viewBox=\"0 0 1000 50\"><a/></svg>",
            "<svg viewBox=\"0 0 900 30\"></svg>",
        );
        assert!(both.contains("viewBox=\"0 0 1000 80\""), "{both}");
        assert!(both.contains("<svg y=\"0\" width=\"1000\" height=\"50\" viewBox"));
        assert!(both.contains("<svg y=\"50\" width=\"900\" height=\"30\" viewBox"));
    }
}
