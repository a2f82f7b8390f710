//! Arguments of `launch`.

use std::ffi::OsString;
use std::time::Duration;

use unisono_control::Coordinator;
use unisono_core::Rank;

/// Starts a program once per rank on this machine, and waits for all of them.
///
/// Each process finds UNISONO_RANK, UNISONO_SIZE, UNISONO_COORDINATOR and UNISONO_JOB in its environment, from which
/// `Group::from_env` makes its group. Every line that it writes is passed on with its rank in front; its input is empty. SIGINT, SIGTERM,
/// SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks. When a rank fails, or after a signal that asks for the end,
/// the others have some time to end by themselves, then get SIGTERM, and 5 s later SIGKILL.
///
/// The exit status is 1 if any rank failed; the last line on stderr says which one was the first, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono launch -n 4 -- ./train --epochs 10
  unisono launch -n 3 -- sh -c 'echo rank $UNISONO_RANK of $UNISONO_SIZE'
  unisono launch -n 2 --coordinator 127.0.0.1:5000 --timeout 20 -- ./program")]
pub(crate) struct Args {
    /// Number of ranks.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub(crate) ranks: Rank,

    /// Where the ranks meet: host:port, [v6]:port, file:///path [default: a file that is made for this]
    #[arg(long, value_name = "WHERE")]
    pub(crate) coordinator: Option<Coordinator>,

    /// A name that keeps this job apart from others that meet at the same place [default: made up]
    #[arg(long, value_name = "ID", value_parser = job)]
    pub(crate) job: Option<String>,

    /// What UNISONO_TIMEOUT is set to: seconds until a rendezvous or an operation is given up.
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    pub(crate) timeout: Option<String>,

    /// Seconds that ranks have to end by themselves after one has failed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = grace)]
    pub(crate) grace: Duration,

    /// The program and its arguments; everything behind the program is its own.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// More processes than this are a slip of the finger.
const MOST: i64 = 1024;

fn seconds(text: &str) -> Option<Duration> {
    // Digits and a point only, as UNISONO_TIMEOUT has it: `parse` alone would take inf.
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|d| *d <= MOST_TIME)
}

/// A year; more would not be noticed.
const MOST_TIME: Duration = Duration::from_secs(366 * 86_400);

fn grace(text: &str) -> Result<Duration, String> {
    seconds(text).ok_or_else(|| "must be seconds, such as 10 or 0.5".to_owned())
}

fn timeout(text: &str) -> Result<String, String> {
    match seconds(text) {
        Some(time) if !time.is_zero() => Ok(text.to_owned()),
        _ => Err("must be seconds above 0, such as 60 or 2.5".to_owned()),
    }
}

fn job(text: &str) -> Result<String, String> {
    if text.len() > unisono_control::env::JOB_LIMIT || text.chars().any(char::is_control) {
        return Err("must be at most 256 bytes without control characters".to_owned());
    }
    Ok(text.to_owned())
}
