"""What extends ferrax, under JAX's path."""
