"""Tables of cases for JAX's tests."""
