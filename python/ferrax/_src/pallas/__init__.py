"""Kernels, under JAX's paths."""
