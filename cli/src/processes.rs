//! Ranks as processes of this machine: start them, pass on what they say and what is said to them, see how they end.
//!
//! ```text
//!            signals --+
//! rank 0 .. n-1: ends -+--> one loop: forward, count, lose patience --> failures, the first one first
//!            no reader +
//! ```
//!
//! Each process leads a process group of its own, which this program signals by the id of that process: a shell and
//! what it runs end together, and an interrupt typed at a terminal arrives once, through here. No process is reaped
//! before this loop is done with its id, so that a signal cannot meet a stranger.

mod job;
mod relay;
mod rendezvous;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use unisono_core::Rank;

pub(crate) use job::{Job, Voice};
use relay::Relays;
pub(crate) use rendezvous::Rendezvous;

/// Signals that end a job. What they do is up to the ranks, for as long as there is patience.
const ENDING: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Signals that are passed on and mean nothing here.
const PASSED: [i32; 2] = [SIGUSR1, SIGUSR2];

/// From a SIGTERM to the SIGKILL for those that it did not end.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// How much earlier than the end of a process its peers may learn of it: its connections close before it is gone.
const TEARDOWN: Duration = Duration::from_millis(500);

/// Something for the loop to look at.
#[derive(Debug)]
enum Event {
    /// This rank has ended and waits to be reaped.
    Ended(Rank),
    /// This program was sent a signal.
    Signal(i32),
    /// What a rank said cannot be passed on.
    Unheard(anyhow::Error),
}

/// How a rank failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) rank: Rank,
    pub(crate) status: ExitStatus,
    /// The last thing it said on stderr, if that was kept back: see [`Voice::Bench`].
    pub(crate) last_words: Option<String>,
    /// When its end was seen.
    at: Instant,
    /// It had been sent a signal from here.
    asked: bool,
}

/// The order in which ranks failed, except that one killed by somebody else comes first where peers, which may have
/// learnt of that before we did, failed just before.
fn cause_first(mut failures: Vec<Failure>) -> Vec<Failure> {
    let Some(first) = failures.first().map(|f| f.at) else {
        return failures;
    };
    let cause = failures.iter().position(|f| {
        // Programs abort to report a failure that may be the consequence of another.
        let killed = f.status.signal().is_some_and(|s| s != SIGABRT);
        killed && !f.asked && f.at.saturating_duration_since(first) <= TEARDOWN
    });
    failures[..=cause.unwrap_or(0)].rotate_right(1);
    failures
}

/// `rank 2 exited with status 1`, `rank 2 was killed by signal 9`.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Failure { rank, status, .. } = self;
        match (status.code(), status.signal()) {
            (Some(code), _) => write!(f, "rank {rank} exited with status {code}"),
            (None, Some(signal)) => write!(f, "rank {rank} was killed by signal {signal}"),
            (None, None) => write!(f, "rank {rank} ended with {status}"),
        }
    }
}

/// Starts jobs, one after the other, and holds the signals meant for them.
pub(crate) struct Launcher {
    events: Receiver<Event>,
    sender: Sender<Event>,
}

impl Launcher {
    /// From here on, signals go to the ranks of the job that runs or that comes next.
    ///
    /// # Errors
    /// Signals cannot be caught.
    pub(crate) fn new() -> Result<Launcher> {
        let (sender, events) = mpsc::channel();
        let mut signals =
            Signals::new(ENDING.iter().chain(&PASSED)).context("cannot catch signals")?;
        let to = sender.clone();
        let forward = move || {
            for signal in signals.forever() {
                // Without a launcher there is nothing to pass a signal on to.
                let _ = to.send(Event::Signal(signal));
            }
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        thread.spawn(forward).context("no thread for signals")?;
        Ok(Launcher { events, sender })
    }

    /// Runs a job until all of its ranks have ended. The failures come in the order in which they happened.
    ///
    /// # Errors
    /// A rank cannot be started, or what ranks say cannot be passed on; those that ran have been ended then.
    pub(crate) fn run(&self, job: &Job) -> Result<Vec<Failure>> {
        let mut ranks = Ranks {
            job,
            running: Vec::new(),
            relays: Relays::new(job.voice, self.sender.clone()),
            failures: Vec::new(),
            patience: Patience::Endless,
            asked: false,
            unheard: None,
        };
        let started = ranks.start(&self.sender);
        if started.is_err() {
            ranks.lose_patience(Duration::ZERO);
        }
        ranks.attend(&self.events)?;
        let words = ranks.relays.finish();
        let mut failures = cause_first(std::mem::take(&mut ranks.failures));
        for failure in &mut failures {
            let words = words.iter().find(|w| w.rank == failure.rank);
            failure.last_words = words.map(|w| w.text.clone());
        }
        match (started, ranks.unheard.take()) {
            (Err(error), _) | (Ok(()), Some(error)) => Err(error),
            (Ok(()), None) => Ok(failures),
        }
    }
}

/// What is done about ranks that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Nothing has gone wrong.
    Endless,
    /// SIGTERM at this time.
    Grace(Instant),
    /// SIGKILL at this time.
    LastChance(Instant),
    /// Nothing more can be done.
    Over,
}

/// The ranks of a job while they run.
struct Ranks<'a> {
    job: &'a Job,
    running: Vec<(Rank, Child)>,
    relays: Relays,
    failures: Vec<Failure>,
    patience: Patience,
    /// Ranks have been sent a signal.
    asked: bool,
    unheard: Option<anyhow::Error>,
}

