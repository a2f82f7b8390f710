//! What went wrong in operations, and what every rank was told.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use unisono_core::Rank;

use super::study::Study;
use crate::exit::say;

/// How a study failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The first cause.
    pub(super) cause: String,
    /// How it ended for each rank, in rank order; empty if no rank came to be.
    pub(super) told: Vec<String>,
}

/// The failures of all studies.
#[derive(Debug, Default)]
pub(super) struct Failures {
    all: Vec<(String, Failure)>,
    studies: u64,
}

impl Failures {
    /// Remembers how a study ended.
    pub(super) fn note(&mut self, study: &Study, failure: Option<Failure>) {
        self.studies += 1;
        self.all.extend(failure.map(|f| (study.to_string(), f)));
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Says on stderr what every rank was told.
    ///
    /// # Errors
    /// The cause, if there was a failure; the first of several.
    pub(super) fn end(self) -> Result<()> {
        let count = self.all.len();
        for (study, failure) in &self.all {
            if count > 1 {
                say(&format!("{study}:"));
            }
            for (ranks, text) in alike(&failure.told) {
                say(&format!("{ranks}: {text}"));
            }
        }
        match self.all.first() {
            None => Ok(()),
            Some((_, failure)) if count == 1 => bail!("{}", failure.cause),
            Some((study, failure)) => bail!(
                "{count} of {} runs failed; the first, {study}: {}",
                self.studies,
                failure.cause
            ),
        }
    }
}

/// Ranks that were told the same on one line, in the order of the first of each: `ranks 0, 1, 3..7`.
fn alike(told: &[String]) -> Vec<(String, &str)> {
    let mut groups: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for (rank, text) in (0..).zip(told) {
        groups.entry(text).or_default().push(rank);
    }
    let mut groups: Vec<(&str, Vec<Rank>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| ranks[0]);
    let named = groups
        .into_iter()
        .map(|(text, ranks)| (named(&ranks), text));
    named.collect()
}

/// `rank 2`, or `ranks 0, 1, 3..7`; a range includes both ends.
fn named(ranks: &[Rank]) -> String {
    if let [one] = ranks {
        return format!("rank {one}");
    }
    let ranges = ranks.chunk_by(|a, b| a + 1 == *b);
    let texts: Vec<String> = ranges
        .map(|range| match range {
            [first, .., last] if range.len() > 2 => format!("{first}..{last}"),
            few => few
                .iter()
                .map(Rank::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        })
        .collect();
    format!("ranks {}", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_were_told_the_same_share_a_line() {
        let told = ["lost", "lost", "crashed", "lost", "lost", "lost"].map(str::to_owned);
        assert_eq!(
            alike(&told),
            [
                ("ranks 0, 1, 3..5".to_owned(), "lost"),
                ("rank 2".to_owned(), "crashed")
            ]
        );
    }
}
