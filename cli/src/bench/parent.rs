//! A bench between processes of this machine: this program again, once per rank.
//!
//! What cannot be done is refused here, so that it is said once. Rank 0 writes the table straight to our stdout.

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail};
use unisono_core::Rank;

use super::{cases, measure, memory};
use crate::args::bench::Args;
use crate::exit::say;
use crate::processes::{Failure, Job, Launcher, Rendezvous, Voice};

/// Runs a group of processes for every number of ranks, one after the other.
///
/// # Errors
/// As [`run`](super::run).
pub(super) fn run(args: &Args) -> Result<()> {
    let worlds = cases::worlds(args);
    for &size in &worlds {
        possible(args, size)?;
    }
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let launcher = Launcher::new()?;
    for &size in &worlds {
        let rendezvous = Rendezvous::new()?;
        let mut job = Job::new(program.clone().into(), size, rendezvous.coordinator());
        job.arguments = arguments(std::env::args_os().skip(1), size);
        job.voice = Voice::Bench;
        judge(launcher.run(&job)?)?;
    }
    Ok(())
}

/// Refuses what ranks would refuse.
fn possible(args: &Args, size: Rank) -> Result<()> {
    let cases = cases::cases(args, &[size])?;
    // Only asked what it would choose.
    let groups = unisono::inproc(size);
    for case in &cases {
        let algorithm = measure::choice(case, &groups[0]).with_context(|| case.to_string())?;
        memory::all_fit(case, algorithm.as_deref())?;
    }
    Ok(())
}

/// Our own arguments, with one number of ranks instead of several.
fn arguments(own: impl Iterator<Item = OsString>, size: Rank) -> Vec<OsString> {
    let mut own = own.peekable();
    let mut all = Vec::new();
    while let Some(argument) = own.next() {
        let bytes = argument.as_encoded_bytes();
        if bytes == b"--ranks" {
            own.next();
        } else if !bytes.starts_with(b"--ranks=") {
            all.push(argument);
            continue;
        }
        all.push(format!("--ranks={size}").into());
    }
    all
}

/// The first failure is the cause, in the words of that rank where it had any. What others say besides comes before.
fn judge(failures: Vec<Failure>) -> Result<()> {
    let words = |failure: &Failure| match &failure.last_words {
        Some(words) => words.clone(),
        None => failure.to_string(),
    };
    let Some((first, others)) = failures.split_first() else {
        return Ok(());
    };
    let cause = words(first);
    for other in others {
        let words = words(other);
        if words != cause {
            say(&format!("[{}] error: {words}", other.rank));
        }
    }
    bail!("{cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_replaced_however_they_were_written() {
        let with = |own: &str| {
            let own = own.split(' ').map(OsString::from);
            let all = arguments(own, 3).into_iter();
            let all: Vec<String> = all.map(|a| a.into_string().unwrap()).collect();
            all.join(" ")
        };
        assert_eq!(with("bench --ranks 2,3 --json"), "bench --ranks=3 --json");
        assert_eq!(with("bench --ranks=2..4"), "bench --ranks=3");
        assert_eq!(with("bench"), "bench");
    }
}
