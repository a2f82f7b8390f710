//! [`Source`]: one launcher's word on which rank of how many this process is.

use std::path::{Path, PathBuf};

use unisono_core::Rank;

use super::names::{DEVICES, MLX_RANKS, Variables};
use super::{Hosts, Launcher, Machine};
use crate::env::{EnvironmentError, parse_rank, parse_size};

/// What one variable says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) variable: &'static str,
    pub(super) value: Rank,
    /// How the variable says it.
    pub(super) shown: String,
}

impl Claim {
    pub(super) fn new(variable: &'static str, value: Rank) -> Self {
        let shown = value.to_string();
        Self {
            variable,
            value,
            shown,
        }
    }
}

/// What one launcher says.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) launcher: Launcher,
    /// At least one.
    pub(super) ranks: Vec<Claim>,
    pub(super) sizes: Vec<Claim>,
    /// The variables that may say the size.
    pub(super) size_names: &'static str,
    /// The hostfile, and in it the first address of rank 0.
    pub(super) hostfile: Option<(PathBuf, Option<String>)>,
}

impl Source {
    /// A variable of it that says the rank.
    pub(super) fn variable(&self) -> &'static str {
        self.ranks[0].variable
    }

    /// One of whose variables each says everything.
    fn plain(
        variables: &Variables,
        launcher: Launcher,
        rank: &'static str,
        size: &'static str,
    ) -> Result<Option<Self>, EnvironmentError> {
        let Some(value) = variables.of(rank) else {
            return Ok(None);
        };
        let value = parse_rank(rank, value.to_owned())?;
        let sizes = variables.of(size);
        let sizes = sizes.map(|value| parse_size(size, value.to_owned()));
        Ok(Some(Self {
            launcher,
            ranks: vec![Claim::new(rank, value)],
            sizes: sizes
                .transpose()?
                .map(|value| Claim::new(size, value))
                .into_iter()
                .collect(),
            size_names: size,
            hostfile: None,
        }))
    }

    /// Whether it says that this is that rank of so many.
    fn says(&self, rank: Option<&str>, size: Option<&str>) -> bool {
        let same = |claims: &[Claim], text: Option<&str>| match (claims, text) {
            ([claim], Some(text)) => text.parse() == Ok(claim.value),
            _ => false,
        };
        same(&self.ranks, rank) && same(&self.sizes, size)
    }
}

/// All launchers that say a rank, in the order of [`Launcher`].
pub(super) fn all(
    variables: &Variables,
    machine: &Machine,
) -> Result<Vec<Source>, EnvironmentError> {
    let plain = |launcher, rank, size| Source::plain(variables, launcher, rank, size);
    let sources = [
        mlx(variables, machine)?,
        plain(Launcher::Torchrun, "RANK", "WORLD_SIZE")?,
        plain(
            Launcher::OpenMpi,
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
        )?,
        plain(Launcher::Pmi, "PMI_RANK", "PMI_SIZE")?,
        plain(Launcher::Slurm, "SLURM_PROCID", "SLURM_NTASKS")?,
    ];
    let mut sources: Vec<Source> = sources.into_iter().flatten().collect();
    // Ranks of one launcher often start another one, and everything is inherited.
    let set = |names: &[&str]| names.iter().any(|name| variables.of(name).is_some());
    let started_by = |sources: &[Source], launcher, marks: &[&str]| {
        set(marks) && sources.iter().any(|s| s.launcher == launcher)
    };
    // Agents of torchrun started by srun or mpirun: they repeat what they were told.
    if started_by(&sources, Launcher::Torchrun, &["TORCHELASTIC_RUN_ID"]) {
        let agent = (variables.of("GROUP_RANK"), variables.of("GROUP_WORLD_SIZE"));
        sources.retain(|s| s.launcher <= Launcher::Torchrun || !s.says(agent.0, agent.1));
    }
    // Daemons of mpirun and mpiexec started by srun, or all of it in a batch script.
    if started_by(
        &sources,
        Launcher::OpenMpi,
        &["OMPI_MCA_orte_launch", "PRTE_LAUNCHED"],
    ) {
        sources.retain(|s| s.launcher <= Launcher::OpenMpi);
    }
    if started_by(&sources, Launcher::Pmi, &["MPI_LOCALNRANKS"]) {
        sources.retain(|s| s.launcher <= Launcher::Pmi);
    }
    Ok(sources)
}

fn mlx(variables: &Variables, machine: &Machine) -> Result<Option<Source>, EnvironmentError> {
    let mut ranks = Vec::new();
    for (name, value) in variables.every(MLX_RANKS) {
        ranks.push(Claim::new(name, parse_rank(name, value.to_owned())?));
    }
    if ranks.is_empty() {
        return Ok(None);
    }
    let mut sizes = Vec::new();
    let mut hostfile = None;
    if let Some(text) = variables.of("MLX_HOSTFILE") {
        let hosts = read("MLX_HOSTFILE", text, machine)?;
        sizes.push(listed("MLX_HOSTFILE", text, hosts.size));
        hostfile = Some((PathBuf::from(text), hosts.first));
    }
    let mut matrix: Option<(&'static str, &str, Hosts)> = None;
    for (name, text) in variables.every(DEVICES) {
        let hosts = read(name, text, machine)?;
        sizes.push(listed(name, text, hosts.size));
        match &matrix {
            // Sizes are compared later, with those of others.
            Some((_, _, other)) if *other == hosts || other.size != hosts.size => {}
            Some((first, first_text, _)) => {
                return Err(EnvironmentError::Disagree {
                    first,
                    first_value: (*first_text).to_owned(),
                    second: name,
                    second_value: format!("{text} (another matrix)"),
                });
            }
            None => matrix = Some((name, text, hosts)),
        }
    }
    if let Some(value) = variables.of("MLX_WORLD_SIZE") {
        let size = parse_size("MLX_WORLD_SIZE", value.to_owned())?;
        sizes.push(Claim::new("MLX_WORLD_SIZE", size));
    }
    Ok(Some(Source {
        launcher: Launcher::Mlx,
        ranks,
        sizes,
        size_names: "MLX_HOSTFILE, MLX_IBV_DEVICES, JACCL_IBV_DEVICES or MLX_WORLD_SIZE",
        hostfile,
    }))
}

fn listed(variable: &'static str, path: &str, size: Rank) -> Claim {
    let s = if size == 1 { "" } else { "s" };
    Claim {
        variable,
        value: size,
        shown: format!("{path} ({size} rank{s})"),
    }
}

/// What a file lists.
fn read(variable: &'static str, text: &str, machine: &Machine) -> Result<Hosts, EnvironmentError> {
    let path = Path::new(text);
    let refused = |reason| EnvironmentError::File {
        variable,
        path: path.to_owned(),
        reason,
    };
    let bytes = (machine.read)(path).map_err(|error| refused(error.to_string()))?;
    // For a single rank mlx.launch writes an empty hostfile.
    if variable == "MLX_HOSTFILE" && bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Hosts::new(1));
    }
    (machine.hosts)(&bytes).map_err(refused)
}
