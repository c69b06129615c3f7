"""SciPy's functions, by JAX's files."""
