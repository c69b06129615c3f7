"""Lowerings of primitives that users define: functions that can be traced.

ferrax has no MLIR: a lowering is a function of arrays (`lower_fun`), traced into the program that is compiled. For a
rule that builds MLIR the primitive's implementation (`def_impl`) runs, called back from the program; without one, a
rule may hand on operands. Read next: `ferrax/_primitives.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._primitives import Lowering, Primitive, primitive_lowerings
from ferrax.extend.lowering import LoweringRuleContext

__all__ = ["LoweringRuleContext", "lower_fun", "register_lowering"]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A lowering given by a function of arrays.

    Args:
      fun: function of the operands and the parameters.
      multiple_results: whether it returns a sequence of results.

    Returns:
      A rule for `register_lowering`.

    >>> import ferrax as jax
    >>> rule = jax.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    >>> callable(rule)
    True
    """
    return Lowering(fun, multiple_results)


_PLATFORMS = ("cpu", "cuda", "gpu", "interpreter", "oneapi", "rocm", "tpu")


def register_lowering(
    prim: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Sets how a primitive is compiled.

    Args:
      prim: the primitive.
      rule: what `lower_fun` gives; of another rule, the primitive's implementation is called from the program, or,
        where it has none, the results are the operands that the rule gives.
      platform: the platform that the rule is for; None for all.
      inline: accepted for compatibility.
      cacheable: accepted for compatibility.

    Raises:
      NotImplementedError: there is no such platform.

    >>> import ferrax as jax
    >>> twice_p = jax.extend.core.Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> rule = jax.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    >>> jax.interpreters.mlir.register_lowering(twice_p, rule)
    >>> print(jax.jit(twice_p.bind)(3.0))
    6.0
    """
    if platform is not None and platform not in _PLATFORMS:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {', '.join(_PLATFORMS)}."
        )
    primitive_lowerings.setdefault(prim, {})[platform] = rule


_expose(globals())
