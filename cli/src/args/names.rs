//! Names: one, several, or `all`. An unknown one lists those that are known.

use std::fmt;
use std::str::FromStr;

use unisono_core::{Collective, Rank, UnknownName};

use crate::catalogue;

/// A comma separated list of names, or everything there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    /// Whatever is possible; what is not is skipped.
    All,
    /// These, and what is not possible is refused.
    Named(Vec<T>),
}

impl<T: FromStr> FromStr for Choice<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Choice<T>, T::Err> {
        if text == "all" {
            return Ok(Choice::All);
        }
        let names: Result<Vec<T>, T::Err> = text.split(',').map(str::parse).collect();
        names.map(Choice::Named)
    }
}

impl<T: Clone> Choice<T> {
    /// The names, or `all` of them.
    pub(crate) fn or(&self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        match self {
            Choice::All => all.into_iter().collect(),
            Choice::Named(names) => names.clone(),
        }
    }

    /// Whether names were given.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self, Choice::Named(_))
    }
}

/// The name of a registered algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AlgorithmName(pub(crate) String);

impl FromStr for AlgorithmName {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<AlgorithmName, UnknownName> {
        catalogue::known(name).map(AlgorithmName)
    }
}

/// The names of all algorithms.
pub(crate) fn every_algorithm() -> Vec<AlgorithmName> {
    let names = catalogue::algorithms().names();
    names.map(|n| AlgorithmName(n.to_owned())).collect()
}

/// How bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Between processes.
    Tcp,
    /// Between threads of this process.
    Inproc,
    /// A name that is known, but not built yet.
    Later(&'static str),
}

impl FromStr for Transport {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Transport, UnknownName> {
        const KNOWN: [&str; 5] = ["tcp", "inproc", "rdma", "sim", "shm"];
        match KNOWN.into_iter().find(|&known| known == name) {
            Some("tcp") => Ok(Transport::Tcp),
            Some("inproc") => Ok(Transport::Inproc),
            Some(later) => Ok(Transport::Later(later)),
            None => Err(UnknownName::new("transport", name, KNOWN)),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Tcp => "tcp",
            Transport::Inproc => "inproc",
            Transport::Later(name) => name,
        })
    }
}

/// What can be measured: the collectives, and messages around a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A collective.
    Collective(Collective),
    /// Every rank sends to the next one and receives from the one before it.
    SendRecv,
}

impl Operation {
    /// Whether one rank plays a special part.
    pub(crate) fn is_rooted(self) -> bool {
        matches!(self, Operation::Collective(c) if c.is_rooted())
    }

    /// Whether elements are combined.
    pub(crate) fn reduces(self) -> bool {
        matches!(self, Operation::Collective(c) if c.reduces())
    }

    /// Whether no data move.
    pub(crate) fn is_barrier(self) -> bool {
        self == Operation::Collective(Collective::Barrier)
    }

    /// The larger buffer holds one row per rank.
    pub(crate) fn has_rows(self) -> bool {
        use Collective as C;
        matches!(
            self,
            Operation::Collective(
                C::ReduceScatter | C::AllGather | C::Gather | C::Scatter | C::AllToAll
            )
        )
    }

    /// Bus bandwidth per algorithm bandwidth: what the busiest link carries in the best case, as nccl-tests has it.
    pub(crate) fn bus_factor(self, ranks: Rank) -> f64 {
        use Collective as C;
        let p = f64::from(ranks);
        match self {
            Operation::Collective(C::AllReduce) => 2.0 * (p - 1.0) / p,
            Operation::Collective(C::Barrier) => 0.0,
            _ if self.has_rows() => (p - 1.0) / p,
            _ => 1.0,
        }
    }
}

impl FromStr for Operation {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Operation, UnknownName> {
        const SEND_RECV: &str = "send_recv";
        if name == SEND_RECV {
            return Ok(Operation::SendRecv);
        }
        name.parse().map(Operation::Collective).map_err(|_| {
            let collectives = Collective::ALL.iter().map(|c| c.name());
            UnknownName::new("operation", name, collectives.chain([SEND_RECV]))
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Collective(c) => f.pad(c.name()),
            Operation::SendRecv => f.pad("send_recv"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let factor = |name: &str| name.parse::<Operation>().unwrap().bus_factor(4);
        assert_eq!(factor("all_reduce"), 1.5);
        for rows in [
            "reduce_scatter",
            "all_gather",
            "gather",
            "scatter",
            "all_to_all",
        ] {
            assert_eq!(factor(rows), 0.75, "{rows}");
        }
        for whole in ["broadcast", "reduce", "send_recv"] {
            assert_eq!(factor(whole), 1.0, "{whole}");
        }
        assert_eq!(factor("barrier"), 0.0);
    }

    #[test]
    fn unknown_names_list_the_known() {
        let unknown = "quic".parse::<Transport>().unwrap_err().to_string();
        assert!(
            unknown.ends_with("known: tcp, inproc, rdma, sim, shm"),
            "{unknown}"
        );
        let unknown = "sum_all".parse::<Operation>().unwrap_err().to_string();
        assert!(unknown.contains("all_reduce") && unknown.contains("send_recv"));
    }
}
