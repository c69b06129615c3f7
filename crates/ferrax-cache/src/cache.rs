//! The cache: sharded, locked for the time of a probe, bounded in bytes.
//!
//! Invariants: `bytes` is the sum of the entries' bytes; no lock is held while a key is compared or explained, or a
//! value made or dropped. Two threads that miss the same key both make its value; the first to insert wins.

use crate::explain::{Explain, Miss, nearest};
use crate::shard::Shard;
use ferrax_base::Result;
use ferrax_base::fork::Lock;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, MutexGuard};

/// Whom entries belong to: a number that its holder never uses for two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId(pub u64);

impl OwnerId {
    /// An owner that no other has been.
    pub fn fresh() -> OwnerId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        OwnerId(NEXT.fetch_add(1, Relaxed))
    }
}

/// What is kept of a key and its value; shared with those who hold it, also after its eviction.
#[derive(Debug)]
pub struct Entry<K, V> {
    pub(crate) hash: u64,
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
    /// Bytes that the value says it takes.
    pub bytes: usize,
    /// Whom it goes with.
    pub owner: Option<OwnerId>,
    pub(crate) hits: AtomicU64,
    /// Used since the clock's hand came by.
    pub(crate) recent: AtomicBool,
}

impl<K, V> Entry<K, V> {
    fn new(hash: u64, key: K, value: V, bytes: usize, owner: Option<OwnerId>) -> Arc<Self> {
        let (hits, recent) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Entry { hash, key, value, bytes, owner, hits, recent })
    }

    /// One that no cache keeps, for whom caching makes no sense.
    pub fn apart(key: K, value: V) -> Arc<Self> {
        Entry::new(0, key, value, 0, None)
    }

    fn touch(&self) {
        self.hits.fetch_add(1, Relaxed);
        if !self.recent.load(Relaxed) {
            self.recent.store(true, Relaxed);
        }
    }
}

/// Counters, as users see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheInfo {
    /// Lookups that found their key; one whose entry another thread evicts at that moment may be missing.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries kept now.
    pub entries: usize,
    /// Bytes they take.
    pub bytes: usize,
}

/// A bounded cache.
pub struct Cache<K: Send + Sync + 'static, V: Send + Sync + 'static> {
    /// Never freed, so that a fork finds them (`ferrax_base::fork`): a cache lives about as long as the process.
    shards: &'static [Lock<Shard<K, V>>],
    limit: AtomicUsize,
    bytes: AtomicUsize,
}

const SHARDS: usize = 8;

