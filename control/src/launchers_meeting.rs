//! [`Scene`]: where ranks meet that were told who they are, but perhaps not where.

use std::net::Ipv6Addr;

use unisono_core::Rank;

use super::names::{MLX_COORDINATORS, Variables};
use super::slurm::Step;
use super::sources::Source;
use super::{Launcher, Machine, Warning};
use crate::address::{AddressError, Coordinator};
use crate::env::{EnvironmentError, JOB_LIMIT, parse_size, wrong};

/// Whether all ranks are on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All of them.
    Here,
    /// Not all.
    Beyond {
        /// How many are.
        local: Option<Rank>,
    },
    /// Nothing says so.
    Unknown,
}

/// What the ranks were told.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) variables: &'a Variables,
    pub(super) machine: &'a Machine,
    /// `UNISONO_JOB`.
    pub(super) job: Option<String>,
    /// The number of ranks.
    pub(super) size: Rank,
}

type Found = Result<Option<Coordinator>, EnvironmentError>;

impl Scene<'_> {
    /// Where the ranks meet, and what is to be said about it.
    pub(super) fn meeting(
        &self,
        sources: &[Source],
    ) -> Result<(Coordinator, Option<Warning>), EnvironmentError> {
        if self.size == 1 {
            // Nobody else comes: the place is never opened.
            let alone = self.machine.temp.join("unisono-alone");
            return Ok((Coordinator::File(alone), None));
        }
        for source in sources {
            if let Some(coordinator) = self.told(source)? {
                return Ok((coordinator, None));
            }
        }
        if let Some(coordinator) = self.master()? {
            return Ok((coordinator, None));
        }
        let variable = sources[0].variable();
        let size = self.size;
        let mut local = None;
        for source in sources {
            match self.reach(source)? {
                Reach::Here | Reach::Unknown => {}
                Reach::Beyond { local: some } => local = local.or(Some(some)),
            }
        }
        let guess = sources.iter().find(|s| s.launcher >= Launcher::OpenMpi);
        match (local, guess) {
            (None, Some(source)) => {
                let variable = source.variable();
                let coordinator = self.file(source.launcher);
                Ok((coordinator, Some(Warning::Machines { variable, size })))
            }
            (local, _) => Err(EnvironmentError::NoMeeting {
                variable,
                size,
                local: local.flatten(),
            }),
        }
    }

    /// What the launcher calls the job, for those whose names are the same on all ranks and no other's.
    pub(super) fn named_job(&self, sources: &[Source]) -> Option<String> {
        let name = |source: &Source| {
            let id = match source.launcher {
                Launcher::OpenMpi | Launcher::Pmi | Launcher::Slurm => self.id(source.launcher),
                _ => None,
            }?;
            Some(format!("{} {id}", source.launcher))
        };
        let name = sources.first().and_then(name)?;
        let fits = name.len() <= JOB_LIMIT && !name.chars().any(char::is_control);
        fits.then_some(name)
    }

    /// Where one launcher says that the ranks meet.
    fn told(&self, source: &Source) -> Found {
        let reach = self.reach(source)?;
        let launcher = source.launcher;
        match launcher {
            Launcher::Mlx => self.mlx(source),
            // By hand there is no name of the job.
            Launcher::Torchrun if reach == Reach::Here && self.id(launcher).is_some() => {
                Ok(Some(self.file(launcher)))
            }
            Launcher::Torchrun => self.master(),
            _ if reach == Reach::Here => Ok(Some(self.file(launcher))),
            Launcher::Slurm => {
                let step = Step::new(self.variables);
                let Some(node) = step.first.as_ref() else {
                    return Ok(None);
                };
                let text = format!("{node}:{}", step.port());
                parse("SLURM_NODELIST", &text, &text).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn mlx(&self, source: &Source) -> Found {
        if let Some((name, text)) = self.variables.alike(MLX_COORDINATORS)? {
            return parse(name, text, text).map(Some);
        }
        if let Some((path, Some(address))) = &source.hostfile {
            let refused = |error: AddressError| EnvironmentError::File {
                variable: "MLX_HOSTFILE",
                path: path.clone(),
                reason: error.to_string(),
            };
            return address.parse().map(Some).map_err(refused);
        }
        self.beside("NCCL_HOST_IP", "NCCL_PORT")
    }

    fn master(&self) -> Found {
        self.beside("MASTER_ADDR", "MASTER_PORT")
    }

    /// At this address, at the port after this one, which is another library's.
    fn beside(&self, host: &'static str, port: &'static str) -> Found {
        let (Some(address), Some(text)) = (self.variables.of(host), self.variables.of(port)) else {
            return Ok(None);
        };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = match text.parse::<u16>() {
            Ok(number) if digits && number > 0 => number,
            _ => return Err(wrong(port, text.to_owned(), "a port from 1 to 65535")),
        };
        let next = number.checked_add(1).unwrap_or(number - 1);
        let bare = address.split('%').next().unwrap_or_default();
        let whole = match bare.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{address}]:{next}"),
            Err(_) => format!("{address}:{next}"),
        };
        parse(host, address, &whole).map(Some)
    }

    /// Whether all ranks are here, as far as this launcher says.
    fn reach(&self, source: &Source) -> Result<Reach, EnvironmentError> {
        let local = match source.launcher {
            Launcher::Torchrun => self.variables.first(["LOCAL_WORLD_SIZE"]),
            Launcher::OpenMpi => self.variables.first(["OMPI_COMM_WORLD_LOCAL_SIZE"]),
            Launcher::Pmi => self.variables.first(["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"]),
            Launcher::Slurm => return Ok(Step::new(self.variables).reach),
            Launcher::Unisono | Launcher::Mlx => None,
        };
        let Some((variable, text)) = local else {
            return Ok(Reach::Unknown);
        };
        let local = parse_size(variable, text.to_owned())?;
        Ok(if local == self.size {
            Reach::Here
        } else {
            Reach::Beyond { local: Some(local) }
        })
    }

    /// What the launcher calls the job.
    fn id(&self, launcher: Launcher) -> Option<String> {
        let first = |(_, value): (_, &str)| value.to_owned();
        match launcher {
            Launcher::Torchrun => {
                let run = self.variables.of("TORCHELASTIC_RUN_ID")?;
                // Runs may be called `none`; two of them cannot have the same port.
                let port = self.variables.of("MASTER_PORT").unwrap_or_default();
                Some(format!("{run} {port}"))
            }
            Launcher::OpenMpi => {
                let names = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"];
                self.variables.first(names).map(first)
            }
            Launcher::Pmi => self.variables.of("PMI_JOBID").map(str::to_owned),
            Launcher::Slurm => Step::new(self.variables).id,
            Launcher::Unisono | Launcher::Mlx => None,
        }
    }

    /// A file of this machine that only ranks of this job know.
    fn file(&self, launcher: Launcher) -> Coordinator {
        let launcher_name = launcher.to_string();
        let id = self.id(launcher).unwrap_or_else(|| match &self.job {
            Some(_) => String::new(),
            None => {
                let parent = self.machine.parent;
                parent.map_or_else(String::new, |parent| format!("parent {parent}"))
            }
        });
        let job = self.job.as_deref().unwrap_or_default();
        let readable = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let shown: String = id.chars().take(40).map(readable).collect();
        let hash = hash([launcher_name.as_str(), &id, job]);
        let name = format!("unisono-{launcher_name}-{shown}-{hash:016x}");
        Coordinator::File(self.machine.temp.join(name))
    }
}

fn parse(
    variable: &'static str,
    value: &str,
    whole: &str,
) -> Result<Coordinator, EnvironmentError> {
    whole
        .parse()
        .map_err(|error: AddressError| EnvironmentError::Address {
            variable,
            value: value.to_owned(),
            reason: error.reason,
        })
}

/// The same number on every machine and in every version (FNV-1a).
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = parts.into_iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
