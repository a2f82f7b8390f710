//! Names of variables: which are read, which look like a slip of the pen, which are switches.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::Warning;
use crate::env::{CHECK, COORDINATOR, EnvironmentError, IFACE, JOB, RANK, SIZE, TIMEOUT, wrong};

/// Two names of the same rank.
pub(super) const MLX_RANKS: [&str; 2] = ["JACCL_RANK", "MLX_RANK"];
/// Two names of the same coordinator.
pub(super) const MLX_COORDINATORS: [&str; 2] = ["JACCL_COORDINATOR", "MLX_JACCL_COORDINATOR"];
/// Two names of the same matrix.
pub(super) const DEVICES: [&str; 2] = ["JACCL_IBV_DEVICES", "MLX_IBV_DEVICES"];
/// Two names of the same switch.
const RINGS: [&str; 2] = ["JACCL_RING", "MLX_JACCL_RING"];

/// Variables of other launchers that say where a rank belongs: what people write by hand and may misspell.
const FOREIGN: [&str; 22] = [
    MLX_RANKS[0],
    MLX_RANKS[1],
    MLX_COORDINATORS[0],
    MLX_COORDINATORS[1],
    DEVICES[0],
    DEVICES[1],
    RINGS[0],
    RINGS[1],
    "MLX_HOSTFILE",
    "MLX_WORLD_SIZE",
    "NCCL_HOST_IP",
    "NCCL_PORT",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
];

/// What launchers say besides: jobs, machines, who started whom.
const BESIDES: [&str; 27] = [
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "OMPI_MCA_orte_launch",
    "PRTE_LAUNCHED",
    "PMIX_NAMESPACE",
    "PMI_JOBID",
    "PMI_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_STEP_ID",
    "SLURM_STEPID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "SLURM_DISTRIBUTION",
    // Never read, but one letter from one that is.
    "PMIX_RANK",
    "PMIX_SIZE",
    "SLURM_LOCALID",
    "ROLE_RANK",
];

/// Our own; `UNISONO_TUNE` is read elsewhere.
const OWN: [&str; 8] = [
    RANK,
    SIZE,
    COORDINATOR,
    JOB,
    TIMEOUT,
    CHECK,
    IFACE,
    "UNISONO_TUNE",
];

/// Every variable of other launchers that may change which rank of which group a process is. Who starts ranks by
/// `UNISONO_*` from within another launcher's job takes these away from them.
pub fn variables() -> impl Iterator<Item = &'static str> {
    FOREIGN.into_iter().chain(BESIDES)
}

/// The variables that are read, and nothing else.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<&'static str, String>);

impl Variables {
    pub(super) fn new(all: &[(OsString, OsString)]) -> Result<Self, EnvironmentError> {
        let mut values = BTreeMap::new();
        for (name, value) in all {
            if let Some(variable) = variables().find(|known| name == known) {
                let value = value.to_str();
                let value = value.ok_or(EnvironmentError::Encoding { variable })?;
                values.insert(variable, value.to_owned());
            }
        }
        Ok(Self(values))
    }

    /// The value of a variable, if it is set.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Those of these that are set.
    pub(super) fn every<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> impl Iterator<Item = (&'static str, &str)> {
        let set = move |name| self.of(name).map(|value| (name, value));
        names.into_iter().filter_map(set)
    }

    /// The first of these that is set.
    pub(super) fn first<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Option<(&'static str, &str)> {
        self.every(names).next()
    }

    /// The same, where all that are set must have the same value.
    pub(super) fn alike<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<Option<(&'static str, &str)>, EnvironmentError> {
        let mut set = self.every(names);
        let first = set.next();
        if let Some((first, one)) = first
            && let Some((second, other)) = set.find(|(_, other)| *other != one)
        {
            return Err(EnvironmentError::Disagree {
                first,
                first_value: one.to_owned(),
                second,
                second_value: other.to_owned(),
            });
        }
        Ok(first)
    }
}

