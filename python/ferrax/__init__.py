"""Composable transformations of array programs: JAX's interface over a Rust core."""

from ferrax import errors as errors
