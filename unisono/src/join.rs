//! Groups of processes: who am I, where do we meet, and off we go.

use std::sync::Arc;
use std::time::Duration;

use unisono_contract::SystemHost;
use unisono_control::env::launchers::{Hosts, Machine};
use unisono_control::{Check, Coordinator, Environment, Network, Settings};
use unisono_core::{Rank, Topology};
use unisono_program::Registry;

use crate::{DEFAULT_TIMEOUT, Error, Group, Parts};

/// A group of processes about to be formed: which rank of how many, and where they meet.
///
/// ```no_run
/// use unisono::{Group, Op};
///
/// # fn main() -> Result<(), unisono::Error> {
/// let group = Group::builder().rank(0).size(2).coordinator("192.0.2.1:5000").join()?;
/// let mut x = [1.0f32; 4];
/// group.all_reduce(&mut x, Op::Sum)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `join`"]
pub struct Builder {
    rank: Rank,
    size: Rank,
    coordinator: String,
    job: String,
    timeout: Option<Duration>,
    check: Check,
    iface: Option<String>,
    channels: u16,
    registry: Registry,
}

impl Group {
    /// The group that the environment describes, over TCP: `UNISONO_RANK`, `UNISONO_SIZE` and `UNISONO_COORDINATOR`
    /// (`host:port`, `[v6]:port`, `file:PATH`), as `unisono launch` sets them; and, if set, `UNISONO_JOB`,
    /// `UNISONO_TIMEOUT` (seconds, for joining and for each operation), `UNISONO_CHECK` (`full`), `UNISONO_IFACE`.
    ///
    /// Also what `mlx.launch`, `torchrun`, `mpirun` and `srun` tell their ranks: [`unisono_control::env::launchers`] has the
    /// table. `UNISONO_COORDINATOR` alone says where such ranks meet, if the launcher does not.
    ///
    /// Returns when all ranks are connected to each other.
    ///
    /// # Errors
    /// [`Error::Environment`] naming the variables, [`Error::NotLaunched`] when none is set, [`Error::Join`].
    pub fn from_env() -> Result<Group, Error> {
        let environment = Environment::discover(&Machine::here(hosts))?;
        let settings = Settings::from_environment(&environment).ok_or(Error::NotLaunched)?;
        join(settings, environment.timeout, crate::registry())
    }

    /// A group described by the program itself.
    pub fn builder() -> Builder {
        Builder {
            rank: 0,
            size: 1,
            coordinator: "127.0.0.1:5000".to_owned(),
            job: String::new(),
            timeout: None,
            check: Check::Default,
            iface: None,
            channels: 2,
            registry: crate::registry(),
        }
    }
}

impl Builder {
    /// This process's rank (default 0).
    pub fn rank(mut self, rank: Rank) -> Builder {
        self.rank = rank;
        self
    }

    /// Number of ranks (default 1), equal on all.
    pub fn size(mut self, size: Rank) -> Builder {
        self.size = size;
        self
    }

    /// Where the ranks meet: `host:port` or `[v6]:port`, on which rank 0 listens, or `file:PATH`, which all can reach.
    pub fn coordinator(mut self, coordinator: impl Into<String>) -> Builder {
        self.coordinator = coordinator.into();
        self
    }

    /// A name that keeps groups apart that meet at the same place by mistake.
    pub fn job(mut self, job: impl Into<String>) -> Builder {
        self.job = job.into();
        self
    }

    /// How long joining (default 60 s) and each operation (default 300 s) may take. When joining fails, up to 2 s more pass
    /// until all ranks that came have the same error.
    pub fn timeout(mut self, timeout: Duration) -> Builder {
        self.timeout = Some(timeout);
        self
    }

    /// How thoroughly calls of different ranks are compared. [`Check::Full`] compares before each collective, so that
    /// nothing is touched when ranks disagree; it costs an exchange per call, also when an operation is only started.
    pub fn check(mut self, check: Check) -> Builder {
        self.check = check;
        self
    }

    /// The network interface whose address the others are told (default: the one that reaches the coordinator).
    pub fn iface(mut self, iface: impl Into<String>) -> Builder {
        self.iface = Some(iface.into());
        self
    }

    /// Connections per pair (default and least 2: collectives, point-to-point); more serve
    /// [`Group::with_channels`], which needs one more for each copy after the first.
    pub fn channels(mut self, channels: u16) -> Builder {
        self.channels = channels.max(2);
        self
    }

    /// The algorithms to choose from (default [`crate::registry`]).
    pub fn registry(mut self, registry: Registry) -> Builder {
        self.registry = registry;
        self
    }

    /// Meets the other ranks and connects to each of them, over TCP. While ranks are missing they are named every 3 s, to
    /// the `tracing` subscriber if there is one, else on stderr.
    ///
    /// # Errors
    /// [`Error::Coordinator`] when the text is no address, before anything is opened; [`Error::Join`].
    pub fn join(self) -> Result<Group, Error> {
        let coordinator: Coordinator = self.coordinator.parse()?;
        let mut settings = Settings::new(self.rank, self.size, coordinator);
        settings.job = self.job;
        settings.iface = self.iface;
        settings.channels = self.channels;
        settings.check = self.check;
        if let Some(timeout) = self.timeout {
            settings.timeout = timeout;
        }
        join(settings, self.timeout, self.registry)
    }
}

/// Understands the files that `MLX_HOSTFILE` and `MLX_IBV_DEVICES` name.
fn hosts(text: &[u8]) -> Result<Hosts, String> {
    let cluster = unisono_topology::read(text).map_err(|error| error.to_string())?;
    let mut hosts = Hosts::new(cluster.size());
    let addresses = cluster.host(0).map(|host| &host.addresses);
    let first = addresses.and_then(|addresses| addresses.first());
    hosts.first = first.map(ToString::to_string);
    hosts.devices = cluster.to_json();
    Ok(hosts)
}

fn join(
    mut settings: Settings,
    timeout: Option<Duration>,
    registry: Registry,
) -> Result<Group, Error> {
    let (rank, size, check) = (settings.rank, settings.size, settings.check);
    let here = cores_hash();
    settings.limits = vec![here, !here];
    let (network, endpoint) = Network::start(settings, Arc::new(unisono_tcp::Tcp::new()))?;
    // The smallest of both over all ranks is this rank's only if all ranks have the same.
    let together = network.limits() == [here, !here];
    let host = SystemHost::new(if together { size as usize } else { 1 });
    let endpoints = vec![endpoint];
    let control = Box::new(network);
    let (topology, crowded) = (Topology::full(size), host.is_crowded());
    let parts = Parts::new(rank, topology, endpoints, control, Box::new(host), registry);
    let mut group = Group::assemble(parts.crowded(crowded))?;
    group.timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    group.check = check;
    Ok(group)
}

/// Something that only processes which share their cores agree on: the machine, the cores that this thread may run on, and
/// their number. Ranks that a launcher has bound to cores of their own share none, however many they are. How to wait and
/// which algorithm is best depend on it.
fn cores_hash() -> u64 {
    let machine = std::fs::read("/proc/sys/kernel/random/boot_id")
        .or_else(|_| std::fs::read("/etc/hostname"))
        .unwrap_or_default();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let cores = status.lines().find(|l| l.starts_with("Cpus_allowed:"));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let count = count.to_le_bytes();
    let bytes = machine
        .iter()
        .chain(cores.unwrap_or_default().as_bytes())
        .chain(&count);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
