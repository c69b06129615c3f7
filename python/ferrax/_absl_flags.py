"""Settings as flags of the command line, for programs that use absl: ``--jax_enable_x64``, ``--jax_platforms=cpu``.

``config.parse_flags_with_absl()`` comes here, and only then is absl imported. Read next: `config.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

__all__ = ["apply", "define", "parse"]

_parsed = False


def define(settings: Mapping[str, Any]) -> None:
    """Defines one flag a setting, whose value is applied when absl's ``app.run`` has read the command line.

    Args:
      settings: the settings with their values. A flag that is already there is left as it is.

    Raises:
      ModuleNotFoundError: absl is not installed.
    """
    from absl import app, flags

    kinds = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}
    for name, value in settings.items():
        if name not in flags.FLAGS:
            kinds.get(type(value), flags.DEFINE_string)(name, value, f"The setting {name}.")
    app.call_after_init(lambda: apply(flags))


def apply(flags: Any) -> None:
    """Gives settings the values of the flags that the command line has.

    Args:
      flags: the module ``absl.flags``.
    """
    from ferrax.config import config

    for name in config.values:
        if name in flags.FLAGS and flags.FLAGS[name].present:
            config.update(name, flags.FLAGS[name].value)


def parse(settings: Mapping[str, Any]) -> None:
    """Defines the flags and reads them from ``sys.argv``, once in a process; other flags are left to the program.

    Args:
      settings: the settings with their values.
    """
    global _parsed
    if _parsed:
        return
    from absl import flags

    define(settings)
    before = takewhile(lambda a: a != "--", sys.argv[1:])
    flags.FLAGS(["", *(a for a in before if a.startswith(("--jax", "--ferrax")))], known_only=True)
    apply(flags)
    _parsed = True
