//! What is posted on one port in one direction and not complete yet: a bounded queue
//! whose entries are allocated once and filled in place.

/// A queue of at most `depth` entries. Positions count from 0 and never come back,
/// and they are the positions of the ring behind it.
pub(crate) struct Posts<T> {
    entries: Box<[T]>,
    first: u64,
    end: u64,
}

impl<T> Posts<T> {
    /// An empty queue of `depth` entries, a power of two.
    pub(crate) fn new(depth: usize, mut entry: impl FnMut() -> T) -> Self {
        assert!(depth.is_power_of_two(), "depth {depth} is no power of two");
        Self {
            entries: (0..depth).map(|_| entry()).collect(),
            first: 0,
            end: 0,
        }
    }

    /// Nothing is outstanding.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// As much is outstanding as may be.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.first == self.entries.len() as u64
    }

    /// Position of the oldest entry, if there is one.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Position that the next entry will have.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The entry at `position`.
    #[inline]
    pub(crate) fn at(&mut self, position: u64) -> &mut T {
        &mut self.entries[position as usize & (self.entries.len() - 1)]
    }

    /// Appends the entry that `fill` writes. The queue must not be full.
    #[inline]
    pub(crate) fn push(&mut self, fill: impl FnOnce(&mut T)) {
        debug_assert!(!self.is_full());
        fill(self.at(self.end));
        self.end += 1;
    }

    /// Drops the oldest entry. The queue must not be empty.
    #[inline]
    pub(crate) fn pop(&mut self) {
        debug_assert!(!self.is_empty());
        self.first += 1;
    }

    /// Drops the entries from `position` on; the next one gets that position.
    pub(crate) fn truncate(&mut self, position: u64) {
        debug_assert!((self.first..=self.end).contains(&position));
        self.end = position;
    }
}
