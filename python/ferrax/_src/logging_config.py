"""Loggers that settings name."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_set_cpp_min_log_level update_logging_level_global",
    "ferrax logs by Python's logging, under the name ferrax",
)
