"""ferrax's loggers, and what the settings `jax_logging_level` and `jax_debug_log_modules` do to them.

All are below the logger `ferrax`, which is itself below the logger `jax`: whoever listens there hears what ferrax says.
The settings print on the standard error stream, each record once, and are undone by their next value. Logger names of
JAX (`jax`, `jax.x`) stand for ferrax's. Read next: `config.py`, whose `update` calls `apply`.
"""

import logging
import sys

LEVELS = (None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

_ROOT = logging.getLogger("ferrax")
_ROOT.parent = logging.getLogger("jax")
FORMAT = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")


def logger(name: str) -> logging.Logger:
    """The logger of a name that begins with `ferrax`.

    >>> from ferrax._logging import logger
    >>> logger("ferrax.jit").parent.parent.name
    'jax'
    """
    return logging.getLogger(name)


class _Stderr(logging.StreamHandler):
    """Prints on what is the standard error stream now."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(FORMAT)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


_level_handler, _debug_handler = _Stderr(), _Stderr()
# a record goes on to the handlers of the loggers above
_debug_handler.addFilter(lambda record: _level_handler not in _ROOT.handlers)

#: The loggers that a handler was given to, and their levels before.
_changed: dict[logging.Handler, list[tuple[logging.Logger, int]]] = {_level_handler: [], _debug_handler: []}


def _set(handler: logging.Handler, loggers: list[logging.Logger], level: int) -> None:
    """Undoes what was done with a handler, and gives it to loggers with a level of theirs."""
    for logger, before in reversed(_changed[handler]):
        logger.removeHandler(handler)
        logger.setLevel(before)
    _changed[handler] = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
        logger.addHandler(handler)


def _names(text: str) -> list[str]:
    """The loggers of a list of modules, without those below another one of the list."""
    names = {name.strip() for name in text.split(",")} - {""}
    ours = {"ferrax" + name[3:] if f"{name}.".startswith("jax.") else name for name in names}
    return sorted(name for name in ours if not any(name.startswith(f"{other}.") for other in ours))


def apply(name: str, value: str | None) -> None:
    """Does what a setting's new value says.

    Args:
      name: `jax_logging_level`, whose value is a level's name, or None or "NOTSET" for no level of ferrax's own; or
        `jax_debug_log_modules`, whose value is loggers' names parted by commas.
      value: the value.
    """
    if name == "jax_logging_level":
        level = logging.getLevelName(value or "NOTSET")
        _set(_level_handler, [_ROOT] if level else [], level)
    else:
        _set(_debug_handler, [logging.getLogger(n) for n in _names(value or "")], logging.DEBUG)


def add_module(name: str) -> None:
    """Prints all that a logger says, beside what others say that were named."""
    named = ",".join(logger.name for logger, _ in _changed[_debug_handler])
    apply("jax_debug_log_modules", f"{named},{name}")
