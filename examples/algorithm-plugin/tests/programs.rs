//! The plug-in meets the same checks as the algorithms of the library.

use std::sync::Arc;

use unisono_core::{Collective, Topology};
use unisono_example_algorithm::Line;
use unisono_program::verify::verify;
use unisono_program::{Algorithm, Context, build_all};

#[test]
fn a_line_is_proved_at_every_world_size_and_keeps_the_order_of_operands() {
    for p in 1..=17 {
        let links = (1..p).map(|r| (r - 1, r));
        let line = Arc::new(Topology::from_links(p, links));
        let cx = Context::new(Collective::AllReduce, 0, line).with_commutative(false);
        let programs = build_all(&Line, &cx).unwrap();
        if let Err(flaw) = verify(&programs) {
            panic!("p={p}: {flaw}");
        }
    }
}

#[test]
fn a_broken_line_is_named() {
    let broken = Arc::new(Topology::from_links(4, [(0, 1), (2, 3)]));
    let cx = Context::new(Collective::AllReduce, 0, broken);
    assert_eq!(Line.supports(&cx).unwrap_err().to_string(), "no link 1-2");
}
