"""Groups of operations that a scheduler keeps together: the embedded engine has an order of its own.

A program shows such a function as one equation with its notes, and a lowered program as a call of a function. Read
next: `ferrax/_composites.py`, and `ferrax/_stablehlo_notes.py` for the call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._composites import Composite, closed_program, types_of_program
from ferrax._core import typeof
from ferrax._derivatives import linearize
from ferrax._ferrax import JaxprEqn
from ferrax._lazy import lend as _lend
from ferrax._primitives import UndefinedPrimal, Zero
from ferrax.experimental.xla_metadata import XlaMetadataContextManager
from ferrax.interpreters.partial_eval import dce_closed_call, dce_rules

__all__ = ["attr_get", "dce_jaxpr_xla_metadata_rule", "scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]


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


class _Noted(Composite):
    """The calls: what differentiation and `vmap` make of one are calls with its notes."""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Records the call, as one of a function in lowered programs."""
        with XlaMetadataContextManager(_notes(params)):
            outer = _ferrax.enter_composite("call @xla_metadata_call")
            try:
                return super().bind(*args, **params)
            finally:
                if outer:
                    _ferrax.set_scope(outer)

    def _general_derivative(
        self, primals: Sequence[Any], tangents: Sequence[Any], moving: Sequence[int], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        def forward(*args: Any) -> Any:
            def call(*values: Any) -> list[Any]:
                full = list(args)
                for i, value in zip(moving, values, strict=True):
                    full[i] = value
                return self._list(params, *full)

            return linearize(call, *(args[i] for i in moving))

        outs, push = _called(forward, _notes(params), *primals)
        dots = _called(lambda push, *dots: push(*dots), _notes(params), push, *(tangents[i] for i in moving))
        return outs, dots

    def _transposed(self, cts: Any, *args: Any, **params: Any) -> list[Any]:
        wanted = [k for k, ct in enumerate(cts) if type(ct) is not Zero]
        places = [i for i, a in enumerate(args) if type(a) is UndefinedPrimal]
        if not wanted:
            return super()._transposed(cts, *args, **params)

        def pull(given: list[Any], known: list[Any]) -> list[Any]:
            pulled, values = list(cts), iter(known)
            for k, ct in zip(wanted, given, strict=True):
                pulled[k] = ct
            full = [a if type(a) is UndefinedPrimal else next(values) for a in args]
            return [out for out in Composite._transposed(self, pulled, *full, **params) if out is not None]

        known = [a for a in args if type(a) is not UndefinedPrimal]
        found = iter(_called(pull, _notes(params), [cts[k] for k in wanted], known))
        return [next(found) if i in places else None for i in range(len(args))]

    def _mapped(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs = _called(lambda *values: Composite._mapped(self, axis, values, dims, **params)[0], _notes(params), *args)
        return outs, [0] * len(outs)


def _notes(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "jaxpr"}


xla_metadata_call_p = _Noted("xla_metadata_call", _run, multiple_results=True, types=types_of_program)


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


def attr_get(x: Any) -> NoReturn:
    """A note as an attribute of MLIR's, which ferrax does not have: raises NotImplementedError.

    Args:
      x: the note.

    >>> from ferrax.experimental import scheduling_groups
    >>> scheduling_groups.attr_get("a")
    Traceback (most recent call last):
    NotImplementedError: attr_get: ferrax has no attributes of MLIR's; notes are parameters of equations
    """
    raise NotImplementedError("attr_get: ferrax has no attributes of MLIR's; notes are parameters of equations")


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
