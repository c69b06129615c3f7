//! The transformations: staging, jvp, linearize, transpose, batching, and passes over programs.
//!
//! Everything here is generic over primitives: it calls their rules and knows only the few in [`structural`].
//!
//! Read next: [`structural`], then `ferrax-ops` for the rules.

pub mod structural;
