//! [`Network`]: the control plane between processes, a star of TCP connections through rank 0.
//!
//! [`Network::start`] forms the group: it meets the other ranks, carries their cards, has the transport connect, and
//! returns when all links of all ranks stand. From then on one thread per group, asleep most of the time, says every
//! half second that this rank lives, carries the first cause of a failure to everybody, and tells rank 0 of operations that
//! this rank waits for in vain. Data never passes here.
//!
//! ```no_run
//! use std::sync::Arc;
//! use unisono_control::{Environment, Network, Settings};
//! # fn start(transport: Arc<dyn unisono_contract::transport::Transport>) -> Result<(), Box<dyn std::error::Error>> {
//!
//! let environment = Environment::read()?;
//! if let Some(settings) = Settings::from_environment(&environment) {
//!     let (network, endpoint) = Network::start(settings, transport)?;
//!     // Group::from_parts(.., vec![endpoint], Box::new(network), ..)
//!     # let _ = (network, endpoint);
//! }
//! # Ok(()) }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `roster` | rank 0's list of who has come, without sockets |
//! | `life` | who lives, who left, which failure was the first, without sockets |
//! | `hub`, `spoke` | forming the group as rank 0, as another rank |
//! | `door`, `link`, `file`, `place`, `watch` | sockets, connections, the file, addresses, descriptors |
//! | `thread` | the control thread of a group that stands |

mod door;
mod file;
mod hub;
mod life;
mod link;
mod place;
mod roster;
mod spoke;
mod thread;
mod watch;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc as std_mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use unisono_contract::descriptor::Source;
use unisono_contract::transport::Transport;
use unisono_contract::{Endpoint, Event};
use unisono_core::Rank;

use self::link::{FAREWELL, Inbox, Link};
use self::roster::LinkId;
use self::thread::Command;
use crate::address::Coordinator;
use crate::env::{Check, Environment, JOB_LIMIT};
use crate::refusal::JoinError;
use crate::wire::{Hello, Terms};
use crate::{Cause, Control, Kind, Stalled};

/// How long a rendezvous may take unless said otherwise.
pub const DEFAULT_JOIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Ranks that a group over a network may have: rank 0 keeps a seat for each.
const SIZE_LIMIT: Rank = 65_536;

/// How often whoever is waited for is named.
const NOTICE: Duration = Duration::from_secs(3);

/// How long to wait for a cause before a closed link is blamed on the peer behind it.
const GRACE: Duration = Duration::from_millis(200);

/// Which rank of which group this is, and how the group is found.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This rank. One that is not below `size` is refused by rank 0, so that all hear of it.
    pub rank: Rank,
    /// Number of ranks, at least 1, equal on all.
    pub size: Rank,
    /// Where the ranks meet.
    pub coordinator: Coordinator,
    /// A name that all ranks of the group have; keeps groups apart that meet at the same place by mistake.
    pub job: String,
    /// How long forming the group may take.
    pub timeout: Duration,
    /// The network interface whose address peers are told; `None`: the one that reached the coordinator.
    pub iface: Option<String>,
    /// FIFOs per peer that the transport opens, at least 2, equal on all ranks.
    pub channels: u16,
    /// How calls are compared, equal on all ranks.
    pub check: Check,
    /// Features that this rank has, one bit each: see [`Network::features`].
    pub features: u64,
    /// At most 16 limits, by a position that the user of this crate chooses: see [`Network::limits`].
    pub limits: Vec<u64>,
}

impl Settings {
    /// Rank `rank` of `size` that meet at `coordinator`; no job, 60 s, two channels.
    pub fn new(rank: Rank, size: Rank, coordinator: Coordinator) -> Self {
        Self {
            rank,
            size,
            coordinator,
            job: String::new(),
            timeout: DEFAULT_JOIN_TIMEOUT,
            iface: None,
            channels: 2,
            check: Check::Default,
            features: 0,
            limits: Vec::new(),
        }
    }

