"""Rules of transformations, under JAX's path."""
