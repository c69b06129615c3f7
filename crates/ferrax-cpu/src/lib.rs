//! The embedded CPU engine.
