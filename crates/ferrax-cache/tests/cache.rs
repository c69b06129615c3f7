//! What caches promise: equality decides, bytes are bounded, owners take their entries along, misses are explained.

use ferrax_cache::cache::hash_of;
use ferrax_cache::{Cache, CacheInfo, Difference, Explain, Miss, OwnerId};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A key whose hash says little.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    shape: usize,
    dtype: &'static str,
    mode: u8,
}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dtype.hash(state);
    }
}

impl Explain for Call {
    fn distance(&self, known: &Self) -> usize {
        self.differences(known).len()
    }

    fn differences(&self, known: &Self) -> Vec<Difference> {
        let mut out = Vec::new();
        if self.shape != known.shape {
            out.push(Difference::new("argument x: shape", known.shape, self.shape));
        }
        if self.dtype != known.dtype {
            out.push(Difference::new("argument x: dtype", known.dtype, self.dtype));
        }
        if self.mode != known.mode {
            out.push(Difference::new("static argument mode", known.mode, self.mode));
        }
        out
    }
}

fn call(shape: usize, dtype: &'static str, mode: u8) -> Call {
    Call { shape, dtype, mode }
}

#[test]
fn equality_decides_where_hashes_agree() {
    let cache: Cache<Call, usize> = Cache::new(1000);
    for n in 0..5 {
        cache.insert(call(n, "f32", 0), n * 10, 1, None);
    }
    for n in 0..5 {
        assert_eq!(cache.get(&call(n, "f32", 0)).unwrap().value, n * 10);
    }
    assert!(cache.get(&call(5, "f32", 0)).is_none());
    assert!(cache.get(&call(0, "i32", 0)).is_none());
    assert_eq!(cache.info(), CacheInfo { hits: 5, misses: 2, entries: 5, bytes: 5 });
}

#[test]
fn a_key_can_be_found_in_another_form() {
    let cache: Cache<String, u8> = Cache::new(1000);
    cache.insert("abc".into(), 1, 1, None);
    assert_eq!(cache.get_hashed(hash_of("abc"), |k| k == "abc").unwrap().value, 1);
}

#[test]
fn values_are_made_once_and_failures_are_not_kept() {
    let cache: Cache<u32, u32> = Cache::new(1000);
    let made = Cell::new(0);
    for _ in 0..3 {
        let make = |k: &u32| {
            made.set(made.get() + 1);
            Ok((k + 1, 4))
        };
        assert_eq!(cache.get_or_insert(7, None, make).unwrap().value, 8);
    }
    assert_eq!(made.get(), 1);
    assert!(cache.get_or_insert(8, None, |_| Err(ferrax_base::error!(Value, "no"))).is_err());
    assert!(cache.get(&8).is_none());
}

#[test]
fn bytes_stay_within_the_limit_and_the_used_survive() {
    let cache: Cache<u32, u32> = Cache::new(100);
    cache.insert(0, 0, 10, None);
    for i in 1..1000 {
        cache.insert(i, i, 10, None);
        assert!(cache.get(&0).is_some(), "evicted although used, at {i}");
        assert!(cache.info().bytes <= 100);
    }
    assert_eq!(cache.info().entries, 10);
    assert_eq!(cache.info().hits, 999);
    let big = cache.insert(5000, 1, 101, None);
    assert_eq!(big.value, 1);
    assert!(cache.get(&5000).is_none(), "larger than the limit: used, not kept");
    assert!(cache.get(&0).is_some());
    cache.set_limit(20);
    cache.insert(5001, 1, 10, None);
    assert!(cache.info().bytes <= 20);
}

#[test]
fn entries_go_with_their_owner() {
    let cache: Cache<u32, Arc<()>> = Cache::new(1000);
    let (a, b) = (OwnerId::fresh(), OwnerId::fresh());
    let value = Arc::new(());
    for i in 0..20 {
        cache.insert(i, value.clone(), 1, Some(if i % 2 == 0 { a } else { b }));
    }
    assert_eq!(cache.entries(Some(a)).len(), 10);
    cache.forget(a);
    assert_eq!((cache.info().entries, cache.info().bytes), (10, 10));
    assert_eq!(Arc::strong_count(&value), 11);
    assert!(cache.get(&0).is_none() && cache.get(&1).is_some());
    cache.clear();
    assert_eq!((cache.info(), Arc::strong_count(&value)), (CacheInfo::default(), 1));
}

