//! What launchers of other libraries tell their ranks, so that a program starts under them unchanged.
//!
//! | launcher | rank | size | where the ranks meet |
//! |---|---|---|---|
//! | `unisono launch` | `UNISONO_RANK` | `UNISONO_SIZE` | `UNISONO_COORDINATOR`; goes before all others |
//! | `mlx.launch` | `JACCL_RANK`, `MLX_RANK` | ranks in `MLX_HOSTFILE`, `JACCL_IBV_DEVICES`, `MLX_IBV_DEVICES`; `MLX_WORLD_SIZE` | `JACCL_COORDINATOR`, `MLX_JACCL_COORDINATOR`; else the first address of rank 0 in the hostfile; else `NCCL_HOST_IP` and the port after `NCCL_PORT` |
//! | `torchrun` | `RANK` | `WORLD_SIZE` | a file if all ranks are here; else `MASTER_ADDR` and the port after `MASTER_PORT` |
//! | `mpirun` | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | a file if all ranks are here |
//! | MPICH and others | `PMI_RANK` | `PMI_SIZE` | a file if all ranks are here |
//! | `srun` | `SLURM_PROCID` | `SLURM_NTASKS` | a file if all ranks are here; else the first node of the step, at a port that follows from the job |
//!
//! - The file lies in the directory for temporary files and is named after the job: `PMIX_NAMESPACE`, `PMI_JOBID`,
//!   `SLURM_JOB_ID` and the like; where a launcher names no job, after the process that started all ranks.
//! - **The port after**: `MASTER_PORT` and `NCCL_PORT` are where another library listens. The agent of torchrun has a store
//!   there as long as the job runs, and without one rank 0 opens it. We take the next port (before 65535: the one before).
//! - `mpirun` over several hosts tells nobody where rank 0 is: `MASTER_ADDR` and `MASTER_PORT` if set, else
//!   `UNISONO_COORDINATOR` is needed.
//! - All that say a rank must say the same, and all that say a size. Launchers that start launchers are no disagreement where
//!   it is certain who started whom: torchrun repeats the place of its agent (`GROUP_RANK`, `GROUP_WORLD_SIZE`), and what Slurm
//!   told the daemons of `mpirun` or `mpiexec` is not about the ranks that they started.
//! - A launcher counts if it says a rank. A size alone, such as `SLURM_NTASKS` in a shell of `salloc`, is nothing.
//!
//! ```
//! use unisono_control::Environment;
//! use unisono_control::env::launchers::{Launcher, Machine};
//!
//! let machine = Machine::here(|_| Err("no lists of hosts here".to_owned()));
//! let torchrun = [("RANK", "1"), ("WORLD_SIZE", "8"), ("MASTER_ADDR", "node0"), ("MASTER_PORT", "29500")];
//! let environment = Environment::discover_in(torchrun, &machine)?;
//! let place = environment.place.unwrap();
//! assert_eq!((place.rank, place.size), (1, 8));
//! assert_eq!(place.coordinator.to_string(), "node0:29501");
//! assert_eq!(environment.launcher, Some(Launcher::Torchrun));
//!
//! let both = torchrun.into_iter().chain([("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "8")]);
//! let error = Environment::discover_in(both, &machine).unwrap_err();
//! assert!(error.to_string().starts_with("RANK is 1, but OMPI_COMM_WORLD_RANK is 0"));
//! # Ok::<(), unisono_control::EnvironmentError>(())
//! ```

#[path = "launchers_meeting.rs"]
mod meeting;
#[path = "launchers_names.rs"]
mod names;
#[path = "launchers_slurm.rs"]
mod slurm;
#[path = "launchers_sources.rs"]
mod sources;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use unisono_core::Rank;

use self::meeting::Scene;
use self::names::Variables;
use self::sources::{Claim, Source};
use super::{Environment, EnvironmentError, Place, RANK, SIZE, own, place};

pub use self::names::variables;

/// Who starts ranks. The order is the one in which they are asked where the ranks meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Launcher {
    /// `unisono launch`, or whoever sets `UNISONO_*`.
    Unisono,
    /// `mlx.launch` with any backend but MPI.
    Mlx,
    /// `torchrun`, or whoever sets `RANK` and `WORLD_SIZE`.
    Torchrun,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH and its relatives.
    Pmi,
    /// `srun`.
    Slurm,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Unisono => "unisono",
            Launcher::Mlx => "mlx",
            Launcher::Torchrun => "torchrun",
            Launcher::OpenMpi => "openmpi",
            Launcher::Pmi => "pmi",
            Launcher::Slurm => "slurm",
        })
    }
}

/// What is no error, but may not be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A variable that nobody reads, one letter from one that is read.
    #[error("{found} is no variable that is read; is {known} meant?")]
    Name {
        /// The variable.
        found: String,
        /// The one that is read.
        known: &'static str,
    },
    /// Nothing says whether all ranks are on this machine.
    #[error(
        "{variable} does not say on how many machines the {size} ranks are: they are looked for on this one"
    )]
    Machines {
        /// The variable that says the rank.
        variable: &'static str,
        /// The number of ranks.
        size: Rank,
    },
}

/// What is asked of the machine besides variables.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The directory for temporary files, the same for all ranks of this machine.
    pub temp: PathBuf,
    /// The process that started this one.
    pub parent: Option<u32>,
    /// Reads a file.
    pub read: fn(&Path) -> io::Result<Vec<u8>>,
    /// Understands a hostfile or a matrix of devices, or says what is wrong with it.
    pub hosts: fn(&[u8]) -> Result<Hosts, String>,
}

