"""What JAX took from SciPy, under its path."""
