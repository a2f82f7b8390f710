//! [`Cluster`]: ranks, links and what befalls them; runs programs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use unisono::parts::{Endpoint, PhantomSpace};
use unisono::{Group, Parts, Registry};
use unisono_core::{Rank, Topology};
use unisono_evaluator::LinkLoad;

use crate::baton;
use crate::compute::SimCompute;
use crate::control::SimControl;
use crate::endpoint::{SimEndpoint, SimHost};
use crate::error::{SetupError, SimError};
use crate::executor::{self, Run, Stop};
use crate::fault::Fault;
use crate::network::Network;
use crate::phantom::Phantoms;
use crate::report::{Outcome, RankReport, Report};
use crate::world::{Settings, Shared, Unposted, World};

/// A simulated cluster: a description that can be run any number of times.
///
/// ```
/// use unisono_sim::{Cluster, Network, Op, owned};
///
/// let cluster = Cluster::mesh(4).network(Network::uniform(5_000, 5_000_000_000));
/// let outcome = cluster.run(|group| async move {
///     let x = vec![f64::from(group.rank()); 1000];
///     group.start(owned::all_reduce(x, Op::Sum)).await
/// });
/// let (results, report) = outcome.into_result()?;
/// assert!(results.iter().all(|x| x.as_ref().unwrap()[999] == 6.0));
/// assert!(report.virtual_us() > 5.0);
/// # Ok::<(), unisono_sim::SimError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a cluster does nothing until it runs"]
pub struct Cluster {
    topology: Arc<Topology>,
    registry: Registry,
    settings: Settings,
}

impl Cluster {
    /// Ranks and links as in `topology`, over the [default network](Network::default).
    pub fn from_topology(topology: Topology) -> Cluster {
        Cluster {
            topology: Arc::new(topology),
            registry: unisono::registry(),
            settings: Settings {
                network: Network::default(),
                seed: 0,
                jitter: 0.0,
                unposted: Unposted::default(),
                faults: Vec::new(),
                detection_ps: 1_000_000_000,
                propagation_ps: 50_000_000,
                wait_for_deadlines: false,
                record: false,
                turn_limit: Duration::from_secs(60),
            },
        }
    }

    /// A link between every pair of `ranks`.
    pub fn mesh(ranks: Rank) -> Cluster {
        Cluster::from_topology(Topology::full(ranks))
    }

    /// What links and cores cost.
    pub fn network(mut self, network: Network) -> Cluster {
        self.settings.network = network;
        self
    }

    /// The algorithms to choose from, instead of those that come with the library.
    pub fn registry(mut self, registry: Registry) -> Cluster {
        self.registry = registry;
        self
    }

    /// Where all randomness comes from.
    pub fn seed(mut self, seed: u64) -> Cluster {
        self.settings.seed = seed;
        self
    }

    /// Latency and transfer of each message are longer by a random share, uniform from 0 to `share`.
    pub fn jitter(mut self, share: f64) -> Cluster {
        self.settings.jitter = share.max(0.0);
        self
    }

    /// Something goes wrong. Faults add up.
    pub fn fault(mut self, fault: Fault) -> Cluster {
        self.settings.faults.push(fault);
        self
    }

    /// What becomes of messages for which no receive is posted.
    pub fn unposted(mut self, unposted: Unposted) -> Cluster {
        self.settings.unposted = unposted;
        self
    }

    /// How long the control plane takes to notice that a rank or link is gone (default 1 ms).
    pub fn detection(mut self, time: Duration) -> Cluster {
        self.settings.detection_ps = picoseconds(time);
        self
    }

    /// How long a failure takes to reach the other ranks (default 50 us).
    pub fn propagation(mut self, time: Duration) -> Cluster {
        self.settings.propagation_ps = picoseconds(time);
        self
    }

    /// Lets time pass until deadlines end what nothing else can end, instead of calling it a deadlock at once.
    pub fn wait_for_deadlines(mut self) -> Cluster {
        self.settings.wait_for_deadlines = true;
        self
    }

    /// How long the thread of a rank may run between two calls of its group, in real time (default 60 s): longer than
    /// that it is taken to wait for something outside, and the run ends with [`SimError::Held`].
    ///
    /// Only for [`run_blocking`](Cluster::run_blocking). No run that ends otherwise depends on it.
    pub fn turn_limit(mut self, time: Duration) -> Cluster {
        self.settings.turn_limit = time;
        self
    }

    /// Keeps what happened when, for traces and pictures.
    pub fn record(mut self) -> Cluster {
        self.settings.record = true;
        self
    }

