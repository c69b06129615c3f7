"""References, under JAX's path."""
