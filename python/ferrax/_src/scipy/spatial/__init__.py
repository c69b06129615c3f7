"""Rotations, under JAX's path."""
