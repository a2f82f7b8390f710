//! [`Environment`]: what variables say about this process's place in a group, checked one by one before anything is opened.
//!
//! [`Environment::read`] knows `UNISONO_*` alone; [`Environment::discover`] also what [`launchers`] of other libraries set.
//!
//! ```
//! use unisono_control::Environment;
//!
//! let variables = [("UNISONO_RANK", "2"), ("UNISONO_SIZE", "2"), ("UNISONO_COORDINATOR", "node0:5000")];
//! let error = Environment::from_variables(variables).unwrap_err();
//! assert_eq!(error.to_string(), "UNISONO_RANK is 2, but UNISONO_SIZE is 2: ranks are 0 to 1");
//! assert_eq!(Environment::from_variables([("PATH", "/bin")]).unwrap().place, None);
//! ```

#[path = "launchers.rs"]
pub mod launchers;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use unisono_core::Rank;

use self::launchers::{Launcher, Warning};
use crate::address::{AddressFault, Coordinator, is_interface};

/// This process's rank.
pub const RANK: &str = "UNISONO_RANK";
/// Number of ranks.
pub const SIZE: &str = "UNISONO_SIZE";
/// Where ranks meet: [`Coordinator`].
pub const COORDINATOR: &str = "UNISONO_COORDINATOR";
/// A name that all ranks of a group have and no other group.
pub const JOB: &str = "UNISONO_JOB";
/// Seconds until a rendezvous or an operation is given up.
pub const TIMEOUT: &str = "UNISONO_TIMEOUT";
/// `full` or `default`.
pub const CHECK: &str = "UNISONO_CHECK";
/// The network interface whose address peers are told.
pub const IFACE: &str = "UNISONO_IFACE";

/// Bytes that a job id may have.
pub const JOB_LIMIT: usize = 256;

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Environment {
    /// Which rank of which group this process is; `None` when no variable says so.
    pub place: Option<Place>,
    /// Who says so; of several the first in the order of [`Launcher`].
    pub launcher: Option<Launcher>,
    /// `UNISONO_JOB`, else what the launcher calls the job, if it names jobs.
    pub job: Option<String>,
    /// `UNISONO_TIMEOUT`.
    pub timeout: Option<Duration>,
    /// `UNISONO_CHECK`.
    pub check: Option<Check>,
    /// `UNISONO_IFACE`.
    pub iface: Option<String>,
    /// `JACCL_RING` or `MLX_JACCL_RING`: rings are preferred to meshes.
    pub prefer_ring: Option<bool>,
    /// `JACCL_IBV_DEVICES` or `MLX_IBV_DEVICES`: a file with the matrix of RDMA devices.
    pub devices: Option<PathBuf>,
    /// What is no error, but may not be meant.
    pub warnings: Vec<Warning>,
}

/// One rank of a group, and where the group meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// This process's rank, below `size`.
    pub rank: Rank,
    /// Number of ranks, at least 1.
    pub size: Rank,
    /// Where they meet.
    pub coordinator: Coordinator,
}

/// How thoroughly calls of different ranks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Check {
    /// Frame by frame, as data arrives.
    #[default]
    Default,
    /// By all ranks, before each operation.
    Full,
}

/// A variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// One of the three that belong together is missing.
    #[error("{missing} is not set, but {set} is: a rank needs {RANK}, {SIZE} and {COORDINATOR}")]
    Missing {
        /// The variable.
        missing: &'static str,
        /// One that is set.
        set: &'static str,
    },
    /// Not UTF-8.
    #[error("{variable} is not valid UTF-8")]
    Encoding {
        /// The variable.
        variable: &'static str,
    },
    /// No number that fits.
    #[error("{variable} is {value:?}, it must be {expected}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it could be.
        expected: &'static str,
    },
    /// No coordinator.
    #[error("{COORDINATOR} is {value:?}: {reason}")]
    Coordinator {
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: AddressFault,
    },
    /// A rank that the group does not have.
    #[error("{RANK} is {rank}, but {SIZE} is {size}: ranks are 0 to {}", .size - 1)]
    Rank {
        /// The rank.
        rank: Rank,
        /// The size.
        size: Rank,
    },
    /// A rank that the group does not have, from another launcher's variables.
    #[error("{rank_variable} is {rank}, but {size_variable} is {size_shown}: ranks are 0 to {}", .size - 1)]
    Beyond {
        /// What says the rank.
        rank_variable: &'static str,
        /// The rank.
        rank: Rank,
        /// What says the size.
        size_variable: &'static str,
        /// How it says it.
        size_shown: String,
        /// The size.
        size: Rank,
    },
    /// A launcher's variable without another that belongs to it.
    #[error("{set} is set, but {missing} is not: together they say which rank of how many this is")]
    Incomplete {
        /// The variable that is set.
        set: &'static str,
        /// The one that is missing, or several of which one is enough.
        missing: &'static str,
    },
    /// Two variables that should say the same do not.
    #[error(
        "{first} is {first_value}, but {second} is {second_value}: they must agree; unset the one that is not meant"
    )]
    Disagree {
        /// One variable.
        first: &'static str,
        /// Its value; of a file also what is in it.
        first_value: String,
        /// The other variable.
        second: &'static str,
        /// Its value; of a file also what is in it.
        second_value: String,
    },
    /// An address of another launcher that is none.
    #[error("{variable} is {value:?}: {reason}")]
    Address {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        reason: AddressFault,
    },
    /// A file that a variable names cannot be used.
    #[error("{variable} is {path:?}: {reason}")]
    File {
        /// The variable.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
    /// A launcher does not say where its ranks can meet.
    #[error(
        "{variable} says that this is one of {size} ranks{}, but not where they meet: \
         set {COORDINATOR} to HOST:PORT for all of them, a free port of the host of rank 0",
        .local.map(|n| format!(", {n} of them on this machine")).unwrap_or_default()
    )]
    NoMeeting {
        /// The variable that says the rank.
        variable: &'static str,
        /// The number of ranks.
        size: Rank,
        /// How many of them are on this machine, if that is known.
        local: Option<Rank>,
    },
}

