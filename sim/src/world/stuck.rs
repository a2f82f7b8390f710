//! When nothing can happen any more: who waits for whom.

use std::collections::VecDeque;

use unisono_core::Rank;

use super::World;
use crate::error::{Deadlock, End, Wait, WaitKind};

impl World {
    /// Who waits for whom, now that nothing can happen.
    ///
    /// The nearest rank that will never answer ends the chain, as seen from the lowest rank that waits; if there is
    /// none, the chain is a cycle. (Receives are posted ahead, so a cycle alone may be a mere echo.)
    pub(crate) fn deadlock(&self) -> Deadlock {
        let waits = self.waits();
        let is_end = |rank: Rank| waits[rank as usize].is_empty();
        let first = (0..waits.len() as Rank).find(|&r| !is_end(r)).unwrap_or(0);
        let chain = path_to(&waits, first, is_end).or_else(|| cycle(&waits, first));
        let chain = chain.unwrap_or_default();
        let last = chain.last().map_or(first, |w| w.peer);
        let state = &self.ranks[last as usize];
        let end = if chain.iter().any(|w| w.rank == last) {
            End::Cycle(last)
        } else if state.dead.is_some() {
            End::Crashed(last)
        } else if state.finished.is_some() {
            End::Ended(last)
        } else {
            End::Idle(last)
        };
        Deadlock {
            chain,
            end,
            lost: self.lost,
        }
    }

    /// A rank that runs and waits for no message: nothing in this world can wake it.
    pub(crate) fn idle(&self) -> Option<Rank> {
        let waits = self.waits();
        let ranks = self.ranks.iter().zip(&waits);
        let found = ranks
            .into_iter()
            .position(|(rank, waits)| rank.is_running() && waits.is_empty());
        found.map(|rank| rank as Rank)
    }

    /// What every rank waits for, by peer.
    fn waits(&self) -> Vec<Vec<Wait>> {
        let mut waits = vec![Vec::new(); self.ranks.len()];
        for fifo in &self.fifos {
            let (from, to) = (fifo.key.from, fifo.key.to);
            if let Some(posted) = fifo.posted.front() {
                waits[to as usize].push(Wait {
                    rank: to,
                    peer: from,
                    kind: WaitKind::Recv,
                    operation: posted.expect.sequence,
                    step: posted.expect.message,
                });
            }
            if let Some(held) = fifo.held.front() {
                waits[from as usize].push(Wait {
                    rank: from,
                    peer: to,
                    kind: WaitKind::Send,
                    operation: held.frame.sequence,
                    step: held.frame.message,
                });
            }
        }
        for (rank, waits) in waits.iter_mut().enumerate() {
            if !self.ranks[rank].is_running() {
                waits.clear();
            }
            waits.sort_by_key(|w| (w.operation, w.step, w.peer));
        }
        waits
    }
}

/// The shortest chain from `first` to a rank that is an end.
fn path_to(waits: &[Vec<Wait>], first: Rank, is_end: impl Fn(Rank) -> bool) -> Option<Vec<Wait>> {
    let mut came_by: Vec<Option<Wait>> = vec![None; waits.len()];
    let mut queue = VecDeque::from([first]);
    while let Some(rank) = queue.pop_front() {
        if is_end(rank) {
            let mut chain = Vec::new();
            let mut at = rank;
            while let Some(wait) = came_by[at as usize] {
                chain.push(wait);
                at = wait.rank;
                if at == first {
                    break;
                }
            }
            chain.reverse();
            return Some(chain);
        }
        for wait in &waits[rank as usize] {
            let peer = wait.peer;
            if peer != first && came_by[peer as usize].is_none() {
                came_by[peer as usize] = Some(*wait);
                queue.push_back(peer);
            }
        }
    }
    None
}

/// A cycle that is reached from `first`, where every rank waits.
fn cycle(waits: &[Vec<Wait>], first: Rank) -> Option<Vec<Wait>> {
    let mut chain: Vec<Wait> = Vec::new();
    let mut rank = first;
    loop {
        if let Some(start) = chain.iter().position(|w| w.rank == rank) {
            return Some(chain.split_off(start));
        }
        let wait = *waits[rank as usize].first()?;
        chain.push(wait);
        rank = wait.peer;
    }
}
