//! [`Group`]: an ordered set of ranks, and one of them: this one.

use std::sync::Arc;
use std::time::Duration;

use unisono_contract::{Buffer, Endpoint, Host};
use unisono_control::{Check, Control};
use unisono_core::{Collective, Element, Op, Rank, Topology};
use unisono_program::Registry;
use unisono_reduce::UserOperator;
use unisono_select::{Choice, SelectError};

use crate::Error;
use crate::assemble::Parts;
use crate::driver::Shared;
use crate::plans::{Plans, Spec, Tuning};
use crate::state::Core;

/// One rank of a group.
///
/// All ranks must call the same collectives in the same order. Methods take `&self`; several threads may share a group,
/// and their calls are ordered by arrival. A clone is another handle to the same rank, possibly with other settings
/// ([`with_algorithm`](Group::with_algorithm) and the like), not another rank.
///
/// With p ranks, and everything counted in elements:
///
/// | operation | input | output |
/// |---|---|---|
/// | `all_reduce` | n | n |
/// | `reduce_scatter` | p n | n |
/// | `all_gather` | n | p n |
/// | `broadcast`, `reduce` | n | n |
/// | `gather` / `scatter` | n / p n at the root | p n at the root / n |
/// | `all_to_all` | p n | p n |
///
/// ```
/// # use unisono::Op;
/// # std::thread::scope(|s| for group in unisono::inproc(2) { s.spawn(move || {
/// let me = group.rank();
/// let mut everyone = [9; 2];
/// group.all_gather(&[me], &mut everyone)?;
/// assert_eq!(everyone, [0, 1]);
///
/// let mut row = [0.0f32; 3]; // row `me` of the sum of everyone's two rows
/// group.reduce_scatter(&[1.0; 6], &mut row, Op::Sum)?;
/// assert_eq!(row, [2.0; 3]);
///
/// let mut gathered = if me == 1 { vec![0; 2] } else { vec![] };
/// group.gather(&[me + 10], (me == 1).then_some(&mut gathered[..]), 1)?;
///
/// let (peer, mut theirs) = (1 - me, [0]);
/// group.send_recv(&[me], peer, &mut theirs, peer)?;
/// assert_eq!(theirs, [peer]);
/// # Ok::<(), unisono::Error>(()) }); });
/// ```
///
/// Data moves only inside calls on the group: blocking calls, polls of any operation, [`progress`](Group::progress). An
/// idle group uses no CPU.
#[derive(Clone)]
pub struct Group {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tuning: Tuning,
    pub(crate) timeout: Duration,
    pub(crate) check: Check,
}

/// How long an operation may take unless said otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

impl Group {
    /// A group from its parts, every pair of ranks linked. [`assemble`](Group::assemble) has more to choose.
    ///
    /// `endpoints` are this rank's attachments, the preferred one first; `control` carries failures between ranks;
    /// `host` tells the time and sleeps; `registry` holds the algorithms to choose from.
    ///
    /// # Errors
    /// [`Error::Parts`] when `rank` is not below `size`.
    pub fn from_parts(
        rank: Rank,
        size: Rank,
        endpoints: Vec<Box<dyn Endpoint>>,
        control: Box<dyn Control>,
        host: Box<dyn Host>,
        registry: Registry,
    ) -> Result<Group, Error> {
        let topology = Topology::full(size);
        let parts = Parts::new(rank, topology, endpoints, control, host, registry);
        Self::assemble(parts)
    }

    /// A group from its parts, some of which few groups have.
    ///
    /// # Errors
    /// [`Error::Parts`] when `rank` is not a rank of the topology.
    pub fn assemble(parts: Parts) -> Result<Group, Error> {
        let (rank, size) = (parts.rank, parts.topology.size());
        if rank >= size {
            return Err(Error::Parts { rank, size });
        }
        let plans = Plans::new(rank, parts.topology, parts.registry, parts.crowded);
        let core = Core::new(rank, parts.endpoints, parts.control, plans, parts.compute);
        let shared = Shared::new(rank, size, core, parts.host);
        Ok(Group {
            shared: Arc::new(shared),
            tuning: Tuning::default(),
            timeout: DEFAULT_TIMEOUT,
            check: Check::Default,
        })
    }

