"""Orders between operations that share no values: calls of the foreign function "control_dep".

The embedded CPU runs operations in the order of their program, and has nothing to do for them.

Read next: `ferrax/ffi.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ferrax._boundary import expose as _expose

__all__ = ["control_dep", "schedule"]


def control_dep(src: Any, dst: Any) -> Any:
    """Lets one operation run after another one.

    Args:
      src: the result of the first.
      dst: the result of the second.

    Returns:
      An empty tuple.

    Raises:
      NotImplementedError: a plugin's platform is to run it.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.control_deps import control_dep
    >>> program = jax.make_jaxpr(control_dep)(jnp.ones(2), jnp.ones(2))
    >>> [e.primitive.name for e in program.eqns]
    ['ffi_call']
    """
    from ferrax.ffi import ffi_call

    return ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Lets operations run in an order.

    Args:
      ops: their results.

    Raises: as in `control_dep`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.control_deps import schedule
    >>> len(jax.make_jaxpr(lambda *xs: schedule(xs))(*[jnp.ones(2)] * 3).eqns)
    2
    """
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)


_expose(globals())
