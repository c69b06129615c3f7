"""Indices of references."""

from ferrax import ds as ds

dslice = ds
