//! One job of `verify`: an algorithm, a collective and a number of ranks, at every root and operator that matters.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_core::{Collective, Rank};
use unisono_program::verify::{Proof, verify};
use unisono_program::{Algorithm, Context, build, build_all};

use crate::{catalogue, exit};

/// Steps of all ranks beyond which a proof would need more memory than a usual machine has.
const MOST_STEPS: u64 = 10_000_000;

/// What is to be proved.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) algorithm: String,
    pub(super) op: Collective,
    pub(super) ranks: Rank,
    /// Both names were given, so that it is an error if the algorithm does not offer this.
    pub(super) named: bool,
}

/// A variant of a job: the same programs or others, depending on the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variant {
    /// 0 where there is none.
    pub(super) root: Rank,
    /// Whether operands may change places.
    pub(super) commutative: bool,
    /// Whether the result is divided by the number of ranks.
    pub(super) average: bool,
}

/// What came of a job.
#[derive(Debug)]
pub(super) enum Found {
    /// The algorithm says why it does not do this.
    Refused(String),
    /// The proof of each variant, or the flaw.
    Proofs(Vec<(Variant, Result<Proof, String>)>),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job { op, ranks, .. } = self;
        let s = if *ranks == 1 { "" } else { "s" };
        write!(f, "{} {op} on {ranks} rank{s}", self.algorithm)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "root {}", self.root)?;
        f.write_str(if self.average { ", average" } else { "" })?;
        f.write_str(if self.commutative {
            ""
        } else {
            ", operands in rank order"
        })
    }
}

impl Job {
    /// Builds and proves every variant. A panic is a flaw like any other.
    pub(super) fn run(&self) -> Found {
        catch_unwind(AssertUnwindSafe(|| self.prove())).unwrap_or_else(|panic| {
            let flaw = format!("internal: {}", exit::payload(panic.as_ref()));
            Found::Proofs(vec![(Variant::plain(0), Err(flaw))])
        })
    }

    fn prove(&self) -> Found {
        let algorithm = match catalogue::algorithms().find(&self.algorithm) {
            Ok(algorithm) => algorithm.as_ref(),
            Err(unknown) => return Found::Refused(unknown.to_string()),
        };
        let mut proofs = Vec::new();
        for root in roots(self.op, self.ranks) {
            for variant in Variant::of(self.op, root) {
                let cx = Context::full(self.op, 0, self.ranks)
                    .with_root(root)
                    .with_commutative(variant.commutative)
                    .with_average(variant.average);
                match algorithm.supports(&cx) {
                    Ok(()) => proofs.push((variant, prove(algorithm, &cx))),
                    // Only the plain call decides whether the pair is offered.
                    Err(why) if variant.is_plain() => return Found::Refused(why.to_string()),
                    Err(_) => {}
                }
            }
        }
        Found::Proofs(proofs)
    }
}

impl Variant {
    fn plain(root: Rank) -> Variant {
        Variant {
            root,
            commutative: true,
            average: false,
        }
    }

    /// Whether it is the call without anything special.
    pub(super) fn is_plain(self) -> bool {
        self.commutative && !self.average
    }

    fn of(op: Collective, root: Rank) -> Vec<Variant> {
        let plain = Variant::plain(root);
        let mut all = vec![plain];
        if op.reduces() {
            all.push(Variant {
                average: true,
                ..plain
            });
            all.push(Variant {
                commutative: false,
                ..plain
            });
        }
        all
    }
}

/// The roots worth trying: the first, the second, the last.
fn roots(op: Collective, ranks: Rank) -> Vec<Rank> {
    if !op.is_rooted() {
        return vec![0];
    }
    let mut roots = vec![0, 1, ranks - 1];
    roots.retain(|&r| r < ranks);
    roots.dedup();
    roots
}

fn prove(algorithm: &dyn Algorithm, cx: &Context) -> Result<Proof, String> {
    let busiest = build(algorithm, &cx.at_rank(cx.root())).map_err(|e| e.to_string())?;
    let steps = busiest.steps().saturating_mul(cx.size().into());
    if steps > MOST_STEPS {
        return Err(format!(
            "about {steps} steps are too many to prove one by one (at most {MOST_STEPS}); ask for fewer ranks"
        ));
    }
    let programs = build_all(algorithm, cx).map_err(|e| e.to_string())?;
    verify(&programs).map_err(|flaw| flaw.to_string())
}