    /// What the environment says; `None` when it names no rank.
    pub fn from_environment(environment: &Environment) -> Option<Self> {
        let place = environment.place.clone()?;
        Some(Self {
            job: environment.job.clone().unwrap_or_default(),
            timeout: environment.timeout.unwrap_or(DEFAULT_JOIN_TIMEOUT),
            iface: environment.iface.clone(),
            check: environment.check.unwrap_or_default(),
            ..Self::new(place.rank, place.size, place.coordinator)
        })
    }

    fn validate(&self) -> Result<(), JoinError> {
        let reason = if self.size == 0 {
            "a group has at least one rank"
        } else if self.size > SIZE_LIMIT {
            "a group has at most 65536 ranks"
        } else if self.channels < 2 {
            "a group has at least two channels"
        } else if self.job.len() > JOB_LIMIT || self.job.chars().any(char::is_control) {
            "a job id has at most 256 bytes and no control characters"
        } else if self.limits.len() > 16 {
            "there are at most 16 limits"
        } else {
            return Ok(());
        };
        Err(JoinError::Settings {
            rank: self.rank,
            reason: reason.to_owned(),
        })
    }

    fn hello(
        &self,
        transport: &dyn Transport,
        instance: u64,
        ticket: u64,
        patience: Duration,
    ) -> Hello {
        let check = match self.check {
            Check::Default => "default",
            Check::Full => "full",
        };
        Hello {
            terms: Terms {
                size: self.size,
                job: self.job.clone(),
                transport: transport.name().to_owned(),
                channels: self.channels,
                check: check.to_owned(),
                big_endian: cfg!(target_endian = "big"),
            },
            instance,
            ticket,
            patience: millis(patience),
            features: self.features,
            limits: self.limits.clone(),
        }
    }
}

/// The control plane of one rank among processes. Dropping it leaves the group, which is no failure.
#[derive(Debug)]
pub struct Network {
    rank: Rank,
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
    nonce: u64,
    features: u64,
    limits: Vec<u64>,
}

/// What the control thread and its group share.
#[derive(Debug, Default)]
struct Shared {
    failed: AtomicBool,
    cause: OnceLock<Cause>,
    event: Event,
}

/// A group that stands.
struct Joined {
    endpoint: Box<dyn Endpoint>,
    links: BTreeMap<Rank, (LinkId, Link)>,
    inbox: Inbox,
    tasks: JoinSet<()>,
    nonce: u64,
    features: u64,
    limits: Vec<u64>,
}

impl Network {
    /// Forms the group; returns when all links of all ranks stand. Blocks, at most for [`Settings::timeout`] and two
    /// seconds.
    ///
    /// # Errors
    /// [`JoinError`]; [`JoinError::Refused`] is the same on every rank that came.
    pub fn start(
        settings: Settings,
        transport: Arc<dyn Transport>,
    ) -> Result<(Self, Box<dyn Endpoint>), JoinError> {
        settings.validate()?;
        let rank = settings.rank;
        let no_thread = |error: std::io::Error| JoinError::Thread {
            rank,
            error: Arc::new(error),
        };
        let shared = Arc::new(Shared::default());
        let (commands, orders) = mpsc::unbounded_channel();
        let (result, formed) = std_mpsc::sync_channel(1);
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("unisono-ctl-{rank}"))
            .spawn(move || control(settings, transport, &theirs, orders, &result))
            .map_err(no_thread)?;
        let result = formed.recv().unwrap_or_else(|_| {
            let died = std::io::Error::other("it panicked");
            Err(no_thread(died))
        });
        match result {
            Ok((endpoint, nonce, features, limits)) => {
                let network = Self {
                    rank,
                    shared,
                    commands,
                    thread: Some(thread),
                    nonce,
                    features,
                    limits,
                };
                Ok((network, endpoint))
            }
            Err(error) => {
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// A number that all ranks of this group have, and no other group.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The features that all ranks have.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The smallest of all ranks, for each of [`Settings::limits`].
    pub fn limits(&self) -> &[u64] {
        &self.limits
    }

    /// Closes all connections without a word, as a killed process does: for tests of failure.
    #[doc(hidden)]
    pub fn vanish(self) {
        let _ = self.commands.send(Command::Vanish);
    }

    fn order(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }
}

type Formed = (Box<dyn Endpoint>, u64, u64, Vec<u64>);

/// What the control thread does, from the first to the last.
fn control(
    settings: Settings,
    transport: Arc<dyn Transport>,
    shared: &Shared,
    orders: mpsc::UnboundedReceiver<Command>,
    result: &std_mpsc::SyncSender<Result<Formed, JoinError>>,
) {
    let rank = settings.rank;
    let mut builder = Builder::new_current_thread();
    // Only names are looked up by further threads, and those are not kept.
    builder
        .enable_all()
        .thread_keep_alive(Duration::from_millis(1));
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = Arc::new(error);
            let _ = result.send(Err(JoinError::Thread { rank, error }));
            return;
        }
    };
    runtime.block_on(async {
        let began = Instant::now();
        let joined = if rank == 0 {
            hub::join(&settings, transport, began).await
        } else {
            spoke::join(&settings, transport, began).await
        };
        match joined {
            Err(error) => {
                let _ = result.send(Err(error));
            }
            Ok(Joined {
                endpoint,
                links,
                inbox,
                tasks,
                nonce,
                features,
                limits,
            }) => {
                if result.send(Ok((endpoint, nonce, features, limits))).is_ok() {
                    thread::live(rank, links, inbox, tasks, orders, shared).await;
                }
            }
        }
    });
    // A look-up that hangs must not hold the group.
    runtime.shutdown_background();
}

