//! What a run says: results, times, links, and how it ended.

use unisono_core::Rank;
use unisono_evaluator::LinkLoad;

use crate::error::SimError;
use crate::record::Record;

/// Results and report of a run.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What each rank returned, in rank order; `None` for one that crashed, panicked, or never ended.
    pub results: Vec<Option<T>>,
    /// What the run was like.
    pub report: Report,
}

impl<T> Outcome<T> {
    /// The results of all ranks, if the run ended well.
    ///
    /// # Errors
    /// How it ended instead.
    pub fn into_result(self) -> Result<(Vec<T>, Report), SimError> {
        if let Some(error) = self.report.error {
            return Err(error);
        }
        // Without an error every rank has returned.
        let results = self.results.into_iter().flatten().collect();
        Ok((results, self.report))
    }
}

/// What a run was like.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Every rank, in rank order.
    pub ranks: Vec<RankReport>,
    /// When the last rank that ended did, in picoseconds.
    pub total_ps: u64,
    /// Every directed link that carried a message, by sender and receiver.
    pub links: Vec<LinkLoad>,
    /// The link that was occupied longest (the first of several).
    pub bottleneck: Option<LinkLoad>,
    /// Messages on all links.
    pub messages: u64,
    /// Messages that faults took off the wire.
    pub lost: u64,
    /// Events that were processed.
    pub events: u64,
    /// Hash of all completion times and payload fingerprints: the same run gives the same hash, on any machine.
    pub trace_hash: u64,
    /// How the run ended, if not well.
    pub error: Option<SimError>,
    /// What happened when, if it was asked for.
    pub records: Vec<Record>,
}

/// What became of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RankReport {
    /// The rank.
    pub rank: Rank,
    /// When its program ended, in picoseconds.
    pub finished_ps: Option<u64>,
    /// When a fault stopped it, in picoseconds.
    pub crashed_ps: Option<u64>,
}

impl Report {
    /// The report of a run that never began.
    pub(crate) fn failed(error: SimError) -> Report {
        Report {
            ranks: Vec::new(),
            total_ps: 0,
            links: Vec::new(),
            bottleneck: None,
            messages: 0,
            lost: 0,
            events: 0,
            trace_hash: 0,
            error: Some(error),
            records: Vec::new(),
        }
    }

    /// The total in microseconds.
    pub fn virtual_us(&self) -> f64 {
        self.total_ps as f64 * 1e-6
    }

    /// Bytes on all links.
    pub fn bytes(&self) -> u64 {
        self.links.iter().map(|link| link.bytes).sum()
    }
}
