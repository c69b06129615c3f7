//! One locked part of a cache: a table of slots by hash, and a clock hand for eviction.

use crate::cache::{Entry, OwnerId};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) struct Shard<K, V> {
    /// Slot numbers by the hash of their entries.
    table: HashTable<u32>,
    slots: Vec<Option<Arc<Entry<K, V>>>>,
    free: Vec<u32>,
    /// Slots of each owner.
    owned: FxHashMap<OwnerId, SmallVec<[u32; 4]>>,
    hand: usize,
    pub(crate) misses: u64,
    /// Hits of entries that are gone.
    pub(crate) past_hits: u64,
}

impl<K, V> Default for Shard<K, V> {
    fn default() -> Self {
        Shard {
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            owned: FxHashMap::default(),
            hand: 0,
            misses: 0,
            past_hits: 0,
        }
    }
}

impl<K, V> Shard<K, V> {
    /// The first entry with this hash.
    #[inline]
    pub(crate) fn first(&self, hash: u64) -> Option<Arc<Entry<K, V>>> {
        let slots = &self.slots;
        let slot = self.table.find(hash, |&i| slots[i as usize].as_ref().is_some_and(|e| e.hash == hash))?;
        slots[*slot as usize].clone()
    }

    /// Every entry with this hash.
    #[cold]
    pub(crate) fn all(&self, hash: u64) -> SmallVec<[Arc<Entry<K, V>>; 4]> {
        let entries = self.table.iter_hash(hash).filter_map(|&i| self.slots[i as usize].clone());
        entries.filter(|e| e.hash == hash).collect()
    }

    pub(crate) fn insert(&mut self, entry: Arc<Entry<K, V>>) {
        let hash = entry.hash;
        let owner = entry.owner;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(entry);
        if let Some(owner) = owner {
            self.owned.entry(owner).or_default().push(slot);
        }
        let slots = &self.slots;
        self.table.insert_unique(hash, slot, |&i| slots[i as usize].as_ref().map_or(0, |e| e.hash));
    }

    fn remove(&mut self, slot: u32) -> Option<Arc<Entry<K, V>>> {
        let entry = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.past_hits += entry.hits.load(Relaxed);
        if let Ok(found) = self.table.find_entry(entry.hash, |&i| i == slot) {
            found.remove();
        }
        if let Some(slots) = entry.owner.and_then(|o| self.owned.get_mut(&o)) {
            slots.retain(|s| *s != slot);
        }
        Some(entry)
    }

    /// Takes out an entry not used since the hand last came by; never `keep`.
    pub(crate) fn evict(&mut self, keep: &Arc<Entry<K, V>>) -> Option<Arc<Entry<K, V>>> {
        // once around, clearing marks: whoever asks again gets what was not used in between
        for _ in 0..self.slots.len() {
            let slot = self.hand % self.slots.len();
            self.hand = slot + 1;
            let Some(entry) = &self.slots[slot] else { continue };
            if Arc::ptr_eq(entry, keep) || entry.recent.swap(false, Relaxed) {
                continue;
            }
            return self.remove(slot as u32);
        }
        None
    }

    pub(crate) fn forget(&mut self, owner: OwnerId) -> Vec<Arc<Entry<K, V>>> {
        let slots = self.owned.remove(&owner).unwrap_or_default();
        slots.into_iter().filter_map(|s| self.remove(s)).collect()
    }

    pub(crate) fn clear(&mut self) -> Vec<Option<Arc<Entry<K, V>>>> {
        let Shard { slots, .. } = std::mem::take(self);
        slots
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry<K, V>>> {
        self.slots.iter().flatten()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
