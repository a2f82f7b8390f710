//! [`Job`]: what to start, how often, and what its ranks are told.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use unisono_control::env::{COORDINATOR, JOB, RANK, SIZE, TIMEOUT, launchers};
use unisono_core::Rank;

/// How long ranks may go on after one of them has failed, before they are ended.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// One program, started once per rank.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Number of ranks.
    pub(crate) size: Rank,
    /// Where they meet, as `UNISONO_COORDINATOR` has it.
    pub(crate) coordinator: OsString,
    /// `UNISONO_JOB`.
    pub(crate) name: String,
    /// `UNISONO_TIMEOUT`; `None`: as it is in the environment of this program.
    pub(crate) timeout: Option<String>,
    pub(crate) voice: Voice,
    pub(crate) grace: Duration,
}

/// What becomes of that which ranks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Every line of everybody, with the rank in front; failures as they happen.
    Everybody,
    /// Stdout of rank 0 as it is, of others nothing. Stderr of everybody with the rank in front, except for the last
    /// words: `error: ...`, which are kept back.
    Bench,
}

impl Job {
    /// A program between ranks that meet at `coordinator`.
    pub(crate) fn new(program: OsString, size: Rank, coordinator: OsString) -> Job {
        Job {
            program,
            arguments: Vec::new(),
            size,
            coordinator,
            name: unlikely_name(),
            timeout: None,
            voice: Voice::Everybody,
            grace: GRACE,
        }
    }

    /// The process of a rank. It reads nothing: input could only go to one of many.
    pub(super) fn command(&self, rank: Rank) -> Command {
        let mut command = Command::new(&self.program);
        let stdout = match (self.voice, rank) {
            (Voice::Everybody, _) => Stdio::piped(),
            (Voice::Bench, 0) => Stdio::inherit(),
            (Voice::Bench, _) => Stdio::null(),
        };
        // Whoever started this program has numbered it, not its children.
        for variable in launchers::variables() {
            command.env_remove(variable);
        }
        command
            .args(&self.arguments)
            .env(RANK, rank.to_string())
            .env(SIZE, self.size.to_string())
            .env(COORDINATOR, &self.coordinator)
            .env(JOB, &self.name)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        if let Some(timeout) = &self.timeout {
            command.env(TIMEOUT, timeout);
        }
        command
    }
}

/// A name that no other job has: the number of this process, and what its hash tables are seeded with.
fn unlikely_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{random:016x}", std::process::id())
}
