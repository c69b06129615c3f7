//! Caches keyed by hash and equality, bounded in bytes, with explainable misses.
