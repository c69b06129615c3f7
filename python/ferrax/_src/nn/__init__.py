"""Functions for neural networks, by JAX's files."""
