//! When the latest steps of a lane were complete: a ring that forgets what nobody will ask for.

/// Completion times of positions `base .. done` of one lane.
///
/// Forgotten positions read as the start. Entries may be forgotten once they cannot matter: see
/// [`forget`](History::forget), and `Machine::make_room` for who decides.
#[derive(Debug)]
pub(super) struct History<T> {
    ring: Vec<T>,
    base: u64,
    end: u64,
}

impl<T: Copy + Default + PartialOrd> History<T> {
    pub(super) fn new() -> Self {
        History {
            ring: Vec::new(),
            base: 0,
            end: 0,
        }
    }

    /// When `position` was complete; the start if that is forgotten.
    #[inline]
    pub(super) fn time(&self, position: u64) -> T {
        if position < self.base {
            return T::default();
        }
        self.ring[position as usize & (self.ring.len() - 1)]
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.end - self.base == self.ring.len() as u64
    }

    pub(super) fn capacity(&self) -> usize {
        self.ring.len()
    }

    /// Appends; there must be room.
    #[inline]
    pub(super) fn push(&mut self, time: T) {
        let at = self.end as usize & (self.ring.len() - 1);
        self.ring[at] = time;
        self.end += 1;
    }

    /// Doubles the room.
    pub(super) fn grow(&mut self) {
        let room = (self.ring.len() * 2).max(4);
        let mut ring = vec![T::default(); room];
        for position in self.base..self.end {
            ring[position as usize & (room - 1)] = self.time(position);
        }
        self.ring = ring;
    }

    /// The first position that was complete later than `now`.
    pub(super) fn later_than(&self, now: T) -> u64 {
        let (mut low, mut high) = (self.base, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle) > now {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Forgets the positions before `position`; returns how many that were.
    pub(super) fn forget(&mut self, position: u64) -> u64 {
        let base = position.clamp(self.base, self.end);
        let forgotten = base - self.base;
        self.base = base;
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_survives_growing_and_the_rest_reads_as_the_start() {
        let mut h = History::new();
        for t in 0..100u64 {
            if h.is_full() && h.forget(t.saturating_sub(5)) == 0 {
                h.grow();
            }
            h.push(10 * t);
        }
        assert_eq!(h.time(0), 0);
        for t in 95..100 {
            assert_eq!(h.time(t), 10 * t);
        }
        assert_eq!(h.later_than(965), 97);
        assert_eq!(h.later_than(5000), 100);
        assert!(h.capacity() <= 16);
    }
}