/// What a list of hosts says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hosts {
    /// Number of ranks, at least 1.
    pub size: Rank,
    /// The first address of rank 0, with its port, as a coordinator is written.
    pub first: Option<String>,
    /// The devices of each rank, for comparison: in whatever form, if only equal matrices look equal.
    pub devices: String,
}

impl Hosts {
    /// So many ranks, of which nothing else is known.
    pub fn new(size: Rank) -> Self {
        Self {
            size,
            first: None,
            devices: String::new(),
        }
    }
}

impl Machine {
    /// This machine, seen by this process. How lists of hosts are written is known elsewhere.
    pub fn here(hosts: fn(&[u8]) -> Result<Hosts, String>) -> Self {
        #[cfg(unix)]
        let parent = Some(std::os::unix::process::parent_id());
        #[cfg(not(unix))]
        let parent = None;
        Self {
            temp: std::env::temp_dir(),
            parent,
            read: read_some,
            hosts,
        }
    }
}

/// No list of hosts is longer; something that never ends must not be read for ever.
const LONGEST: u64 = 64 << 20;

fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Environment {
    /// What this process was started with, by whichever launcher. Warnings are also traced.
    ///
    /// # Errors
    /// [`EnvironmentError`], naming the variables.
    pub fn discover(machine: &Machine) -> Result<Self, EnvironmentError> {
        let environment = Self::discover_in(std::env::vars_os(), machine)?;
        for warning in &environment.warnings {
            tracing::warn!(target: "unisono", "{warning}");
        }
        if let (Some(place), Some(launcher)) = (&environment.place, environment.launcher) {
            let Place {
                rank,
                size,
                coordinator,
            } = place;
            tracing::debug!(target: "unisono", "{launcher}: rank {rank} of {size}, meeting at {coordinator}");
        }
        Ok(environment)
    }

    /// The same from given variables.
    ///
    /// # Errors
    /// [`EnvironmentError`]. `UNISONO_*` are looked at first, each alone; then each launcher; then they are compared.
    pub fn discover_in<N, V>(
        variables: impl IntoIterator<Item = (N, V)>,
        machine: &Machine,
    ) -> Result<Self, EnvironmentError>
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let all: Vec<(OsString, OsString)> = variables
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()))
            .collect();
        let own = own(all.iter().map(|(name, value)| (name, value)))?;
        let variables = Variables::new(&all)?;
        let sources = sources::all(&variables, machine)?;
        let mut environment = Self {
            prefer_ring: names::prefer_ring(&variables)?,
            devices: variables.first(names::DEVICES).map(|(_, path)| path.into()),
            warnings: names::misspelled(&all),
            ..own.rest
        };
        if sources.is_empty() {
            environment.place = place(own.rank, own.size, own.coordinator)?;
            environment.launcher = environment.place.is_some().then_some(Launcher::Unisono);
            return Ok(environment);
        }
        let (rank, size) = joint(own.rank, own.size, &sources)?;
        let scene = Scene {
            variables: &variables,
            machine,
            job: environment.job.clone(),
            size,
        };
        let coordinator = match own.coordinator {
            Some(coordinator) => coordinator,
            None => {
                let (coordinator, warning) = scene.meeting(&sources)?;
                environment.warnings.extend(warning);
                coordinator
            }
        };
        environment.launcher = match own.rank {
            Some(_) => Some(Launcher::Unisono),
            None => sources.first().map(|source| source.launcher),
        };
        environment.job = environment.job.or_else(|| scene.named_job(&sources));
        environment.place = Some(Place {
            rank,
            size,
            coordinator,
        });
        Ok(environment)
    }
}

/// The rank and the size that `UNISONO_*` and all sources agree on.
fn joint(
    rank: Option<Rank>,
    size: Option<Rank>,
    sources: &[Source],
) -> Result<(Rank, Rank), EnvironmentError> {
    let own = rank.map(|rank| Claim::new(RANK, rank));
    let ranks = own.iter().chain(sources.iter().flat_map(|s| &s.ranks));
    let rank = agreed(ranks)?;
    let own = size.map(|size| Claim::new(SIZE, size));
    let sizes = own.iter().chain(sources.iter().flat_map(|s| &s.sizes));
    let size = agreed(sizes)?;
    match (rank, size) {
        (Some(rank), Some(size)) if rank.value < size.value => Ok((rank.value, size.value)),
        (Some(rank), Some(size)) => Err(EnvironmentError::Beyond {
            rank_variable: rank.variable,
            rank: rank.value,
            size_variable: size.variable,
            size_shown: size.shown.clone(),
            size: size.value,
        }),
        _ => Err(EnvironmentError::Incomplete {
            set: sources.first().map_or(RANK, Source::variable),
            missing: sources.first().map_or(SIZE, |source| source.size_names),
        }),
    }
}

/// The first of these, if all say the same.
fn agreed<'a>(
    claims: impl Iterator<Item = &'a Claim>,
) -> Result<Option<&'a Claim>, EnvironmentError> {
    let mut first: Option<&Claim> = None;
    for claim in claims {
        match first {
            Some(first) if first.value != claim.value => {
                return Err(EnvironmentError::Disagree {
                    first: first.variable,
                    first_value: first.shown.clone(),
                    second: claim.variable,
                    second_value: claim.shown.clone(),
                });
            }
            Some(_) => {}
            None => first = Some(claim),
        }
    }
    Ok(first)
}
