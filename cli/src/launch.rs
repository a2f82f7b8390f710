//! `unisono launch`: any program as the ranks of a group on this machine.
//!
//! ```text
//! arguments -> a place to meet -> n processes with UNISONO_* set -> what they say, prefixed -> how they ended
//! ```

use anyhow::{Result, bail};

use crate::args::launch::Args;
use crate::processes::{Job, Launcher, Rendezvous};

/// Runs the program once per rank and waits for all of them.
///
/// # Errors
/// The program cannot be started; a rank failed: the first failure is the cause.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Some((program, arguments)) = args.command.split_first() else {
        bail!("there is no program to launch");
    };
    // Removed when this function returns, however it does.
    let rendezvous = Rendezvous::new()?;
    let coordinator = match &args.coordinator {
        Some(coordinator) => coordinator.to_string().into(),
        None => rendezvous.coordinator(),
    };
    let mut job = Job::new(program.clone(), args.ranks, coordinator);
    job.arguments = arguments.to_vec();
    job.timeout.clone_from(&args.timeout);
    job.grace = args.grace;
    if let Some(name) = &args.job {
        job.name.clone_from(name);
    }
    let failures = Launcher::new()?.run(&job)?;
    match failures.first() {
        None => Ok(()),
        Some(first) => bail!("{first}"),
    }
}