    /// Ranks and links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What links and cores cost.
    pub fn costs(&self) -> &Network {
        &self.settings.network
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs `program` on every rank, as tasks of this thread.
    ///
    /// Only operations of groups may be awaited. A call that blocks fails, unless it need not wait.
    pub fn run<F, Fut>(&self, program: F) -> Outcome<Fut::Output>
    where
        F: Fn(Group) -> Fut,
        Fut: Future,
    {
        self.run_tasks(1, |groups, _| program(only(groups)))
    }

    /// Runs `program` on every rank with so many groups of all ranks, which share links and cores.
    pub fn run_groups<F, Fut>(&self, groups: u32, program: F) -> Outcome<Fut::Output>
    where
        F: Fn(Vec<Group>) -> Fut,
        Fut: Future,
    {
        self.run_tasks(groups, |groups, _| program(groups))
    }

    /// Runs `program` on every rank, beside phantom memory for [`Group::start_pieces`].
    pub fn run_phantom<F, Fut>(&self, program: F) -> Outcome<Fut::Output>
    where
        F: Fn(Group, Phantoms) -> Fut,
        Fut: Future,
    {
        self.run_tasks(1, |groups, phantoms| program(only(groups), phantoms))
    }

    /// Runs `program` on a thread per rank, of which one runs at a time: for code that blocks.
    ///
    /// A thread may wait in calls of its group only. One that waits for something else keeps its turn from all others,
    /// which ends the run with [`SimError::Held`] after the [limit](Cluster::turn_limit).
    pub fn run_blocking<F, T>(&self, program: F) -> Outcome<T>
    where
        F: Fn(Group) -> T + Send + Sync,
        T: Send,
    {
        let world = match self.world(1) {
            Ok(world) => world,
            Err(error) => return unborn(error),
        };
        let (mut run, groups, _) = world;
        let results = baton::run(&mut run, groups, |groups| program(only(groups)));
        finished(run, results)
    }

    fn run_tasks<F, Fut>(&self, groups: u32, program: F) -> Outcome<Fut::Output>
    where
        F: Fn(Vec<Group>, Phantoms) -> Fut,
        Fut: Future,
    {
        let (mut run, groups, phantoms) = match self.world(groups) {
            Ok(world) => world,
            Err(error) => return unborn(error),
        };
        let futures = groups.into_iter().map(|g| program(g, phantoms.clone()));
        let futures = futures.collect();
        let results = executor::run(&mut run, futures);
        finished(run, results)
    }

    /// A new world, and its groups by rank.
    fn world(&self, count: u32) -> Result<(Run, Vec<Vec<Group>>, Phantoms), SetupError> {
        let size = self.topology.size();
        if size == 0 {
            return Err(SetupError::NoRanks);
        }
        for fault in &self.settings.faults {
            fault.check(&self.topology)?;
        }
        let shared = Shared::new(size, count, self.settings.clone());
        let space = PhantomSpace::new();
        let mut groups = Vec::new();
        for rank in 0..size {
            let mine = (0..count).map(|group| self.group(&shared, &space, group, rank));
            groups.push(mine.collect::<Result<_, _>>()?);
        }
        let phantoms = Phantoms::new(Arc::clone(&shared), space, self.settings.seed);
        let run = Run { shared, stop: None };
        Ok((run, groups, phantoms))
    }

    fn group(
        &self,
        shared: &Arc<Shared>,
        space: &PhantomSpace,
        group: u32,
        rank: Rank,
    ) -> Result<Group, SetupError> {
        let seat = shared.lock().seat(group, rank);
        let topology = Arc::clone(&self.topology);
        let endpoint = SimEndpoint::new(Arc::clone(shared), topology, group, rank);
        let endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(endpoint)];
        let control = SimControl {
            shared: Arc::clone(shared),
            group,
            rank,
            seat,
        };
        let host = SimHost {
            shared: Arc::clone(shared),
            group,
            rank,
        };
        let compute = SimCompute {
            shared: Arc::clone(shared),
            rank,
            space: space.clone(),
        };
        let parts = Parts::new(
            rank,
            (*self.topology).clone(),
            endpoints,
            Box::new(control),
            Box::new(host),
            self.registry.clone(),
        );
        let assembled = Group::assemble(parts.compute(Box::new(compute)));
        assembled.map_err(|error| SetupError::Group {
            rank,
            text: error.to_string(),
        })
    }
}

fn only(mut groups: Vec<Group>) -> Group {
    match groups.pop() {
        Some(group) => group,
        None => unreachable!("every run has a group"),
    }
}

fn unborn<T>(error: SetupError) -> Outcome<T> {
    Outcome {
        results: Vec::new(),
        report: Report::failed(error.into()),
    }
}

fn finished<T>(run: Run, mut results: Vec<Option<T>>) -> Outcome<T> {
    let mut world = run.shared.lock();
    for (result, rank) in results.iter_mut().zip(&world.ranks) {
        if rank.dead.is_some() {
            *result = None; // a rank that has crashed returns nothing
        }
    }
    let report = report(&mut world, run.stop);
    Outcome { results, report }
}

fn report(world: &mut World, stop: Option<Stop>) -> Report {
    let ranks: Vec<RankReport> = (0..)
        .zip(&world.ranks)
        .map(|(rank, state)| RankReport {
            rank,
            finished_ps: state.finished.filter(|_| state.dead.is_none()),
            crashed_ps: state.dead,
        })
        .collect();
    let opened = world.link_index.values().map(|&i| &world.links[i as usize]);
    let used = opened.filter(|link| link.messages > 0);
    let links: Vec<LinkLoad> = used
        .map(|link| LinkLoad {
            from: link.from,
            to: link.to,
            bytes: link.bytes,
            messages: link.messages,
            busy_ps: link.busy_ps,
        })
        .collect();
    let stop = stop.map(|stop| match stop {
        Stop::Panicked { rank, message } => SimError::Panicked { rank, message },
    });
    let blocked = world.blocked.map(|rank| SimError::Blocking { rank });
    let failed = world.causes.iter().flatten().next().cloned();
    let error = stop
        .or(blocked)
        .or_else(|| world.stuck.clone())
        .or_else(|| failed.map(SimError::Failed));
    Report {
        total_ps: ranks
            .iter()
            .filter_map(|r| r.finished_ps)
            .max()
            .unwrap_or(0),
        ranks,
        bottleneck: links.iter().rev().max_by_key(|l| l.busy_ps).copied(),
        messages: links.iter().map(|l| l.messages).sum(),
        links,
        lost: world.lost,
        events: world.events,
        trace_hash: world.hash(),
        error,
        records: std::mem::take(&mut world.records),
    }
}

fn picoseconds(time: Duration) -> u64 {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_mul(1000)
}
