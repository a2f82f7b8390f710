//! The suite holds over the null network, under every timing, and through middleware.

use unisono_contract::{Endpoint, conformance, middleware::Faulty, null};

fn boxed<E: Endpoint + 'static>(ends: impl IntoIterator<Item = E>) -> Vec<Box<dyn Endpoint>> {
    ends.into_iter()
        .map(|end| Box::new(end) as Box<dyn Endpoint>)
        .collect()
}

#[test]
fn the_instant_network_conforms() {
    conformance::run_all(&|ranks| boxed(null::Net::new(ranks, null::Policy::instant())));
}

#[test]
fn a_network_of_single_posts_conforms() {
    let policy = null::Policy {
        depth: 1,
        ..null::Policy::instant()
    };
    conformance::run_all(&|ranks| boxed(null::Net::new(ranks, policy)));
}

#[test]
fn a_slow_pipe_conforms() {
    let policy = null::Policy {
        seed: 1,
        chunk: 4096,
        hold: 0.5,
        depth: 3,
    };
    conformance::run_all(&|ranks| boxed(null::Net::new(ranks, policy)));
}

#[test]
fn a_pipe_without_randomness_conforms() {
    let policy = null::Policy {
        seed: 2,
        chunk: 50_000,
        hold: 0.0,
        depth: 16,
    };
    conformance::run_all(&|ranks| boxed(null::Net::new(ranks, policy)));
}

#[test]
fn skipped_polls_change_nothing() {
    conformance::run_all(&|ranks| {
        let ends = null::Net::new(ranks, null::Policy::instant());
        boxed(
            ends.into_iter()
                .zip(0..)
                .map(|(end, seed)| Faulty::new(end, seed, 0.5)),
        )
    });
}
