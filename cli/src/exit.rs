//! How the program ends: always with one line that says why, never with a panic or a signal.
//!
//! ```text
//! Ok                       0
//! Err(Stopped)             its own status, after printing what it brings
//! Err(Closed) on stdout    0: the reader has had enough (`unisono draw ... | head`)
//! any other Err            1, `error: <the chain on one line>`
//! a panic                  1, `error: internal: <message>`
//! ```

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;

use crate::output::Closed;

/// An end with a status of its own.
#[derive(Debug, Clone)]
pub(crate) struct Stopped {
    /// The exit status: 1 refused or failed, 2 usage.
    status: u8,
    /// Printed before the cause: usage, hints. May be empty.
    before: String,
    /// The cause.
    cause: String,
}

impl Stopped {
    /// A mistake in how the program was called.
    pub(crate) fn usage(cause: impl Into<String>, before: impl Into<String>) -> Stopped {
        Stopped {
            status: 2,
            before: before.into(),
            cause: cause.into(),
        }
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Stopped {}

/// Runs `verb` and turns whatever happens into an exit status and a last line on stderr.
pub(crate) fn guarded(verb: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    static PANIC: Mutex<Option<String>> = Mutex::new(None);
    panic::set_hook(Box::new(|info| {
        let message = payload(info.payload());
        let place = info
            .location()
            .map_or(String::new(), |l| format!(" at {l}"));
        let mut first = PANIC.lock().unwrap_or_else(|e| e.into_inner());
        first.get_or_insert(format!("{message}{place}"));
    }));
    match panic::catch_unwind(AssertUnwindSafe(verb)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => end(&error),
        Err(_) => {
            let message = PANIC.lock().unwrap_or_else(|e| e.into_inner()).take();
            say(&format!(
                "error: internal: {}; please report this",
                one_line(&message.unwrap_or_default())
            ));
            ExitCode::from(1)
        }
    }
}

/// The words of a panic.
pub(crate) fn payload(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic".to_owned())
}

fn end(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<Closed>().is_some() {
        return ExitCode::SUCCESS;
    }
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        if !stopped.before.is_empty() {
            say(stopped.before.trim_end());
        }
        say(&format!("error: {}", one_line(&stopped.cause)));
        return ExitCode::from(stopped.status);
    }
    say(&format!("error: {}", one_line(&format!("{error:#}"))));
    ExitCode::from(1)
}

/// Joins lines, so that the last line on stderr is the whole cause.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line on stderr. Nobody can be told if that fails.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
