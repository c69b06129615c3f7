"""Primitives that take or give values that are no arrays, as primitives of the arrays that stand for these.

`OfArrays` has, for each such operand or result, the arrays that stand for it and its tangent. Its rules make values of
these, ask the primitive that it is of, and take the values apart again.

Read next: `_hi_primitives.py` for rules; `ferrax/_high_tangents.py` for tangents.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._high_tangents import HighTracer, closed, lowered, opened, plain, raised, tangent_type
from ferrax._primitives import Zero, zeros_of
from ferrax.experimental._hi_primitives import Mapped, VJPHiPrimitive

__all__ = ["OfArrays", "apply"]


def apply(prim: VJPHiPrimitive, args: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
    """The result of a primitive, of which some operand or result is no array.

    Args:
      prim: the primitive.
      args: its operands, values among them.
      leaves: the operands' leaves.
    """
    if not _inside.expands:
        _check_values(prim, leaves)
    given = tuple(_apart(a, x) for a, x in zip(prim.in_avals_flat, leaves, strict=True))
    if _ferrax.is_eager() and not any(map(_ferrax.is_tracer, tree_util.tree_leaves(given))):
        return prim.expand(*args)
    out = OfArrays(prim)(*given)
    return prim.out_tree.unflatten([_together(a, x) for a, x in zip(prim.out_avals_flat, out, strict=True)])


class _Inside(threading.local):
    """How many `expand`s of such primitives are at work: these make values by their classes."""

    expands = 0


_inside = _Inside()


def _check_values(prim: VJPHiPrimitive, leaves: Sequence[Any]) -> None:
    """Raises where a value was made of traced arrays by its class: derivatives of these would be lost."""
    for aval, x in zip(prim.in_avals_flat, leaves, strict=True):
        if _is_high(aval) and not isinstance(x, HighTracer) and any(map(_ferrax.is_tracer, aval.lower_val(x))):
            raise TypeError(
                f"{prim!r} got a {type(x).__name__} made of traced arrays: outside of `expand` primitives make values"
            )


def _is_high(aval: Any) -> bool:
    return bool(getattr(aval, "is_high", False))


def _types(aval: Any) -> Any:
    """The types of the arrays that stand for a value, and of its tangent, last."""
    if not _is_high(aval):
        return aval
    kind = tangent_type(aval)
    return (*aval.lo_ty(), *([] if kind is None else [kind]))


def _apart(aval: Any, x: Any) -> Any:
    return lowered(aval, x) if _is_high(aval) else x


def _together(aval: Any, arrays: Any) -> Any:
    if not _is_high(aval):
        return arrays
    count = len(aval.lo_ty())
    return raised(aval, arrays[:count], arrays[count] if len(arrays) > count else None)


def _last(aval: Any, parts: Any) -> Any:
    """What belongs to the tangent, of something for each array that stands for a value."""
    if not _is_high(aval):
        return parts
    if tangent_type(aval) is None:
        raise NotImplementedError(f"derivatives of values of type {aval}, whose tangents are no arrays")
    return parts[-1]


class OfArrays(VJPHiPrimitive):
    """A primitive of values as one of arrays.

    Args:
      of: the primitive.

    >>> import ferrax as jax
    >>> from ferrax.experimental._high_primitives import OfArrays
    >>> issubclass(OfArrays, jax.experimental.hijax.VJPHiPrimitive)
    True
    """

    def __init__(self, of: VJPHiPrimitive):
        self.of = of
        self.in_avals = tuple(map(_types, of.in_avals_flat))
        self.out_aval = tuple(map(_types, of.out_avals_flat))
        self.params = {"of": of}
        super().__init__()

    def __repr__(self) -> str:
        return repr(self.of)

    def defines(self, name: str) -> bool:
        """Whether there is a rule."""
        return self.of.defines(name)

    def _values(self, args: Any) -> Any:
        return self.of._args([_together(a, x) for a, x in zip(self.of.in_avals_flat, args, strict=True)])

    def _of_tangents(self, parts: Any) -> Any:
        return self.of._args([_last(a, x) for a, x in zip(self.of.in_avals_flat, parts, strict=True)])

    def _given(self, out: Any, what: str) -> tuple[Any, ...]:
        leaves = self.of._results(out, what)
        return tuple(_apart(a, x) for a, x in zip(self.of.out_avals_flat, leaves, strict=True))

    def expand(self, *args: Any) -> Any:
        values = self.of.in_tree.unflatten([plain(x) for x in tree_util.tree_leaves(self._values(args))])
        _inside.expands += 1
        try:
            return self._given(self.of.expand(*values), "`expand`")
        finally:
            _inside.expands -= 1

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        out, res = self.of.vjp_fwd(self._of_tangents(nzs_in), *self._values(args))
        return self._given(out, "`vjp_fwd`"), closed(res)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        cts = [_last(a, ct) for a, ct in zip(self.of.out_avals_flat, outgrad, strict=True)]
        self.of.vjp_bwd(opened(res), self.of.out_tree.unflatten(cts), *self._of_tangents(arg_accums))

    def jvp(self, primals: Any, tangents: Any) -> Any:
        out, out_dot = self.of.jvp(self._values(primals), self._of_tangents(tangents))
        leaves = self.of._results(out_dot, "`jvp`")
        pairs = zip(self.of.out_avals_flat, self.out_aval, leaves, strict=True)
        return self._given(out, "`jvp`"), tuple(_tangents(a, types, dot) for a, types, dot in pairs)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        out_dim = tree_util.tree_map(lambda _: 0, self.out_aval)
        return Mapped(self, axis_data, dims, out_dim, args)(*args), out_dim


def _tangents(aval: Any, types: Any, dot: Any) -> Any:
    """The tangents of the arrays that stand for a value with a given one."""
    if not _is_high(aval):
        return dot
    still = tuple(zeros_of(t.to_tangent_aval()) for t in types[:-1])
    return (*still, zeros_of(types[-1]) if type(dot) is Zero else dot)