#[test]
fn misses_are_explained_by_the_smallest_difference() {
    let cache: Cache<Call, ()> = Cache::new(1000);
    let (f, g) = (OwnerId::fresh(), OwnerId::fresh());
    assert_eq!(cache.explain_miss(&call(3, "f32", 0), Some(f)), Miss::First);
    cache.insert(call(3, "f32", 0), (), 1, Some(f));
    cache.insert(call(4, "i32", 1), (), 1, Some(f));
    cache.insert(call(5, "i32", 0), (), 1, Some(g));
    let miss = cache.explain_miss(&call(5, "f32", 0), Some(f));
    assert_eq!(miss, Miss::Differs(vec![Difference::new("argument x: shape", 3, 5)]));
    assert_eq!(miss.to_string(), "argument x: shape: was 3, now 5");
    let miss = cache.explain_miss(&call(4, "i32", 0), Some(f));
    assert_eq!(miss.to_string(), "static argument mode: was 1, now 0");
    assert_eq!(cache.explain_miss(&call(3, "f32", 0), None), Miss::Known);
}

#[test]
fn few_of_many_differences_are_told() {
    let differences: Vec<Difference> = (0..8).map(|i| Difference::new(format!("x[{i}]"), 0, i)).collect();
    let text = Miss::Differs(differences).to_string();
    assert!(
        text.starts_with("x[0]: was 0, now 0; x[1]: was 0, now 1;") && text.ends_with("now 4; and 3 more"),
        "{text}"
    );
}

/// A key whose equality uses the cache, as a host's may.
struct Nosy(u32, Arc<Cache<u32, ()>>);

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.1.insert(self.0, (), 1, None);
        self.0 == other.0
    }
}
impl Eq for Nosy {}
impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn comparing_keys_may_use_caches_and_dropping_values_too() {
    struct OnDrop(Arc<Cache<u32, OnDrop>>, bool);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            if self.1 {
                self.0.insert(999, OnDrop(self.0.clone(), false), 0, None);
            }
        }
    }
    let inner = Arc::new(Cache::new(1000));
    let cache: Cache<Nosy, ()> = Cache::with_shards(1000, 1);
    cache.insert(Nosy(1, inner.clone()), (), 1, None);
    assert!(cache.get(&Nosy(1, inner.clone())).is_some());
    assert_eq!(inner.info().entries, 1);

    let own: Arc<Cache<u32, OnDrop>> = Arc::new(Cache::with_shards(1, 1));
    own.insert(1, OnDrop(own.clone(), true), 1, None);
    own.insert(2, OnDrop(own.clone(), false), 1, None);
    assert!(own.get(&999).is_some(), "the value dropped by eviction ran its code");
    own.clear();
}

#[test]
fn threads_share_it() {
    let cache: Cache<u64, u64> = Cache::new(64 * 8);
    let made = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for t in 0..4 {
            let (cache, made) = (&cache, &made);
            s.spawn(move || {
                for i in 0..2000u64 {
                    let k = (i * (t + 1)) % 97;
                    let make = |k: &u64| {
                        made.fetch_add(1, Relaxed);
                        Ok((k * 3, 8))
                    };
                    assert_eq!(cache.get_or_insert(k, Some(OwnerId(k % 5)), make).unwrap().value, k * 3);
                    if i % 500 == 0 {
                        cache.forget(OwnerId(k % 5));
                    }
                }
            });
        }
    });
    let info = cache.info();
    // a hit on an entry that another thread evicts just then is not counted
    assert!((7900..=8000).contains(&(info.hits + info.misses)), "{info:?}");
    assert_eq!(info.misses, made.load(Relaxed) as u64);
    assert!(info.bytes <= 64 * 8 + 4 * 8);
    assert_eq!(info.bytes, info.entries * 8);
}
