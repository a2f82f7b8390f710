//! Programs of the dissemination barrier.

#[path = "../../checks.rs"]
mod checks;

use std::sync::Arc;

use checks::{in_every_world, log2, messages_sent};
use unisono_core::{Collective, Topology};
use unisono_dissemination::Dissemination;
use unisono_program::{Algorithm, Context, Registry};

#[test]
fn everyone_has_heard_of_everyone_after_log_p_rounds() {
    in_every_world(&Dissemination, &[Collective::Barrier], |world| {
        assert!(
            world
                .programs
                .iter()
                .all(|x| messages_sent(x) == log2(world.p))
        );
        world.takes_rounds(log2(world.p));
    });
}

#[test]
fn every_rank_does_the_same_at_another_place() {
    checks::assert_rotates(&Dissemination, Collective::Barrier);
}

#[test]
fn small_worlds_are_proved() {
    checks::verify_small_worlds(&Dissemination, &[Collective::Barrier]);
}

#[test]
fn only_the_links_used_are_asked_for() {
    let topology = Arc::new(Topology::from_links(
        4,
        [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    ));
    let cx = Context::new(Collective::Barrier, 0, topology);
    assert_eq!(
        Dissemination.supports(&cx).unwrap_err().to_string(),
        "no link 1-3"
    );
}

#[test]
fn it_is_found_by_name() {
    let mut registry = Registry::new();
    unisono_dissemination::register(&mut registry);
    assert!(registry.find("dissemination").is_ok());
}