/// The hash that [`Cache::get_hashed`] expects for a key.
#[inline]
pub fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<K: Hash + Eq + Send + Sync, V: Send + Sync> Cache<K, V> {
    /// A cache that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Cache::with_shards(limit, SHARDS)
    }

    /// A cache in as many separately locked parts; one is right for a cache that one thread mostly uses.
    pub fn with_shards(limit: usize, shards: usize) -> Self {
        Cache {
            shards: Box::leak((0..shards.max(1)).map(|_| Lock::new(Shard::default())).collect()),
            limit: AtomicUsize::new(limit),
            bytes: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn shard(&self, hash: u64) -> MutexGuard<'static, Shard<K, V>> {
        self.shards[(hash >> 48) as usize % self.shards.len()].lock()
    }

    /// The entry of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<Arc<Entry<K, V>>> {
        self.get_hashed(hash_of(key), |k| k == key)
    }

    /// The entry of a key that is at hand in another form: its [`hash_of`] and a test for equality.
    #[inline]
    pub fn get_hashed(&self, hash: u64, eq: impl Fn(&K) -> bool) -> Option<Arc<Entry<K, V>>> {
        let first = {
            let mut shard = self.shard(hash);
            let first = shard.first(hash);
            if first.is_none() {
                shard.misses += 1;
            }
            first
        }?;
        if eq(&first.key) {
            first.touch();
            return Some(first);
        }
        self.get_among(hash, eq)
    }

    /// As `get_hashed`, when several keys have one hash.
    #[cold]
    fn get_among(&self, hash: u64, eq: impl Fn(&K) -> bool) -> Option<Arc<Entry<K, V>>> {
        let found = self.peek(hash, eq);
        match &found {
            Some(e) => e.touch(),
            None => self.shard(hash).misses += 1,
        }
        found
    }

    fn peek(&self, hash: u64, eq: impl Fn(&K) -> bool) -> Option<Arc<Entry<K, V>>> {
        let all = self.shard(hash).all(hash);
        all.into_iter().find(|e| eq(&e.key))
    }

    /// Keeps a value, unless an equal key is there already or it alone passes the limit; gives the entry that counts.
    pub fn insert(&self, key: K, value: V, bytes: usize, owner: Option<OwnerId>) -> Arc<Entry<K, V>> {
        let hash = hash_of(&key);
        if let Some(known) = self.peek(hash, |k| *k == key) {
            return known;
        }
        let entry = Entry::new(hash, key, value, bytes, owner);
        if bytes > self.limit() {
            return entry;
        }
        self.bytes.fetch_add(bytes, Relaxed);
        self.shard(hash).insert(entry.clone());
        self.shrink(&entry);
        entry
    }

    /// The value of a key, made by `make` (with its bytes) when it is not there.
    pub fn get_or_insert(
        &self,
        key: K,
        owner: Option<OwnerId>,
        make: impl FnOnce(&K) -> Result<(V, usize)>,
    ) -> Result<Arc<Entry<K, V>>> {
        if let Some(found) = self.get(&key) {
            return Ok(found);
        }
        let (value, bytes) = make(&key)?;
        Ok(self.insert(key, value, bytes, owner))
    }

    /// Evicts until the limit holds; never `keep`.
    fn shrink(&self, keep: &Arc<Entry<K, V>>) {
        let mut shard = keep.hash as usize;
        // shards in a row that had nothing to give; the second time around their marks are cleared
        let mut idle = 0;
        while self.bytes.load(Relaxed) > self.limit() && idle < 2 * self.shards.len() {
            shard = (shard + 1) % self.shards.len();
            let gone = self.shards[shard].lock().evict(keep);
            match gone {
                Some(entry) => {
                    idle = 0;
                    self.bytes.fetch_sub(entry.bytes, Relaxed);
                }
                None => idle += 1,
            }
        }
    }

    /// Drops the entries of an owner.
    pub fn forget(&self, owner: OwnerId) {
        for shard in self.shards {
            let gone = shard.lock().forget(owner);
            self.bytes.fetch_sub(gone.iter().map(|e| e.bytes).sum(), Relaxed);
        }
    }

    /// Drops every entry and resets the counters.
    pub fn clear(&self) {
        for shard in self.shards {
            let gone = shard.lock().clear();
            self.bytes.fetch_sub(gone.iter().flatten().map(|e| e.bytes).sum(), Relaxed);
        }
    }

    /// The most bytes that are kept.
    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    /// Changes the limit; a smaller one takes effect with the next insertion.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Relaxed);
    }

    /// The counters.
    pub fn info(&self) -> CacheInfo {
        let mut info = CacheInfo { bytes: self.bytes.load(Relaxed), ..CacheInfo::default() };
        for shard in self.shards {
            let shard = shard.lock();
            info.misses += shard.misses;
            info.entries += shard.len();
            info.hits += shard.past_hits + shard.entries().map(|e| e.hits.load(Relaxed)).sum::<u64>();
        }
        info
    }

    /// The entries, of one owner or all; the order says nothing.
    pub fn entries(&self, owner: Option<OwnerId>) -> Vec<Arc<Entry<K, V>>> {
        let wanted = |e: &&Arc<Entry<K, V>>| owner.is_none() || e.owner == owner;
        self.shards.iter().flat_map(|s| s.lock().entries().filter(wanted).cloned().collect::<Vec<_>>()).collect()
    }

    /// Why a key is not there: its smallest difference from the keys of its owner (or all).
    pub fn explain_miss(&self, key: &K, owner: Option<OwnerId>) -> Miss
    where
        K: Explain,
    {
        let entries = self.entries(owner);
        nearest(key, entries.iter().map(|e| &e.key))
    }
}

impl<K: Send + Sync + 'static, V: Send + Sync + 'static> Drop for Cache<K, V> {
    fn drop(&mut self) {
        for shard in self.shards {
            let gone = shard.lock().clear();
            drop(gone);
        }
    }
}
