"""Loggers that settings name."""

from ferrax import _logging
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__, "_set_cpp_min_log_level", "ferrax logs by Python's logging, under the name ferrax"
)

logging_formatter = _logging.FORMAT


def update_logging_level_global(logging_level: str | None) -> None:
    """Prints what ferrax's loggers say from a level on, or no more where there is None."""
    _logging.apply("jax_logging_level", logging_level)


def update_debug_log_modules(module_names_str: str | None) -> None:
    """Prints all that loggers say whose names, parted by commas, are given, and no more what others did."""
    _logging.apply("jax_debug_log_modules", module_names_str)


def _enable_debug_logging(logger_name: str) -> None:
    """Prints all that one logger more says."""
    _logging.add_module(logger_name)


def _disable_all_debug_logging() -> None:
    """Prints no more what loggers say that were named."""
    _logging.apply("jax_debug_log_modules", None)
