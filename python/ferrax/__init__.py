"""Composable transformations of array programs: JAX's interface over a Rust core."""

from ferrax import errors as errors
from ferrax import tree as tree
from ferrax import tree_util as tree_util
