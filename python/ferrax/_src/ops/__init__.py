"""Scatter operations, under JAX's path."""
