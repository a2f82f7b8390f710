//! The suite that every transport passes.

use unisono_contract::{Endpoint, conformance};

#[test]
fn the_contract_is_kept() {
    conformance::run_all(&|size| {
        unisono_inproc::connect(size)
            .into_iter()
            .map(|endpoint| Box::new(endpoint) as Box<dyn Endpoint>)
            .collect()
    });
}
