//! Operations under way, and when they are due.

use std::collections::VecDeque;
use std::time::Duration;

use unisono_contract::Time;
use unisono_control::Operation;
use unisono_engine::Ticket;

/// How long somebody waits for an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) timeout: Duration,
    /// Known once somebody with a clock has looked.
    due: Option<Time>,
}

impl Limit {
    pub(crate) fn new(timeout: Duration) -> Limit {
        Limit { timeout, due: None }
    }
}

/// Operations that are not done, in the order of their tickets: a window over them.
#[derive(Default)]
pub(crate) struct Pending {
    base: u64,
    window: VecDeque<Entry>,
    /// Limits without a time.
    undated: Vec<Ticket>,
    /// No limit is due before.
    earliest: Option<Time>,
}

struct Entry {
    operation: Operation,
    is_done: bool,
    limit: Option<Limit>,
}

impl Pending {
    pub(crate) fn start(&mut self, ticket: Ticket, operation: Operation) {
        if self.window.is_empty() {
            self.base = ticket.0;
        }
        self.window.push_back(Entry {
            operation,
            is_done: false,
            limit: None,
        });
    }

    pub(crate) fn finish(&mut self, ticket: Ticket) {
        if let Some(entry) = self.entry(ticket) {
            entry.is_done = true;
            entry.limit = None;
        }
        while self.window.front().is_some_and(|entry| entry.is_done) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    pub(crate) fn is_done(&self, ticket: Ticket) -> bool {
        match ticket.0.checked_sub(self.base) {
            None => true,
            Some(index) => {
                let entry = self.window.get(index as usize);
                entry.is_none_or(|entry| entry.is_done)
            }
        }
    }

    pub(crate) fn tickets(&self) -> Vec<Ticket> {
        (self.base..self.base + self.window.len() as u64)
            .map(Ticket)
            .collect()
    }

    /// The operation of a ticket that is not done.
    pub(crate) fn operation(&mut self, ticket: Ticket) -> Option<Operation> {
        self.entry(ticket).map(|entry| entry.operation)
    }

    /// The oldest operation under way: the one to name when something fails.
    pub(crate) fn oldest(&self) -> Option<Operation> {
        self.window.front().map(|entry| entry.operation)
    }

    /// Sets the limit of an operation that has none yet; gives whether it had none.
    pub(crate) fn limit(&mut self, ticket: Ticket, limit: Limit) -> bool {
        match self.entry(ticket) {
            Some(entry) if entry.limit.is_none() && !entry.is_done => {
                entry.limit = Some(limit);
                self.undated.push(ticket);
                true
            }
            _ => false,
        }
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget_limit(&mut self, ticket: Ticket) {
        if let Some(entry) = self.entry(ticket) {
            entry.limit = None;
        }
    }

    /// Dates new limits from `now` on, and gives an operation whose time is up, or else when to look again.
    pub(crate) fn due(&mut self, now: Time) -> Result<Option<Time>, (Ticket, Duration)> {
        while let Some(ticket) = self.undated.pop() {
            let index = ticket.0.wrapping_sub(self.base) as usize;
            if let Some(limit) = self.window.get_mut(index).and_then(|e| e.limit.as_mut()) {
                let due = *limit.due.get_or_insert(now + limit.timeout);
                self.earliest = Some(self.earliest.map_or(due, |earliest| earliest.min(due)));
            }
        }
        if self.earliest.is_none_or(|earliest| now < earliest) {
            return Ok(self.earliest);
        }
        // It may have been the time of an operation that is done.
        let limits = (self.base..).zip(&self.window);
        let dated = limits.filter_map(|(ticket, entry)| {
            let limit = entry.limit?;
            Some((limit.due?, ticket, limit.timeout))
        });
        match dated.min() {
            Some((due, ticket, timeout)) if due <= now => Err((Ticket(ticket), timeout)),
            first => {
                self.earliest = first.map(|(due, ..)| due);
                Ok(self.earliest)
            }
        }
    }

    fn entry(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        let index = ticket.0.checked_sub(self.base)?;
        self.window.get_mut(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(operations: u64) -> Pending {
        let mut pending = Pending::default();
        for sequence in 0..operations {
            let name = "barrier";
            pending.start(Ticket(sequence), Operation { name, sequence });
        }
        pending
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn operations_finish_in_any_order() {
        let mut pending = pending(3);
        pending.finish(Ticket(1));
        assert!(pending.is_done(Ticket(1)) && !pending.is_done(Ticket(0)));
        assert_eq!(pending.tickets().len(), 3);
        pending.finish(Ticket(0));
        assert_eq!(pending.oldest().map(|o| o.sequence), Some(2));
        pending.finish(Ticket(2));
        assert!(pending.tickets().is_empty() && pending.is_done(Ticket(2)));
    }

    #[test]
    fn the_limit_that_is_due_first_is_found_whatever_is_done_before() {
        let mut pending = pending(3);
        let at = |seconds: u64| Time::default() + SECOND * seconds as u32;
        assert_eq!(pending.due(at(0)), Ok(None));
        for (ticket, seconds) in [(0, 5), (1, 2), (2, 3)] {
            assert!(pending.limit(Ticket(ticket), Limit::new(SECOND * seconds)));
        }
        assert!(!pending.limit(Ticket(0), Limit::new(SECOND)), "it has one");
        assert_eq!(pending.due(at(1)), Ok(Some(at(3))));
        pending.finish(Ticket(1));
        assert_eq!(pending.due(at(3)), Ok(Some(at(4))), "the next one");
        assert_eq!(pending.due(at(4)), Err((Ticket(2), SECOND * 3)));
        pending.forget_limit(Ticket(2));
        assert_eq!(pending.due(at(4)), Ok(Some(at(6))));
        assert_eq!(pending.due(at(7)), Err((Ticket(0), SECOND * 5)));
    }
}
