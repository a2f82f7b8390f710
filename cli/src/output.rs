//! Standard output, and nothing else: buffered lines, JSON objects, and a reader that may leave.
//!
//! `println!` panics when the reader of a pipe has gone; here that is [`Closed`], an error that ends the verb quietly.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};

use anyhow::{Context, Result};
use serde::Serialize;

/// The reader of stdout has gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closed;

impl Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads stdout any more")
    }
}

impl std::error::Error for Closed {}

/// Standard output.
pub(crate) struct Output {
    to: BufWriter<Stdout>,
}

impl Output {
    /// The real one.
    pub(crate) fn stdout() -> Output {
        Output {
            to: BufWriter::with_capacity(1 << 16, io::stdout()),
        }
    }

    /// Text as it is, without a line end of its own.
    ///
    /// # Errors
    /// [`Closed`], or what kept the text from being written.
    pub(crate) fn text(&mut self, text: impl Display) -> Result<()> {
        said(write!(self.to, "{text}"))
    }

    /// One line.
    ///
    /// # Errors
    /// As [`text`](Output::text).
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        said(writeln!(self.to, "{line}"))
    }

    /// One object on one line, at once: whoever reads a stream of objects wants to see each when it is there.
    ///
    /// # Errors
    /// As [`text`](Output::text).
    pub(crate) fn json(&mut self, object: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(object).context("cannot write this as JSON")?;
        self.line(line)?;
        self.flush()
    }

    /// Passes on what is buffered.
    ///
    /// # Errors
    /// As [`text`](Output::text).
    pub(crate) fn flush(&mut self) -> Result<()> {
        said(self.to.flush())
    }
}

fn said(result: io::Result<()>) -> Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        other => other.context("cannot write to stdout"),
    }
}