impl Ranks<'_> {
    fn start(&mut self, events: &Sender<Event>) -> Result<()> {
        for rank in 0..self.job.size {
            let mut command = self.job.command(rank);
            let child = command.process_group(0).spawn();
            let mut child = child.with_context(|| {
                let program = self.job.program.to_string_lossy();
                format!("rank {rank}: cannot start {program}")
            })?;
            let relayed = self.relays.listen(rank, &mut child);
            let pid = Pid::from_child(&child);
            self.running.push((rank, child));
            relayed?;
            let events = events.clone();
            // Sees the end and leaves the process for the loop to reap.
            let watch = move || {
                let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), ended) {}
                let _ = events.send(Event::Ended(rank));
            };
            let thread = thread::Builder::new().name(format!("rank {rank}"));
            if let Err(error) = thread.spawn(watch) {
                self.abandon(rank);
                return Err(error).with_context(|| format!("rank {rank}: no thread"));
            }
        }
        Ok(())
    }

    /// Ends a rank whose end nobody would see.
    fn abandon(&mut self, rank: Rank) {
        self.signal(Signal::KILL);
        self.running.retain_mut(|(r, child)| {
            if *r == rank {
                // The kill is on its way: this wait is short.
                let _ = child.wait();
            }
            *r != rank
        });
    }

    /// Until all have ended.
    fn attend(&mut self, events: &Receiver<Event>) -> Result<()> {
        while !self.running.is_empty() {
            let event = match self.patience {
                Patience::Grace(until) | Patience::LastChance(until) => {
                    events.recv_timeout(until.saturating_duration_since(Instant::now()))
                }
                Patience::Endless | Patience::Over => {
                    events.recv().map_err(|_| RecvTimeoutError::Disconnected)
                }
            };
            match event {
                Ok(Event::Ended(rank)) => self.ended(rank)?,
                Ok(Event::Signal(number)) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.signal(signal);
                    }
                    if ENDING.contains(&number) {
                        self.lose_patience(self.job.grace);
                    }
                }
                Ok(Event::Unheard(error)) => {
                    self.unheard.get_or_insert(error);
                    self.lose_patience(Duration::ZERO);
                }
                Err(RecvTimeoutError::Timeout) => self.escalate(),
                // This launcher holds a sender, so that there is always one.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn ended(&mut self, rank: Rank) -> Result<()> {
        let Some(at) = self.running.iter().position(|(r, _)| *r == rank) else {
            return Ok(());
        };
        let (_, mut child) = self.running.swap_remove(at);
        let status = child.wait();
        let status = status.with_context(|| format!("rank {rank}: cannot see how it ended"))?;
        if !status.success() {
            let failure = Failure {
                rank,
                status,
                last_words: None,
                at: Instant::now(),
                asked: self.asked,
            };
            self.relays.note(&failure);
            self.failures.push(failure);
            self.lose_patience(self.job.grace);
        }
        Ok(())
    }

    /// From now on, the ranks that are left have so much time. The first reason counts, unless a later one leaves less.
    fn lose_patience(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match self.patience {
            Patience::Endless => self.patience = Patience::Grace(until),
            Patience::Grace(earlier) => self.patience = Patience::Grace(until.min(earlier)),
            Patience::LastChance(_) | Patience::Over => {}
        }
    }

    fn escalate(&mut self) {
        let (signal, next) = match self.patience {
            Patience::Grace(_) => {
                let until = Instant::now() + LAST_CHANCE;
                (Signal::TERM, Patience::LastChance(until))
            }
            Patience::LastChance(_) => (Signal::KILL, Patience::Over),
            Patience::Endless | Patience::Over => return,
        };
        self.signal(signal);
        self.patience = next;
    }

    fn signal(&mut self, signal: Signal) {
        self.asked = true;
        for (_, child) in &self.running {
            // One that has just ended cannot be reached, and need not be. A stopped one must go on to hear of its end.
            let leader = Pid::from_child(child);
            let _ = kill_process_group(leader, signal);
            if signal == Signal::TERM {
                let _ = kill_process_group(leader, Signal::CONT);
            }
        }
    }
}

impl Drop for Ranks<'_> {
    /// Nothing is left behind when the loop ends early.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        for (_, child) in &mut self.running {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank, wait status (an exit status is in its second byte), milliseconds, asked.
    fn order(ends: &[(Rank, i32, u64, bool)]) -> Vec<Rank> {
        let start = Instant::now();
        let failures = ends.iter().map(|&(rank, status, at, asked)| Failure {
            rank,
            status: ExitStatus::from_raw(status),
            last_words: None,
            at: start + Duration::from_millis(at),
            asked,
        });
        let ordered = cause_first(failures.collect());
        ordered.iter().map(|f| f.rank).collect()
    }

    #[test]
    fn a_rank_that_was_killed_is_the_cause_of_what_others_said_just_before() {
        const ONE: i32 = 1 << 8;
        assert!(order(&[]).is_empty());
        assert_eq!(order(&[(2, ONE, 0, false), (0, ONE, 1, false)]), [2, 0]);
        let killed = [(0, ONE, 0, false), (2, ONE, 1, false), (1, 9, 2, false)];
        assert_eq!(order(&killed), [1, 0, 2]);
        // Much later, by us, or by itself: a consequence.
        for late in [(1, 9, 5000, false), (1, 15, 2, true), (1, 6, 2, false)] {
            assert_eq!(order(&[(0, ONE, 0, false), late]), [0, 1]);
        }
    }
}
