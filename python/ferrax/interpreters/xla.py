"""Running a primitive that users define through its compiled form."""

from __future__ import annotations

import functools
from typing import Any

from ferrax._api import jit as _jit
from ferrax._boundary import expose as _expose
from ferrax._primitives import Primitive
from ferrax._registered_types import canonicalize_dtype_handlers
from ferrax.extend.backend import Backend as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compiles a primitive and runs it: an implementation for `def_impl`, of a primitive that has a lowering.

    Args:
      prim: the primitive.
      *args: its operands.
      **params: its parameters.

    Returns:
      Its results.

    >>> import ferrax as jax, functools
    >>> inc_p = jax.extend.core.Primitive("inc")
    >>> _ = inc_p.def_abstract_eval(lambda x: x)
    >>> _ = inc_p.def_impl(functools.partial(jax.interpreters.xla.apply_primitive, inc_p))
    >>> rule = jax.interpreters.mlir.lower_fun(lambda x: x + 1, multiple_results=False)
    >>> jax.interpreters.mlir.register_lowering(inc_p, rule)
    >>> print(inc_p.bind(1.0))
    2.0
    """
    return _compiled(prim, tuple(sorted(params.items())), *args)


@functools.partial(_jit, static_argnums=(0, 1))
def _compiled(prim: Primitive, params: tuple[tuple[str, Any], ...], *args: Any) -> Any:
    return prim.bind(*args, **dict(params))


_expose(globals())
