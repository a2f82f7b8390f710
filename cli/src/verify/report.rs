//! What `verify` says: a row or an object per proof, and a summary at the end.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;
use unisono_core::Rank;
use unisono_program::verify::Proof;

use super::prove::{Found, Job, Variant};
use crate::args::verify::Args;
use crate::output::Output;

/// Writes rows or objects.
pub(super) struct Report<'a> {
    json: bool,
    out: &'a mut Output,
}

/// One proof as JSON. Shares of a vector are numbers; see `Proof` for what each field counts.
#[derive(Serialize)]
struct Row<'a> {
    algorithm: &'a str,
    op: &'static str,
    ranks: Rank,
    root: Rank,
    commutative: bool,
    average: bool,
    verified: bool,
    #[serde(flatten)]
    cost: Option<Cost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaw: Option<&'a str>,
}

#[derive(Serialize)]
struct Cost {
    rounds: u64,
    rounds_bound: u64,
    depth: u64,
    depth_bound: u64,
    sent: f64,
    sent_bound: f64,
    received: f64,
    received_bound: f64,
    messages: u64,
    steps: u64,
}

#[derive(Serialize)]
struct Refusal<'a> {
    algorithm: &'a str,
    op: &'static str,
    ranks: Rank,
    verified: bool,
    refused: &'a str,
}

impl Report<'_> {
    pub(super) fn new(json: bool, out: &mut Output) -> Report<'_> {
        Report { json, out }
    }

    /// What the columns mean.
    pub(super) fn head(&mut self) -> Result<()> {
        if self.json {
            return Ok(());
        }
        self.out.line("# rounds: one message out and one in at a time; depth: all ports at once; sent, received: of the busiest rank,")?;
        self.out.line("# in vectors (the larger buffer of a rank); after / the least that any algorithm could do; + also as average or in rank order")?;
        self.out.line(format_args!(
            "{:<20} {:<14} {:>5} {:>5} {:>11} {:>9} {:>19} {:>19} {:>9}  proved",
            "# algorithm", "op", "ranks", "root", "rounds", "depth", "sent", "received", "messages"
        ))
    }

    /// What came of one job.
    pub(super) fn found(&mut self, job: &Job, found: &Found) -> Result<()> {
        match found {
            Found::Refused(_) if !job.named => Ok(()),
            Found::Refused(why) if self.json => self.out.json(&Refusal {
                algorithm: &job.algorithm,
                op: job.op.name(),
                ranks: job.ranks,
                verified: false,
                refused: why,
            }),
            Found::Refused(why) => self.out.line(format_args!("{job}: refused: {why}")),
            Found::Proofs(proofs) if self.json => proofs
                .iter()
                .try_for_each(|(variant, proof)| self.out.json(&row(job, *variant, proof))),
            Found::Proofs(proofs) => {
                for (i, (variant, proof)) in proofs.iter().enumerate() {
                    match proof {
                        Err(flaw) => self
                            .out
                            .line(format_args!("{job}, {variant}: FLAW: {flaw}"))?,
                        Ok(proof) if variant.is_plain() => {
                            let more = proofs[i + 1..].iter().take_while(|(v, _)| !v.is_plain());
                            self.out.line(line(
                                job,
                                *variant,
                                proof,
                                more.filter(|(_, p)| p.is_ok()),
                            ))?;
                        }
                        Ok(_) => {}
                    }
                }
                Ok(())
            }
        }
    }

    /// The last line.
    pub(super) fn summary(&mut self, summary: &Summary) -> Result<()> {
        if self.json {
            self.out.json(summary)
        } else {
            self.out.line(summary.text())
        }
    }
}

fn row<'a>(job: &'a Job, variant: Variant, proof: &'a Result<Proof, String>) -> Row<'a> {
    Row {
        algorithm: &job.algorithm,
        op: job.op.name(),
        ranks: job.ranks,
        root: variant.root,
        commutative: variant.commutative,
        average: variant.average,
        verified: proof.is_ok(),
        cost: proof.as_ref().ok().map(|p| Cost {
            rounds: p.rounds,
            rounds_bound: p.rounds_bound,
            depth: p.depth,
            depth_bound: p.depth_bound,
            sent: p.sent.as_f64(),
            sent_bound: p.sent_bound.as_f64(),
            received: p.received.as_f64(),
            received_bound: p.received_bound.as_f64(),
            messages: p.messages,
            steps: p.steps,
        }),
        flaw: proof.as_ref().err().map(String::as_str),
    }
}

