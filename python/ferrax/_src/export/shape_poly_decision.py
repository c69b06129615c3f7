"""Comparisons of sizes that are symbols."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(__name__, "bounds_decision geq_decision", "ferrax has no symbolic sizes")
