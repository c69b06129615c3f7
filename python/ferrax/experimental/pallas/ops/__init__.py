"""Kernels that come with JAX, for TPUs and GPUs: names that can be imported, and say so when they are used."""
