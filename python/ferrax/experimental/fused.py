"""Functions that are to be one kernel: an equation of their own in programs, which an engine fuses as it fuses others.

Read next: `ferrax/_composites.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite, closed_program, types_of_program
from ferrax._core import typeof
from ferrax._lazy import lend as _lend

__all__ = ["fused", "fused_p"]


def fused(*, out_spaces: Sequence[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions whose operations are to be one kernel.

    What an engine fuses, it decides itself. On any engine, the function is one equation of programs.

    Args:
      out_spaces: the memory space of each leaf of the result: `ferrax.memory.Space.Device`, or `Space.Any`.

    Returns:
      The decorator, of functions of pytrees of arrays.

    Raises:
      ValueError: when the function is called: there is not one memory space for each result.
      NotImplementedError: when it is called: a result is to be in the memory of the host.

    >>> import ferrax as jax
    >>> from ferrax.experimental.fused import fused
    >>> f = fused(out_spaces=(jax.memory.Space.Device,))(lambda x: 2 * x + 1)
    >>> print(f(3.0), [e.primitive.name for e in jax.make_jaxpr(f)(3.0).eqns])
    7.0 ['fused_call']
    """
    spaces = tuple(out_spaces)

    def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            leaves, tree = tree_util.tree_flatten(args)
            out_tree: Any = None

            def flat(*values: Any) -> list[Any]:
                nonlocal out_tree
                outs, out_tree = tree_util.tree_flatten(f(*tree.unflatten(values)))
                return outs

            program, captured = closed_program(flat, [typeof(x) for x in leaves], "fused")
            _check_spaces(spaces, program)
            outs = fused_p.bind(*captured, *leaves, jaxpr=program, out_spaces=spaces)
            return tree_util.tree_unflatten(out_tree, outs)

        return wrapped

    return wrap


def _check_spaces(out_spaces: tuple[Any, ...], program: Any) -> None:
    count = len(program.out_avals)
    if len(out_spaces) != count:
        raise ValueError(f"fused: out_spaces has {len(out_spaces)} memory spaces for {count} results")
    for space in out_spaces:
        if getattr(space, "name", space) not in ("Any", "Device"):
            raise NotImplementedError(f"fused with results in the memory space {space} is not implemented")


def _run(*args: Any, jaxpr: Any, out_spaces: tuple[Any, ...]) -> list[Any]:
    _check_spaces(out_spaces, jaxpr)
    return list(jaxpr.eval(*args))


fused_p = Composite("fused_call", _run, multiple_results=True, types=types_of_program)

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "builtins": "unsafe_map=map unsafe_zip=zip",
        "ferrax._core": "typeof",
        "ferrax._src.util": "map=safe_map safe_map safe_zip unzip2 weakref_lru_cache zip=safe_zip",
        "ferrax.api_util": "debug_info flatten_fun_nokwargs",
        "ferrax.tree_util": "tree_flatten tree_unflatten",
    },
)
_expose(globals())
