//! Staging, jvp, linearize, transpose, batching and simplification.
