"""Groups of operations that a scheduler keeps together: the embedded engine has an order of its own.

A program shows such a function as one equation with its notes, until it is compiled or differentiated. Read next:
`ferrax/_composites.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite, closed_program, types_of_program
from ferrax._core import typeof
from ferrax._ferrax import JaxprEqn
from ferrax._lazy import lend as _lend
from ferrax.interpreters.partial_eval import dce_closed_call, dce_rules

__all__ = ["dce_jaxpr_xla_metadata_rule", "scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions whose operations are to be scheduled together.

    Args:
      name: the group's name.

    Returns:
      The decorator.

    >>> from ferrax.experimental.scheduling_groups import scheduling_group
    >>> print(scheduling_group("layer")(lambda x: x + 1)(1))
    2
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Any:
    """A function whose operations have notes for XLA.

    Args:
      f: the function of pytrees of arrays; without it, the result is a decorator.
      **meta: notes by name, texts.

    Returns:
      The function.

    Raises:
      NotImplementedError: when the function is called: a note is no text.

    >>> import ferrax as jax
    >>> from ferrax.experimental.scheduling_groups import xla_metadata_call
    >>> f = xla_metadata_call(lambda x: x + 1, note="a")
    >>> print(f(1))
    2
    >>> [e.primitive.name for e in jax.make_jaxpr(f)(1).eqns]
    ['xla_metadata_call']
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    return functools.partial(_called, f, meta)


def _called(f: Callable[..., Any], meta: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    _check_notes(meta)
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    out_tree: Any = None

    def flat(*values: Any) -> list[Any]:
        nonlocal out_tree
        given, named = tree.unflatten(values)
        outs, out_tree = tree_util.tree_flatten(f(*given, **named))
        return outs

    program, captured = closed_program(flat, [typeof(x) for x in leaves], "xla_metadata_call")
    outs = xla_metadata_call_p.bind(*captured, *leaves, jaxpr=program, **meta)
    return tree_util.tree_unflatten(out_tree, outs)


def _check_notes(meta: dict[str, Any]) -> None:
    for note in meta.values():
        if not isinstance(note, str):
            raise NotImplementedError(f"xla_metadata_call takes notes that are texts, got {note!r}")


def _run(*args: Any, jaxpr: Any, **meta: Any) -> list[Any]:
    _check_notes(meta)
    return list(jaxpr.eval(*args))


xla_metadata_call_p = Composite("xla_metadata_call", _run, multiple_results=True, types=types_of_program)


def dce_jaxpr_xla_metadata_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """An equation of `xla_metadata_call_p` without what some of its results do not need.

    Args:
      used_outputs: which results are wanted.
      eqn: the equation.

    Returns:
      Which operands stay, and the equation; None where nothing of it stays.

    >>> import ferrax as jax
    >>> from ferrax.experimental import scheduling_groups
    >>> f = scheduling_groups.scheduling_group("a")(lambda x, y: (x + 1, y * 2))
    >>> (eqn,) = jax.make_jaxpr(f)(1, 1).eqns
    >>> used, less = scheduling_groups.dce_jaxpr_xla_metadata_rule([True, False], eqn)
    >>> used, len(less.params["jaxpr"].eqns)
    ([True, False], 1)
    """
    return dce_closed_call("jaxpr", used_outputs, eqn)


dce_rules[xla_metadata_call_p] = dce_jaxpr_xla_metadata_rule
# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "builtins": "unsafe_map=map unsafe_zip=zip",
        "ferrax._src.tree_util": "FlatTree",
        "ferrax._src.util": "map=safe_map safe_map safe_zip split_list subs_list unzip2 weakref_lru_cache zip=safe_zip",
        "ferrax.api_util": "debug_info",
        "ferrax.tree_util": "tree_flatten tree_unflatten",
    },
)
_expose(globals())
