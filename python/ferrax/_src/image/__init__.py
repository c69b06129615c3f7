"""Images, under JAX's path."""
