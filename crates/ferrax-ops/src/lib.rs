//! The primitives, one block each, and the functions that bind them.
