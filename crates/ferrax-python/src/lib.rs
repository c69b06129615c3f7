//! The Python extension module of ferrax.
