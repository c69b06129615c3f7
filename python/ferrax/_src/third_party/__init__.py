"""What JAX took from others, under its path."""
