//! [`BoundedMap`]: a map that drops its oldest entries.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: HashMap<K, V>,
    oldest_first: VecDeque<K>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> BoundedMap<K, V> {
    /// Creates a map of at most so many entries.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            entries: HashMap::new(),
            oldest_first: VecDeque::new(),
            most,
        }
    }

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
        if self.oldest_first.len() > self.most
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.entries.remove(&oldest);
        }
        is_new
    }
}
