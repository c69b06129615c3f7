//! Caches keyed by hash **and** equality, bounded in bytes, whose misses can be explained.
//!
//! Keys are kept as the structs they are, so that a miss can be told as its smallest difference from what is
//! there ([`Explain`]). A lookup locks one shard for the time of a table probe; keys are compared outside the
//! lock, so that a host's equality (Python's `__eq__`) may take its time and even call back into the cache. Values are
//! dropped outside the lock too. When the bytes pass the limit, entries not used since the hand last came by go first (the
//! clock algorithm, an approximation of least-recently-used). Entries can belong to an owner, a jitted function say, and go when
//! it does.
//!
//! What outlives the process is in a [`Store`].
//!
//! Read next: [`cache`], then [`explain`]; [`store`] stands alone.

pub mod cache;
pub mod explain;
mod shard;
pub mod store;

pub use cache::{Cache, CacheInfo, Entry, OwnerId};
pub use explain::{Difference, Explain, Miss};
pub use store::Store;
