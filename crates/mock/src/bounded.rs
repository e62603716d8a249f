//! [`BoundedMap`]: a map that drops its oldest entries.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A map of at most `MOST` entries.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V, const MOST: usize> {
    entries: HashMap<K, V>,
    oldest_first: VecDeque<K>,
}

impl<K, V, const MOST: usize> Default for BoundedMap<K, V, MOST> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            oldest_first: VecDeque::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V, const MOST: usize> BoundedMap<K, V, MOST> {
    pub(crate) fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get_mut(key)
    }

    /// Sets the value of a key, and drops the oldest key if there are too many. Returns `true` if the key
    /// is new.
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        let is_new = self.entries.insert(key.clone(), value).is_none();
        if is_new {
            self.oldest_first.push_back(key);
        }
        if self.oldest_first.len() > MOST
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.entries.remove(&oldest);
        }
        is_new
    }
}