/// What `UNISONO_*` say, each checked alone.
#[derive(Debug, Default)]
struct Own {
    rank: Option<Rank>,
    size: Option<Rank>,
    coordinator: Option<Coordinator>,
    /// Everything else.
    rest: Environment,
}

impl Environment {
    /// What `UNISONO_*` of this process say.
    ///
    /// # Errors
    /// [`EnvironmentError`], naming the variable.
    pub fn read() -> Result<Self, EnvironmentError> {
        Self::from_variables(std::env::vars_os())
    }

    /// The same from given variables; those that are none of ours are skipped.
    ///
    /// # Errors
    /// [`EnvironmentError`]. Each variable is looked at alone before two are compared.
    pub fn from_variables<N, V>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EnvironmentError>
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let own = own(variables)?;
        let place = place(own.rank, own.size, own.coordinator)?;
        Ok(Self {
            launcher: place.is_some().then_some(Launcher::Unisono),
            place,
            ..own.rest
        })
    }
}

const NAMES: [&str; 7] = [RANK, SIZE, COORDINATOR, JOB, TIMEOUT, CHECK, IFACE];

fn own<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Result<Own, EnvironmentError>
where
    N: AsRef<OsStr>,
    V: AsRef<OsStr>,
{
    let mut values: [Option<String>; 7] = Default::default();
    for (name, value) in variables {
        let known = NAMES.iter().zip(&mut values);
        for (&variable, slot) in known {
            if name.as_ref() == variable {
                let value = value.as_ref().to_str();
                let value = value.ok_or(EnvironmentError::Encoding { variable })?;
                *slot = Some(value.to_owned());
            }
        }
    }
    let [rank, size, coordinator, job, timeout, check, iface] = values;
    Ok(Own {
        rank: rank.map(|v| parse_rank(RANK, v)).transpose()?,
        size: size.map(|v| parse_size(SIZE, v)).transpose()?,
        coordinator: coordinator.map(parse_coordinator).transpose()?,
        rest: Environment {
            job: job.map(parse_job).transpose()?,
            timeout: timeout.map(parse_timeout).transpose()?,
            check: check.map(parse_check).transpose()?,
            iface: iface.map(parse_iface).transpose()?,
            ..Environment::default()
        },
    })
}

fn place(
    rank: Option<Rank>,
    size: Option<Rank>,
    coordinator: Option<Coordinator>,
) -> Result<Option<Place>, EnvironmentError> {
    let (rank, size, coordinator) = match (rank, size, coordinator) {
        (None, None, None) => return Ok(None),
        (Some(rank), Some(size), Some(coordinator)) => (rank, size, coordinator),
        (rank, size, coordinator) => {
            let there = [
                (RANK, rank.is_some()),
                (SIZE, size.is_some()),
                (COORDINATOR, coordinator.is_some()),
            ];
            let first = |wanted| there.iter().find(|(_, is)| *is == wanted).map(|(n, _)| *n);
            return Err(EnvironmentError::Missing {
                missing: first(false).unwrap_or_default(),
                set: first(true).unwrap_or_default(),
            });
        }
    };
    if rank >= size {
        return Err(EnvironmentError::Rank { rank, size });
    }
    Ok(Some(Place {
        rank,
        size,
        coordinator,
    }))
}

fn number(
    variable: &'static str,
    value: String,
    expected: &'static str,
) -> Result<Rank, EnvironmentError> {
    // Digits only: `parse` alone would take a sign.
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits => Ok(number),
        _ => Err(EnvironmentError::Value {
            variable,
            value,
            expected,
        }),
    }
}

fn parse_rank(variable: &'static str, value: String) -> Result<Rank, EnvironmentError> {
    number(variable, value, "a rank from 0")
}