impl Shared {
    fn fail(&self, cause: Cause) {
        if self.cause.set(cause).is_ok() {
            // Release: who sees the flag sees the cause.
            self.failed.store(true, Ordering::Release);
            self.event.notify();
        }
    }

    fn cause(&self) -> Option<&Cause> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.cause.get()
    }
}

impl Control for Network {
    /// Waits until rank 0 has said which cause was the first, at most for [`grace`](Control::grace).
    fn abort(&self, cause: Cause) {
        if self.shared.cause().is_some() {
            return;
        }
        let until = Instant::now() + GRACE;
        if self.order(Command::Abort(cause.clone())) {
            loop {
                let key = self.shared.event.listen();
                let left = until.saturating_duration_since(Instant::now());
                if self.shared.cause().is_some() {
                    return;
                }
                if left.is_zero() {
                    break;
                }
                self.shared.event.wait(key, Some(left));
            }
        }
        self.shared.fail(cause);
    }

    fn aborted(&self) -> Option<Cause> {
        self.shared.cause().cloned()
    }

    fn stalled(&self, report: Stalled) {
        self.order(Command::Stalled(report));
    }

    fn event(&self) -> &Event {
        &self.shared.event
    }

    fn grace(&self) -> Duration {
        GRACE
    }

    fn wake_after(&self, delay: Duration, event: &Event) {
        let at = hub::later(Instant::now(), delay);
        if !self.order(Command::Wake(at, event.clone())) {
            event.notify();
        }
    }

    fn watch(&self, sources: &[Source], event: &Event) {
        if !self.order(Command::Watch(sources.to_vec(), event.clone())) {
            event.notify();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The others would wait for a rank that does not come back.
            let cause = Cause::new(self.rank, None, Kind::Panicked);
            self.order(Command::Abort(cause));
        }
        self.order(Command::Leave);
        if let Some(thread) = self.thread.take() {
            // The last handle may go in a waker that the control thread itself has called.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// Lets connections say their last words, for a short time.
async fn farewell(tasks: &mut JoinSet<()>, inbox: &mut Inbox) {
    let all = async {
        loop {
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { break },
                Some(_) = inbox.recv() => {}
            }
        }
    };
    let _ = timeout(FAREWELL + FAREWELL / 4, all).await;
}

/// Tells whoever has started this process.
fn notice(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!(target: "unisono", "{text}");
    } else {
        eprintln!("unisono: {text}");
    }
}

/// A number that nobody else has: never 0.
fn random() -> u64 {
    // Keyed from the operating system's randomness.
    let number = RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    number.max(1)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