fn line<'a>(
    job: &Job,
    variant: Variant,
    proof: &Proof,
    also: impl Iterator<Item = &'a (Variant, Result<Proof, String>)>,
) -> String {
    let root = match job.op.is_rooted() {
        true => variant.root.to_string(),
        false => "-".to_owned(),
    };
    let mut proved = "yes".to_owned();
    for (variant, _) in also {
        proved += if variant.average {
            " +average"
        } else {
            " +ordered"
        };
    }
    let beside = |a: &dyn std::fmt::Display, b: &dyn std::fmt::Display| format!("{a} / {b}");
    format!(
        "{:<20} {:<14} {:>5} {root:>5} {:>11} {:>9} {:>19} {:>19} {:>9}  {proved}",
        job.algorithm,
        job.op,
        job.ranks,
        beside(&proof.rounds, &proof.rounds_bound),
        beside(&proof.depth, &proof.depth_bound),
        beside(&proof.sent, &proof.sent_bound),
        beside(&proof.received, &proof.received_bound),
        proof.messages,
    )
}

/// Everything in numbers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    summary: bool,
    /// Algorithms of which something was proved.
    algorithms: usize,
    /// Collectives of which something was proved.
    ops: usize,
    /// Numbers of ranks that were asked for.
    worlds: usize,
    /// Program sets that were proved right.
    verified: u64,
    /// Program sets that are wrong.
    failed: u64,
    /// Pairs at some number of ranks that an algorithm does not offer or refuses, among `all`.
    skipped: u64,
    /// The same among those that were named.
    refused: u64,
    #[serde(skip)]
    names: (BTreeSet<String>, BTreeSet<&'static str>),
    #[serde(skip)]
    first: Option<String>,
}

impl Summary {
    pub(super) fn new(args: &Args) -> Summary {
        let worlds: BTreeSet<Rank> = args.ranks.0.iter().copied().collect();
        Summary {
            summary: true,
            worlds: worlds.len(),
            ..Summary::default()
        }
    }

    pub(super) fn add(&mut self, job: &Job, found: &Found) {
        let proofs = match found {
            Found::Refused(why) if job.named => {
                self.refused += 1;
                self.first.get_or_insert_with(|| format!("{job}: {why}"));
                return;
            }
            Found::Refused(_) => {
                self.skipped += 1;
                return;
            }
            Found::Proofs(proofs) => proofs,
        };
        self.names.0.insert(job.algorithm.clone());
        self.names.1.insert(job.op.name());
        (self.algorithms, self.ops) = (self.names.0.len(), self.names.1.len());
        for (variant, proof) in proofs {
            match proof {
                Ok(_) => self.verified += 1,
                Err(flaw) => {
                    // A wrong program is worse news than one that is not there.
                    if self.failed == 0 {
                        self.first = Some(format!("{job}, {variant}: {flaw}"));
                    }
                    self.failed += 1;
                }
            }
        }
    }

    fn text(&self) -> String {
        let Summary {
            verified,
            failed,
            skipped,
            refused,
            ..
        } = self;
        let end = match (failed, refused) {
            (0, 0) => "all right".to_owned(),
            (0, r) => format!("{r} REFUSED"),
            (f, 0) => format!("{f} WRONG"),
            (f, r) => format!("{f} WRONG, {r} REFUSED"),
        };
        format!(
            "{} proved ({}, {}, {}), {skipped} skipped because not offered: {end}",
            counted(*verified, "program set"),
            counted(self.algorithms as u64, "algorithm"),
            counted(self.ops as u64, "collective"),
            counted(self.worlds as u64, "world size"),
        )
    }

    /// Why the exit status is 1, if it is.
    pub(super) fn cause(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let all = self.failed + self.refused;
        Some(match all {
            1 => first.clone(),
            _ => format!("{first} (the first of {all})"),
        })
    }
}

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
