//! Whether this process is one rank of a group that a launcher started.
//!
//! `UNISONO_RANK`, `UNISONO_SIZE` and `UNISONO_COORDINATOR` belong together: one of them set, even to nothing, means
//! that this process is a rank, and then all three must be there and valid. Each is checked alone first.

use anyhow::{Result, bail};
use unisono::{Error, Group};
use unisono_control::env::SIZE;
use unisono_control::{Environment, Place};
use unisono_core::Rank;

use crate::args::ranks::Worlds;

/// This process as one rank of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launched {
    /// Which rank of how many, and where they meet.
    pub(super) place: Place,
    /// What else the environment says.
    environment: Environment,
}

impl Launched {
    /// What the environment says; `None` if it names no rank.
    ///
    /// # Errors
    /// A variable is missing or invalid; `--ranks` says something else.
    pub(super) fn from_env(ranks: Option<&Worlds>) -> Result<Option<Launched>> {
        Self::from(Environment::read()?, ranks)
    }

    fn from(environment: Environment, ranks: Option<&Worlds>) -> Result<Option<Launched>> {
        let Some(place) = environment.place.clone() else {
            return Ok(None);
        };
        match ranks {
            Some(Worlds(all)) if *all != [place.size] => {
                let asked: Vec<String> = all.iter().map(Rank::to_string).collect();
                bail!(
                    "--ranks {} disagrees with {SIZE}, which is {}",
                    asked.join(","),
                    place.size
                )
            }
            _ => Ok(Some(Launched { place, environment })),
        }
    }

    /// The group, with connections for so many copies of an algorithm side by side.
    ///
    /// # Errors
    /// The ranks do not find each other.
    pub(super) fn join(&self, copies: u16) -> Result<Group, Error> {
        let Launched { place, environment } = self;
        let mut builder = Group::builder()
            .rank(place.rank)
            .size(place.size)
            .coordinator(place.coordinator.to_string())
            // One more for messages between two ranks.
            .channels(copies.saturating_add(1))
            .check(environment.check.unwrap_or_default());
        if let Some(job) = &environment.job {
            builder = builder.job(job);
        }
        if let Some(timeout) = environment.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(iface) = &environment.iface {
            builder = builder.iface(iface);
        }
        builder.join()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_control::env::{COORDINATOR, RANK};

    fn launched(size: &str, ranks: Option<Vec<Rank>>) -> Result<Option<Launched>> {
        let all = [(RANK, "0"), (SIZE, size), (COORDINATOR, "h:1")];
        let set = all.into_iter().filter(|_| !size.is_empty());
        let environment = Environment::from_variables(set).unwrap();
        Launched::from(environment, ranks.map(Worlds).as_ref())
    }

    #[test]
    fn without_variables_nothing_was_launched() {
        assert_eq!(launched("", Some(vec![3])).unwrap(), None);
    }

    #[test]
    fn ranks_must_agree_with_the_size() {
        assert_eq!(launched("2", None).unwrap().unwrap().place.size, 2);
        assert!(launched("2", Some(vec![2])).is_ok());
        for other in [vec![3], vec![2, 3], vec![2, 2]] {
            let error = launched("2", Some(other)).unwrap_err().to_string();
            assert!(error.contains(SIZE) && error.contains("--ranks"), "{error}");
        }
    }
}
