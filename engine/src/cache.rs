//! A bounded map that forgets what was not used for longest.

/// At most `capacity` values by key; lookups move a value to the front.
///
/// Small and scanned from the front: the plan of a loop is its first entry, and no lookup allocates.
#[derive(Debug)]
pub struct Lru<K, V> {
    capacity: usize,
    entries: Vec<(K, V)>,
}

impl<K: PartialEq, V: Clone> Lru<K, V> {
    /// An empty cache for `capacity` values (at least one).
    pub fn new(capacity: usize) -> Self {
        Lru {
            capacity: capacity.max(1),
            entries: Vec::new(),
        }
    }

    /// The value under `key`, if it is still there.
    pub fn find(&mut self, key: &K) -> Option<V> {
        let at = self.entries.iter().position(|(k, _)| k == key)?;
        self.entries[..=at].rotate_right(1);
        Some(self.entries[0].1.clone())
    }

    /// Keeps `value` under `key`, forgetting the oldest if there are too many.
    pub fn insert(&mut self, key: K, value: V) {
        self.entries.retain(|(k, _)| *k != key);
        self.entries.truncate(self.capacity - 1);
        self.entries.insert(0, (key, value));
    }

    /// Number of values kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_forgotten() {
        let mut cache = Lru::new(2);
        cache.insert(1, "one");
        cache.insert(2, "two");
        assert_eq!(cache.find(&1), Some("one"));
        cache.insert(3, "three");
        assert_eq!(cache.find(&2), None);
        assert_eq!(cache.find(&1), Some("one"));
        assert_eq!(cache.find(&3), Some("three"));
        assert_eq!(cache.len(), 2);
    }
}
