//! A bar on stderr while something takes long; nothing at all where stderr is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far a verb has come.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `length` things to do.
    pub(crate) fn new(length: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Shows that time passes, also while a single thing takes long.
    pub(crate) fn keep_moving(&self) {
        if self.bar.is_hidden() {
            return;
        }
        if let Ok(style) =
            ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} {elapsed} {msg}")
        {
            self.bar.set_style(style);
        }
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// What comes now.
    pub(crate) fn at(&self, what: impl Into<String>) {
        if !self.bar.is_hidden() {
            self.bar.set_message(what.into());
            self.bar.tick();
        }
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Writes something else without disturbing the bar.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        if self.bar.is_hidden() {
            write()
        } else {
            self.bar.suspend(write)
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
