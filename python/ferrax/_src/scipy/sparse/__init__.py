"""Sparse systems, under JAX's path."""
