//! The plug-in keeps the contract, and groups run over it.

use unisono::parts::{Endpoint, SystemHost, in_process};
use unisono::{Error, Group, Op};
use unisono_contract::conformance;
use unisono_example_transport::connect;

fn boxed(endpoint: impl Endpoint + 'static) -> Box<dyn Endpoint> {
    Box::new(endpoint)
}

#[test]
fn the_contract_is_kept() {
    conformance::run_all(&|size| connect(size as u32).into_iter().map(boxed).collect());
}

/// One group per rank, over letters.
fn groups(size: u32) -> Result<Vec<Group>, Error> {
    let endpoints = connect(size);
    let controls = in_process(endpoints.iter().map(|e| e.event().clone()).collect());
    let parts = (0..size).zip(endpoints.into_iter().zip(controls));
    parts
        .map(|(rank, (endpoint, control))| {
            let (control, host) = (Box::new(control), Box::new(SystemHost::new(size as usize)));
            let endpoints = vec![boxed(endpoint)];
            Group::from_parts(rank, size, endpoints, control, host, unisono::registry())
        })
        .collect()
}

#[test]
fn rings_meshes_trees_and_butterflies_run_over_letters() {
    for algorithm in ["ring", "mesh-twoshot", "tree", "butterfly-circulant"] {
        std::thread::scope(|s| {
            for group in groups(3).unwrap() {
                s.spawn(move || {
                    let group = group.with_algorithm(algorithm).unwrap();
                    let mut x = [i64::from(group.rank()); 1000];
                    group.all_reduce(&mut x, Op::Sum).unwrap();
                    assert_eq!(x, [3; 1000], "{algorithm}");
                });
            }
        });
    }
}