    /// This rank, `0..size`.
    pub fn rank(&self) -> Rank {
        self.shared.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> Rank {
        self.shared.size
    }

    /// A handle whose calls use this algorithm. Every rank must do the same.
    ///
    /// # Errors
    /// [`Error::Select`], listing the known names. That the algorithm can do a call is found out by the call.
    pub fn with_algorithm(&self, name: &str) -> Result<Group, Error> {
        let found = self.shared.lock().plans.registry().find(name).map(|_| ());
        found.map_err(SelectError::from)?;
        let mut group = self.clone();
        group.tuning.algorithm = Some(name.into());
        Ok(group)
    }

    /// A handle whose calls cut every step into so many segments (0 counts as 1; never more than 65,536, nor than there are
    /// 64-byte lines). Every rank must do the same.
    #[must_use]
    pub fn with_segments(&self, segments: u64) -> Group {
        let mut group = self.clone();
        group.tuning.segments = Some(segments.max(1));
        group
    }

    /// A handle whose calls run so many copies of their algorithm side by side, over disjoint shares of each block (0
    /// counts as 1; at most 256). Every rank must do the same.
    #[must_use]
    pub fn with_channels(&self, channels: u16) -> Group {
        let mut group = self.clone();
        group.tuning.channels = Some(channels.max(1));
        group
    }

    /// A handle whose calls give up after `timeout` (default [`DEFAULT_TIMEOUT`]). That ends the group: a rank that
    /// stops waiting cannot take its part of the operation back.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Group {
        let mut group = self.clone();
        group.timeout = timeout;
        group
    }

    /// A handle whose collectives are compared by all ranks before each starts. Every rank must do the same.
    #[must_use]
    pub fn with_check(&self, check: Check) -> Group {
        let mut group = self.clone();
        group.check = check;
        group
    }

    /// What a call would use, and why; whether the operator exists for the type is the call's to say. `count` is the elements of the vector, or of one row.
    ///
    /// # Errors
    /// [`Error::Select`] when nothing can do it.
    pub fn choice<T: Element>(
        &self,
        collective: Collective,
        count: usize,
        op: Option<Op>,
    ) -> Result<Choice, Error> {
        let spec = Spec {
            collective,
            count: count as u64,
            dtype: T::DTYPE,
            op,
            root: 0,
        };
        self.shared.lock().plans.choose(spec, &self.tuning)
    }

    /// Zeroed memory that transports can move without a copy, aligned to pages.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn alloc<T: Element>(&self, n: usize) -> Result<Buffer<T>, Error> {
        Ok(Buffer::zeroed(n)?)
    }

    /// Registers an operator: `f(acc, x)` makes every `acc[i]` the combination of `acc[i]` and `x[i]`, in this order.
    ///
    /// It must be associative, and must not call the group, which is at work when it runs. Unless it is commutative, only algorithms that keep rank order are used. Every rank must
    /// register the same operators in the same order; the operator is good for this group only.
    ///
    /// # Errors
    /// [`Error::TooManyOperators`].
    pub fn operator<T: Element>(
        &self,
        commutative: bool,
        f: impl Fn(&mut [T], &[T]) + Send + Sync + 'static,
    ) -> Result<Op, Error> {
        let mut core = self.shared.lock();
        let operators = &mut core.plans.operators;
        let operator = u16::try_from(operators.len())
            .ok()
            .and_then(|number| UserOperator::new::<T>(number, commutative, f))
            .ok_or(Error::TooManyOperators { rank: self.rank() })?;
        let op = operator.op();
        operators.push(operator);
        Ok(op)
    }

    /// Moves what can be moved now, without waiting.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn progress(&self) -> Result<(), Error> {
        self.shared.progress()
    }

    /// Waits until everything this rank has started is done, also operations whose handles were dropped; the group
    /// takes no further calls.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn close(self) -> Result<(), Error> {
        self.shared.close(self.timeout)
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("tuning", &self.tuning)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