fn parse_size(variable: &'static str, value: String) -> Result<Rank, EnvironmentError> {
    const EXPECTED: &str = "a number of ranks from 1";
    match number(variable, value.clone(), EXPECTED)? {
        0 => Err(wrong(variable, value, EXPECTED)),
        size => Ok(size),
    }
}

fn parse_coordinator(value: String) -> Result<Coordinator, EnvironmentError> {
    value.parse().map_err(|error: crate::AddressError| {
        let reason = error.reason;
        EnvironmentError::Coordinator { value, reason }
    })
}

fn parse_job(value: String) -> Result<String, EnvironmentError> {
    if value.len() > JOB_LIMIT || value.chars().any(char::is_control) {
        let expected = "at most 256 bytes without control characters";
        return Err(wrong(JOB, value, expected));
    }
    Ok(value)
}

fn parse_timeout(value: String) -> Result<Duration, EnvironmentError> {
    let (whole, fraction) = value.split_once('.').unwrap_or((&value, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parsed = if digits(whole) && digits(fraction) {
        value.parse::<f64>().ok()
    } else {
        None
    };
    match parsed.map(Duration::try_from_secs_f64) {
        // A thousand years is as good as for ever, and leaves room for sums.
        Some(Ok(time)) if !time.is_zero() && time.as_secs() <= 1000 * 366 * 86400 => Ok(time),
        _ => Err(wrong(TIMEOUT, value, "seconds above 0, such as 60 or 2.5")),
    }
}

fn parse_check(value: String) -> Result<Check, EnvironmentError> {
    match value.as_str() {
        "default" => Ok(Check::Default),
        "full" => Ok(Check::Full),
        _ => Err(wrong(CHECK, value, "default or full")),
    }
}

fn parse_iface(value: String) -> Result<String, EnvironmentError> {
    if is_interface(&value) {
        Ok(value)
    } else {
        Err(wrong(IFACE, value, "the name of a network interface"))
    }
}

fn wrong(variable: &'static str, value: String, expected: &'static str) -> EnvironmentError {
    EnvironmentError::Value {
        variable,
        value,
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 3] = [(RANK, "1"), (SIZE, "3"), (COORDINATOR, "localhost:5000")];

    fn with(changes: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        let changed = |name: &str| changes.iter().any(|(n, _)| *n == name);
        let kept = GOOD.iter().filter(|(name, _)| !changed(name));
        Environment::from_variables(kept.chain(changes).copied())
    }

    #[test]
    fn three_variables_make_a_rank() {
        let environment = with(&[]).unwrap();
        let place = environment.place.unwrap();
        assert_eq!((place.rank, place.size), (1, 3));
        assert_eq!(place.coordinator.to_string(), "localhost:5000");
        assert_eq!(environment.timeout, None);
    }

    #[test]
    fn none_of_the_three_is_no_rank_but_the_others_count() {
        let environment = Environment::from_variables([(CHECK, "full"), (TIMEOUT, "2.5")]).unwrap();
        assert_eq!(environment.place, None);
        assert_eq!(environment.check, Some(Check::Full));
        assert_eq!(environment.timeout, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn one_of_the_three_needs_the_others() {
        for missing in 0..3 {
            let mut some = GOOD.to_vec();
            let (name, _) = some.remove(missing);
            let text = Environment::from_variables(some).unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
        }
    }

    #[test]
    fn set_to_nothing_is_set() {
        for (name, _) in GOOD {
            let text = with(&[(name, "")]).unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
            let alone = Environment::from_variables([(name, "")]).unwrap_err();
            assert!(alone.to_string().starts_with(name), "{alone}");
        }
    }

    #[test]
    fn each_is_checked_alone_before_two_are_compared() {
        for (changes, named) in [
            (&[(SIZE, "0")][..], SIZE),
            (&[(SIZE, "0"), (RANK, "7")], SIZE),
            (&[(RANK, "3")], RANK),
            (&[(RANK, "+1")], RANK),
            (&[(RANK, " 1")], RANK),
            (&[(RANK, "0x1")], RANK),
            (&[(RANK, "99999999999")], RANK),
            (&[(SIZE, "-3")], SIZE),
            (&[(SIZE, "3.0")], SIZE),
            (&[(COORDINATOR, "::1:5000")], COORDINATOR),
            (&[(TIMEOUT, "0")], TIMEOUT),
            (&[(TIMEOUT, "-1")], TIMEOUT),
            (&[(TIMEOUT, "1e3")], TIMEOUT),
            (&[(TIMEOUT, "inf")], TIMEOUT),
            (&[(TIMEOUT, "5.")], TIMEOUT),
            (&[(TIMEOUT, "99999999999999999999")], TIMEOUT),
            (&[(CHECK, "Full")], CHECK),
            (&[(IFACE, "")], IFACE),
            (&[(JOB, "a\nb")], JOB),
        ] {
            let text = with(changes).unwrap_err().to_string();
            assert!(text.starts_with(named), "{changes:?}: {text}");
            assert!(!text.contains('\n'));
        }
    }
}
