"""Where in a machine operations run: on the embedded engine, the CPU, there is one place.

Values say what they are whichever place is named, so names are checked and nothing else is done.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._devices import device_put as _device_put

__all__ = ["compute_on", "compute_on2"]


def _check(compute_type: str) -> None:
    known = ("device_host", "device", "tpu_sparsecore")
    if compute_type not in known and not re.fullmatch(r"gpu_stream:\d+", str(compute_type)):
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are `device_host`, `device`, "
            "`tpu_sparsecore`, and `gpu_stream:#`."
        )


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A context, or a decorator, for operations that are to run in one place of a machine.

    Args:
      compute_type: `"device_host"`, `"device"`, `"tpu_sparsecore"` or `"gpu_stream:3"`.

    Raises:
      ValueError: another place.

    >>> from ferrax.experimental.compute_on import compute_on
    >>> with compute_on("device_host"):
    ...     print(1 + 1)
    2
    """
    _check(compute_type)
    yield


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Any = None,
) -> Any:
    """A function that is to run in one place of a machine.

    Args:
      f: the function; without it, the result is a decorator.
      compute_type: as for `compute_on`.
      out_memory_spaces: the memory space of the results (`ferrax.memory.Space`), a prefix of their tree.
      compiler_options: accepted for compatibility.

    Returns:
      The function.

    Raises:
      ValueError: another place.

    >>> import ferrax as jax
    >>> from ferrax.experimental.compute_on import compute_on2
    >>> twice = compute_on2(lambda x: 2 * x, compute_type="device_host", out_memory_spaces=jax.memory.Space.Device)
    >>> print(twice(3.0))
    6.0
    """
    _check(compute_type)
    if f is None:
        return functools.partial(
            compute_on2,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        return tree_util.tree_map(
            lambda space, part: tree_util.tree_map(lambda x: _device_put(x, space), part), out_memory_spaces, out
        )

    return wrapped


_expose(globals())
