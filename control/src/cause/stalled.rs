//! What ranks say that wait in vain, and whether they wait for each other because they call different things.
//!
//! Ranks that only receive exchange nothing, so no frame tells that they disagree: two that each take the other for the
//! root of a broadcast would wait until their deadline. A rank that waits long therefore [reports](crate::Control::stalled)
//! its oldest collective, and whoever holds the reports of all compares them:
//!
//! | two reports | are |
//! |---|---|
//! | of the same number, with another value of a field | a mismatch, for all ranks |
//! | of the same number, alike | ranks that wait for a third one |
//! | of different numbers | no matter: one rank is ahead |
//!
//! A slow operation is reported as well, and nothing comes of it.

use std::collections::BTreeMap;

use unisono_core::Rank;

use crate::{Cause, Kind, Operation};

/// A collective that a rank has waited for in vain, as it was called there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    /// Its name, and its number in the group.
    pub operation: Operation,
    /// What must be equal on all ranks, as people write it: names of fields and their values, the weightiest first. At most
    /// 7 travel.
    pub call: Vec<(String, String)>,
}

/// The last report of each rank.
#[derive(Debug, Default)]
pub(crate) struct Reports(BTreeMap<Rank, Stalled>);

impl Reports {
    /// Notes what `rank` reports; gives the cause of the failure if another rank calls something else.
    pub(crate) fn note(&mut self, rank: Rank, report: Stalled) -> Option<Cause> {
        let found = self
            .0
            .iter()
            .filter(|(other, _)| **other != rank)
            .find_map(|(other, theirs)| disagreement((rank, &report), (*other, theirs)));
        self.0.insert(rank, report);
        found
    }
}

/// What two ranks say otherwise of the same operation, as the lower one sees it.
fn disagreement(one: (Rank, &Stalled), two: (Rank, &Stalled)) -> Option<Cause> {
    let ((me, mine), (peer, theirs)) = if one.0 < two.0 {
        (one, two)
    } else {
        (two, one)
    };
    if mine.operation.sequence != theirs.operation.sequence {
        return None;
    }
    let mut fields = mine.call.iter().filter_map(|(field, mine)| {
        let (_, theirs) = theirs.call.iter().find(|(name, _)| name == field)?;
        Some((field, mine, theirs))
    });
    let (field, here, there) = fields.find(|(_, mine, theirs)| mine != theirs)?;
    let kind = Kind::Mismatch {
        rank: peer,
        field: field.clone(),
        mine: here.clone(),
        theirs: there.clone(),
    };
    Some(Cause::new(me, Some(mine.operation), kind))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A broadcast from `root`.
    pub(crate) fn report(sequence: u64, root: &str) -> Stalled {
        let name = "broadcast";
        let call = [("collective", name), ("root", root), ("count", "7")];
        Stalled {
            operation: Operation { name, sequence },
            call: call.map(|(f, v)| (f.to_owned(), v.to_owned())).to_vec(),
        }
    }

    #[test]
    fn another_value_of_the_same_operation_is_a_mismatch_whoever_reports_first() {
        for order in [[0, 1], [1, 0]] {
            let mut reports = Reports::default();
            let [first, second] = order.map(|rank| (rank, report(3, ["1", "0"][rank as usize])));
            assert_eq!(reports.note(first.0, first.1), None);
            let cause = reports.note(second.0, second.1).expect("a cause");
            assert_eq!(
                cause.to_string(),
                "ranks disagree on root: 1 at rank 0, 0 at rank 1 during broadcast #3"
            );
        }
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let mut reports = Reports::default();
        let mut other = report(3, "1");
        other.call[0].1 = "all_reduce".to_owned();
        reports.note(0, report(3, "0"));
        let cause = reports.note(1, other).expect("a cause");
        assert!(cause.to_string().contains("on collective: broadcast at"));
    }

    #[test]
    fn ranks_that_wait_for_a_third_one_or_are_ahead_do_not_disagree() {
        let mut reports = Reports::default();
        assert_eq!(reports.note(0, report(3, "0")), None);
        assert_eq!(reports.note(1, report(3, "0")), None);
        assert_eq!(reports.note(2, report(2, "1")), None, "it is behind");
        assert_eq!(reports.note(0, report(4, "1")), None, "it went on");
        assert_eq!(reports.note(2, report(3, "0")), None);
    }

    #[test]
    fn only_the_last_report_of_a_rank_counts() {
        let mut reports = Reports::default();
        reports.note(0, report(3, "0"));
        reports.note(0, report(4, "0"));
        assert_eq!(reports.note(1, report(3, "1")), None);
        assert!(reports.note(1, report(4, "1")).is_some());
    }
}
