//! [`Posts`]: what is posted on one port in one direction and not complete yet. A part for transports to use.
//!
//! A bounded queue whose entries are allocated once and filled in place, so that posting allocates nothing.
//!
//! ```
//! let mut posts = unisono_contract::posts::Posts::new(2, || 0);
//! posts.push(|entry| *entry = 7);
//! posts.push(|entry| *entry = 8);
//! assert!(posts.is_full());
//! assert_eq!(*posts.at(posts.first()), 7);
//! posts.pop();
//! posts.truncate(posts.first());
//! assert!(posts.is_empty());
//! ```

/// A queue of at most `depth` entries, in the order of posting. An entry's position counts all posts before it.
#[derive(Debug)]
pub struct Posts<T> {
    entries: Box<[T]>,
    first: u64,
    end: u64,
}

impl<T> Posts<T> {
    /// An empty queue of `depth` entries, each made by `entry`.
    ///
    /// # Panics
    /// When `depth` is no power of two.
    pub fn new(depth: usize, mut entry: impl FnMut() -> T) -> Self {
        assert!(depth.is_power_of_two(), "depth {depth} is no power of two");
        Self {
            entries: (0..depth).map(|_| entry()).collect(),
            first: 0,
            end: 0,
        }
    }

    /// Nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// As much is outstanding as may be.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.end - self.first == self.entries.len() as u64
    }

    /// Position of the oldest entry, if there is one.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Position that the next entry will have.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The entry at `position`.
    #[inline]
    pub fn at(&mut self, position: u64) -> &mut T {
        &mut self.entries[position as usize & (self.entries.len() - 1)]
    }

    /// Appends the entry that `fill` writes. The queue must not be full.
    #[inline]
    pub fn push(&mut self, fill: impl FnOnce(&mut T)) {
        debug_assert!(!self.is_full());
        fill(self.at(self.end));
        self.end += 1;
    }

    /// Drops the oldest entry. The queue must not be empty.
    #[inline]
    pub fn pop(&mut self) {
        debug_assert!(!self.is_empty());
        self.first += 1;
    }

    /// Drops the entries from `position` on; the next one gets that position.
    pub fn truncate(&mut self, position: u64) {
        debug_assert!((self.first..=self.end).contains(&position));
        self.end = position;
    }
}
