"""NumPy's functions, by JAX's files."""
