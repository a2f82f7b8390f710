//! Random programs: the builder makes no races, and what `verify` lets pass ends the same for every order of events.

mod local;

use std::sync::Arc;

use local::machine::{Way, contents};
use unisono_core::Collective;
use unisono_program::verify::mutate::{Change, mutants};
use unisono_program::verify::{Flaw, verify};
use unisono_program::{
    Algorithm, Context, Emit, Program, Unsupported, block, blocks, build_all, scratch,
};

/// Random transfers and reductions, emitted by all ranks in one global order.
struct Random(u64);

impl Algorithm for Random {
    fn name(&self) -> &str {
        "random"
    }
    fn supports(&self, _: &Context) -> Result<(), Unsupported> {
        Ok(())
    }
    fn blocks(&self, _: &Context) -> u64 {
        3
    }
    fn emit(&self, cx: &Context, b: &mut dyn Emit) {
        let (me, p) = (cx.rank(), cx.size());
        let mut state = self.0;
        let mut dice = |n: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % n
        };
        for _ in 0..10 {
            let from = dice(p);
            let to = (from + 1 + dice(p - 1)) % p;
            let (first, len, how) = (i64::from(dice(3)), u64::from(1 + dice(2)), dice(4));
            let span = if how == 2 {
                block(first)
            } else {
                blocks(first, len)
            };
            if me == from {
                b.send(to, span);
            }
            if me == to {
                match how {
                    0 => b.recv(from, span),
                    1 | 3 => b.recv_reduce(from, span),
                    _ => {
                        let slot = scratch(first as u64).like(first);
                        b.recv(from, slot);
                        b.reduce(block(first), &[slot, block(first)]);
                    }
                }
            }
        }
    }
}

/// Whether every way to run them ends with the same contents.
fn deterministic(programs: &[Arc<Program>], seeds: u64) -> bool {
    let ways = (0..seeds).flat_map(|seed| {
        (1..=3).map(move |segments| Way {
            segments,
            in_place: seed % 2 == 1,
            room: 2,
            seed,
        })
    });
    let mut ends = ways.map(|way| contents(programs, 11, way));
    let first = ends.next().flatten();
    first.is_some() && ends.all(|end| end == first)
}

#[test]
fn programs_without_races_give_the_same_bits_for_every_order_and_builders_make_no_races() {
    let (mut refused, mut kept) = (0, 0);
    for seed in 0..150 {
        let cx = Context::full(Collective::AllReduce, 0, 3);
        let programs = build_all(&Random(seed), &cx).unwrap();
        match verify(&programs) {
            Err(Flaw::WrongResult { .. } | Flaw::Spoiled { .. }) | Ok(_) => {}
            Err(flaw) => panic!("{seed}: {flaw}"),
        }
        assert!(deterministic(&programs, 6), "{seed}");
        for mutant in mutants(&programs) {
            if !matches!(mutant.change, Change::DropWait(_) | Change::WeakenWait(_)) {
                continue;
            }
            if let Err(Flaw::Race { .. }) = verify(&mutant.programs) {
                refused += 1;
            } else {
                kept += 1;
                assert!(deterministic(&mutant.programs, 6), "{seed}: {mutant}");
            }
        }
    }
    assert!(
        kept > 20 && refused > 5 * kept,
        "{refused} refused, {kept} kept"
    );
}
