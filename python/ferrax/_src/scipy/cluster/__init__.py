"""Clusters, under JAX's path."""