/// Whether rings are preferred, if anything says so.
pub(super) fn prefer_ring(variables: &Variables) -> Result<Option<bool>, EnvironmentError> {
    let mut first: Option<(&'static str, &str, bool)> = None;
    for (name, value) in variables.every(RINGS) {
        let on = switch(name, value)?;
        match first {
            Some((first, first_value, was)) if was != on => {
                return Err(EnvironmentError::Disagree {
                    first,
                    first_value: format!("{first_value:?}"),
                    second: name,
                    second_value: format!("{value:?}"),
                });
            }
            Some(_) => {}
            None => first = Some((name, value, on)),
        }
    }
    Ok(first.map(|(_, _, on)| on))
}

fn switch(variable: &'static str, value: &str) -> Result<bool, EnvironmentError> {
    match value {
        "" | "0" | "false" | "off" | "no" => Ok(false),
        "1" | "true" | "on" | "yes" => Ok(true),
        _ => {
            let expected = "1, true, on or yes, or else 0, false, off, no or nothing";
            Err(wrong(variable, value.to_owned(), expected))
        }
    }
}

/// Variables that nobody reads, one letter from one that is read.
pub(super) fn misspelled(all: &[(OsString, OsString)]) -> Vec<Warning> {
    let mut found: Vec<Warning> = all
        .iter()
        .filter_map(|(name, _)| name.to_str())
        .filter(|name| !OWN.contains(name) && !variables().any(|known| known == *name))
        .filter_map(|name| {
            let mut written = OWN.into_iter().chain(FOREIGN);
            let known = written.find(|known| one_off(name, known))?;
            let found = name.to_owned();
            Some(Warning::Name { found, known })
        })
        .collect();
    // The order of variables means nothing.
    found.sort_by_key(ToString::to_string);
    found
}

/// Whether one letter is missing, too many, another, or has changed places with the next.
fn one_off(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([_, a @ ..], []) | ([], [_, a @ ..]) => a.is_empty(),
        ([x, a @ ..], [y, b @ ..]) => {
            let swapped =
                matches!((a, b), ([p, a @ ..], [q, b @ ..]) if p == y && q == x && a == b);
            a == b || [*x].iter().chain(a).eq(b) || [*y].iter().chain(b).eq(a) || swapped
        }
        ([], []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<(OsString, OsString)> {
        all.iter().map(|name| (name.into(), "1".into())).collect()
    }

    #[test]
    fn one_letter_missing_added_changed_or_swapped_is_one_off() {
        for name in [
            "MLX_RAK",
            "LX_RANK",
            "MLX_RAN",
            "MLX_RANKS",
            "_MLX_RANK",
            "MLXX_RANK",
            "MLX_RANG",
            "NLX_RANK",
            "MXL_RANK",
            "MLX_RAKN",
            "MLX_ARNK",
        ] {
            assert!(one_off(name, "MLX_RANK"), "{name}");
            assert!(one_off("MLX_RANK", name), "{name}");
        }
        for name in [
            "MLX_RANK",
            "MLX_",
            "",
            "MLX_SIZE",
            "MLX_RNAKS",
            "LMX_RAKN",
            "KNAR_XLM",
        ] {
            assert!(!one_off(name, "MLX_RANK"), "{name}");
            assert!(!one_off("MLX_RANK", name), "{name}");
        }
    }

    #[test]
    fn a_misspelled_name_is_warned_about_and_known_names_are_not() {
        let warnings = misspelled(&names(&["PATH", "UNISONO_RNAK", "MLX_HOSTFILES"]));
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "MLX_HOSTFILES is no variable that is read; is MLX_HOSTFILE meant?",
                "UNISONO_RNAK is no variable that is read; is UNISONO_RANK meant?",
            ]
        );
        let known: Vec<&str> = OWN.into_iter().chain(variables()).collect();
        assert_eq!(misspelled(&names(&known)), []);
    }

    #[test]
    fn switches_have_nine_values_and_no_others() {
        for name in RINGS {
            for off in ["", "0", "false", "off", "no"] {
                assert_eq!(switch(name, off), Ok(false), "{off}");
            }
            for on in ["1", "true", "on", "yes"] {
                assert_eq!(switch(name, on), Ok(true), "{on}");
            }
            for neither in ["2", "TRUE", "y", " 1", "enable", "-1", "00"] {
                let text = switch(name, neither).unwrap_err().to_string();
                assert!(
                    text.starts_with(&format!("{name} is {neither:?}")),
                    "{text}"
                );
            }
        }
    }
}
