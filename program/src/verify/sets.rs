//! Sets of ranks, each kept once and named by a number.
//!
//! Partial results are sums over sets of ranks, and a regular algorithm makes the same sets on every rank. A set is a
//! sorted list of intervals; joining two is remembered.

use std::collections::HashMap;

use unisono_core::Rank;

/// The number of a set.
pub(super) type SetId = u32;

type Intervals = Box<[(Rank, Rank)]>;

#[derive(Default)]
pub(super) struct Sets {
    lists: Vec<Intervals>,
    ids: HashMap<Intervals, SetId>,
    unions: HashMap<(SetId, SetId), (SetId, Option<Rank>)>,
}

impl Sets {
    /// The ranks `first..end`.
    pub(super) fn range(&mut self, first: Rank, end: Rank) -> SetId {
        let list: Intervals = if first < end {
            [(first, end)].into()
        } else {
            [].into()
        };
        self.intern(list)
    }

    /// The union, and a rank that both have.
    pub(super) fn union(&mut self, a: SetId, b: SetId) -> (SetId, Option<Rank>) {
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let mut all: Vec<(Rank, Rank)> = self.list(a).iter().chain(self.list(b)).copied().collect();
        all.sort_unstable();
        let (mut joined, mut both): (Vec<(Rank, Rank)>, _) = (Vec::with_capacity(all.len()), None);
        for (first, end) in all {
            match joined.last_mut() {
                Some(last) if first <= last.1 => {
                    if first < last.1 && both.is_none() {
                        both = Some(first);
                    }
                    last.1 = last.1.max(end);
                }
                _ => joined.push((first, end)),
            }
        }
        let union = (self.intern(joined.into()), both);
        self.unions.insert(key, union);
        union
    }

    /// The intervals of a set, sorted, with gaps between them.
    pub(super) fn list(&self, id: SetId) -> &[(Rank, Rank)] {
        &self.lists[id as usize]
    }

    /// The first of `0..size` that is not in the set.
    pub(super) fn first_absent(&self, id: SetId, size: Rank) -> Option<Rank> {
        let absent = match self.list(id) {
            [(0, end), ..] => *end,
            _ => 0,
        };
        (absent < size).then_some(absent)
    }

    /// `0..4, 6`.
    pub(super) fn show(&self, id: SetId) -> String {
        let parts = self.list(id).iter().map(|&(first, end)| match end - first {
            1 => first.to_string(),
            _ => format!("{first}..{end}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    fn intern(&mut self, list: Intervals) -> SetId {
        if let Some(&id) = self.ids.get(&list) {
            return id;
        }
        let id = self.lists.len() as SetId;
        self.lists.push(list.clone());
        self.ids.insert(list, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_interval_and_a_common_rank_is_found() {
        let mut sets = Sets::default();
        let (a, b) = (sets.range(0, 2), sets.range(2, 5));
        let c = sets.range(4, 6);
        let (ab, both) = sets.union(a, b);
        assert_eq!((sets.list(ab), both), (&[(0, 5)][..], None));
        assert_eq!(sets.union(c, ab).1, Some(4));
        let (ac, _) = sets.union(a, c);
        assert_eq!(sets.show(ac), "0..2, 4..6");
        assert_eq!(sets.first_absent(ac, 9), Some(2));
    }
}
