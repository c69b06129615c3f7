//! A small bounded map with an approximate least-recently-used order: two generations.
//!
//! Entries live in the young generation; when it is full it becomes the old one and what was old is dropped. A
//! hit in the old generation moves the entry back. Keys are compared in full after the hash.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

struct Generations<V> {
    young: FxHashMap<u64, Vec<Arc<V>>>,
    old: FxHashMap<u64, Vec<Arc<V>>>,
    count: usize,
}

/// A map from hashed keys to shared values; a value knows its own key.
pub struct Cache<V> {
    inner: Mutex<Option<Generations<V>>>,
    limit: usize,
}

impl<V> Cache<V> {
    /// An empty cache that keeps between `limit` and twice as many values.
    pub const fn new(limit: usize) -> Self {
        Cache { inner: Mutex::new(None), limit }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Generations<V>) -> R) -> R {
        let mut guard = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(guard.get_or_insert_with(|| Generations { young: FxHashMap::default(), old: FxHashMap::default(), count: 0 }))
    }

    /// The value of this hash that `matches`.
    pub fn get(&self, hash: u64, matches: impl Fn(&V) -> bool) -> Option<Arc<V>> {
        self.with(|g| {
            let find = |list: &Vec<Arc<V>>| list.iter().position(|v| matches(v));
            if let Some(list) = g.young.get(&hash)
                && let Some(i) = find(list)
            {
                return Some(list[i].clone());
            }
            let list = g.old.get_mut(&hash)?;
            let i = find(list)?;
            let value = list.swap_remove(i);
            g.young.entry(hash).or_default().push(value.clone());
            g.count += 1;
            Some(value)
        })
    }

    /// Adds a value.
    pub fn put(&self, hash: u64, value: Arc<V>) {
        let limit = self.limit;
        let dropped = self.with(|g| {
            g.young.entry(hash).or_default().push(value);
            g.count += 1;
            if g.count <= limit {
                return None;
            }
            g.count = 0;
            let young = std::mem::take(&mut g.young);
            Some(std::mem::replace(&mut g.old, young))
        });
        drop(dropped);
    }

    /// Drops every value.
    pub fn clear(&self) {
        let all = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        drop(all);
    }

    /// Number of values kept.
    pub fn len(&self) -> usize {
        self.with(|g| g.young.values().chain(g.old.values()).map(Vec::len).sum())
    }

    /// Whether no value is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_used_values_stay_and_the_size_is_bounded() {
        let cache: Cache<u32> = Cache::new(8);
        for i in 0..100u32 {
            cache.put(u64::from(i % 7), Arc::new(i));
            assert_eq!(cache.get(u64::from(i % 7), |v| *v == i).as_deref(), Some(&i));
            assert!(cache.get(0, |v| *v == 0).is_some(), "used in every round, so kept: {i}");
            assert!(cache.len() <= 18);
        }
        cache.clear();
        assert!(cache.is_empty());
    }
}
