//! Groups of threads.

use unisono_contract::{Endpoint, SystemHost};
use unisono_control::in_process;
use unisono_core::{Rank, Topology};
use unisono_program::Registry;

use crate::{Group, Parts};

/// A group of `size` threads of this process: one [`Group`] per rank, to be moved to its thread.
///
/// ```
/// use unisono::Op;
///
/// std::thread::scope(|s| {
///     for group in unisono::inproc(4) {
///         s.spawn(move || {
///             let mut x = [group.rank() as f32; 3];
///             group.all_reduce(&mut x, Op::Sum).unwrap();
///             assert_eq!(x, [6.0; 3]);
///         });
///     }
/// });
/// ```
///
/// # Panics
/// If `size` is 0.
pub fn inproc(size: Rank) -> Vec<Group> {
    inproc_with(size, crate::registry())
}

/// The same with these algorithms to choose from.
///
/// # Panics
/// If `size` is 0.
pub fn inproc_with(size: Rank, registry: Registry) -> Vec<Group> {
    assert!(size > 0, "a group needs at least one rank");
    let endpoints = unisono_inproc::connect(size as usize);
    let controls = in_process(endpoints.iter().map(|e| e.event().clone()).collect());
    let parts = (0..size).zip(endpoints.into_iter().zip(controls));
    parts
        .map(|(rank, (endpoint, control))| {
            let endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(endpoint)];
            let control = Box::new(control);
            let host = Box::new(SystemHost::new(size as usize));
            let (topology, crowded) = (Topology::full(size), host.is_crowded());
            let parts = Parts::new(rank, topology, endpoints, control, host, registry.clone());
            match Group::assemble(parts.crowded(crowded)) {
                Ok(group) => group,
                Err(error) => unreachable!("{error}"),
            }
        })
        .collect()
}
