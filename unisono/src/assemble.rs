//! [`Parts`]: what a group is made of.

use unisono_contract::{Endpoint, Host};
use unisono_control::Control;
use unisono_core::{Rank, Topology};
use unisono_engine::Compute;
use unisono_program::Registry;

/// The parts of a group, for [`Group::assemble`](crate::Group::assemble).
///
/// ```
/// use unisono::{Group, Op, Parts, parts};
///
/// // A world of one needs no endpoint.
/// let control = parts::in_process(vec![parts::Event::new()]).pop().unwrap();
/// let host = Box::new(parts::SystemHost::new(1));
/// let topology = parts::Topology::full(1);
/// let parts = Parts::new(0, topology, vec![], Box::new(control), host, unisono::registry())
///     .compute(Box::new(parts::Direct));
/// let mut x = [2.0f32; 3];
/// Group::assemble(parts)?.all_reduce(&mut x, Op::Sum)?;
/// assert_eq!(x, [2.0; 3]);
/// # Ok::<(), unisono::Error>(())
/// ```
#[non_exhaustive]
#[must_use = "parts do nothing until Group::assemble"]
pub struct Parts {
    /// This rank.
    pub rank: Rank,
    /// Which ranks are linked: only algorithms that use no other links are chosen.
    pub topology: Topology,
    /// This rank's attachments, the preferred one first.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// Carries failures between ranks.
    pub control: Box<dyn Control>,
    /// Tells the time and sleeps.
    pub host: Box<dyn Host>,
    /// The algorithms to choose from.
    pub registry: Registry,
    /// Does the copies and reductions; `None`: the engine, at once.
    pub compute: Option<Box<dyn Compute>>,
    /// Ranks share cores, which matters for the choice of algorithms; every rank must say the same.
    pub crowded: bool,
}

impl Parts {
    /// What every group has.
    pub fn new(
        rank: Rank,
        topology: Topology,
        endpoints: Vec<Box<dyn Endpoint>>,
        control: Box<dyn Control>,
        host: Box<dyn Host>,
        registry: Registry,
    ) -> Parts {
        Parts {
            rank,
            topology,
            endpoints,
            control,
            host,
            registry,
            compute: None,
            crowded: false,
        }
    }

    /// Whether ranks share cores; every rank must say the same.
    pub fn crowded(mut self, crowded: bool) -> Parts {
        self.crowded = crowded;
        self
    }

    /// Who does the copies and reductions of this rank's operations.
    pub fn compute(mut self, compute: Box<dyn Compute>) -> Parts {
        self.compute = Some(compute);
        self
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("rank", &self.rank)
            .field("topology", &self.topology)
            .field("endpoints", &self.endpoints.len())
            .finish_non_exhaustive()
    }
}
