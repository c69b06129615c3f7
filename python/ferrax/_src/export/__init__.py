"""Programs as files, under JAX's path."""
