//! Algorithms from outside are proved before they are used.

use std::thread;

use unisono::program::{Algorithm, Context, Emit, Unsupported, block};
use unisono::{Collective, Error, Op};

/// A star that forgets to tell the last rank.
struct Forgetful;

impl Algorithm for Forgetful {
    fn name(&self) -> &str {
        "star-forgetful"
    }

    fn supports(&self, cx: &Context) -> Result<(), Unsupported> {
        cx.require_collective(&[Collective::AllReduce])
    }

    fn blocks(&self, _: &Context) -> u64 {
        1
    }

    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let last = cx.size() - 1;
        match cx.rank() {
            0 => {
                (1..=last).for_each(|r| b.recv_reduce(r, block(0)));
                (1..last).for_each(|r| b.send(r, block(0)));
            }
            r => {
                b.send(0, block(0));
                if r < last {
                    b.recv(0, block(0));
                }
            }
        }
    }
}

#[test]
fn a_plug_in_that_would_give_a_wrong_sum_is_refused_before_anything_is_sent() {
    let mut registry = unisono::registry();
    registry.add(Forgetful);
    thread::scope(|s| {
        for group in unisono::inproc_with(4, registry) {
            s.spawn(move || {
                let g = group.with_algorithm("star-forgetful").unwrap();
                let mut x = [1.0f32; 5];
                let error = g.all_reduce(&mut x, Op::Sum).unwrap_err();
                assert!(matches!(error, Error::Flaw { .. }), "{error}");
                assert!(error.to_string().contains("rank 3"), "{error}");
                assert_eq!(x, [1.0; 5]);
                // The group is as good as new.
                group.all_reduce(&mut x, Op::Sum).unwrap();
                assert_eq!(x, [4.0; 5]);
            });
        }
    });
}

#[test]
fn a_borrowed_slice_can_be_given_again_and_again() {
    fn twice(g: &unisono::Group, x: &mut [f32]) -> Result<(), Error> {
        g.all_reduce(x, Op::Sum)?;
        g.all_reduce(x, Op::Sum)
    }
    let alone = unisono::inproc(1).remove(0);
    twice(&alone, &mut [1.0; 3]).unwrap();
}

#[test]
fn limits_are_said_before_anything_grows() {
    let g = unisono::inproc(2).remove(0);
    let error = g
        .with_channels(u16::MAX)
        .all_reduce(&mut [1f32; 64], Op::Sum);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("parameter channels = 65535 is out of range: 1 to 256"),
        "{error}"
    );
    let choice =
        g.with_segments(u64::MAX)
            .choice::<f32>(Collective::AllReduce, 100_000, Some(Op::Sum));
    assert!(choice.unwrap().segments <= 6250);
    let choice = g.choice::<f64>(Collective::AllReduce, usize::MAX, Some(Op::Sum));
    assert!(
        choice
            .unwrap()
            .to_string()
            .contains("18446744073709551615 bytes")
    );
}
