"""Pullbacks and linear functions as nodes of pytrees: what they keep of the forward run are their leaves.

So they can be returned from and given to jitted functions. `crates/ferrax-python/src/api/residuals.rs` takes them
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util

#: The dtype of tangents of integers.
_FLOAT0 = _ferrax.dtype_object("float0")


def _register(kind: Any) -> None:
    tree_util.register_pytree_node(kind, kind._flatten, lambda data, leaves: kind._unflatten(data, list(leaves)))


class NotNeeded:
    """Stands in `args_res` of a pullback for an argument that the backward pass does not need; no leaf."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NotNeeded()"


tree_util.register_pytree_node(NotNeeded, lambda _: ((), ()), lambda *_: NotNeeded())


def _in_tuples(tree: Any, leaves: Iterator[Any]) -> Any:
    """A tree with a tuple in the place of every container."""
    if tree_util.treedef_is_leaf(tree) and tree.num_leaves:
        return next(leaves)
    return tuple(_in_tuples(child, leaves) for child in tree.children())


def _arranged(tree: Any, values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """The arguments that a pullback keeps, a tree of tuples each, whatever containers they came in."""
    kept = iter([v if w else NotNeeded() for v, w in zip(values, wanted, strict=True)])
    return list(_in_tuples(tree, kept))


def _restored(listed: Any, tree: Any, wanted: Sequence[bool]) -> list[Any]:
    """The flat arguments of a pullback whose `args_res` is a list; of those that are not wanted any value.

    Containers may be the arguments' own or others: leaves go by their order.
    """
    leaves, given = tree_util.tree_flatten(tuple(listed), is_leaf=lambda x: isinstance(x, NotNeeded))
    if len(leaves) != tree.num_leaves:
        raise ValueError(f"args_res of a VJP function has the structure {given}, but the arguments have {tree}")
    lacking = [i for i, (x, w) in enumerate(zip(leaves, wanted, strict=True)) if w and isinstance(x, NotNeeded)]
    if lacking:
        raise ValueError(f"args_res of a VJP function lacks values that the backward pass needs: leaves {lacking}")
    return leaves


def _taken_apart(pull: Any) -> tuple[list[Any], Any]:
    """Leaves and data of a pullback; of an edited one, whose `args_res` are not the arguments, what these have."""
    try:
        leaves, data = pull._flatten()
    except ValueError:  # values are to be put back before it is called
        kept, tree = tree_util.tree_flatten(pull.args_res)
        return [*kept, *pull.opaque_residuals], (*pull._hollow(), tree)
    return leaves, (data, 0, None)


def _put_together(node: Any, children: Iterable[Any]) -> Any:
    (data, arguments, tree), leaves = node, list(children)
    if tree is None:
        return _ferrax.VJP._unflatten(data, leaves)
    count = tree.num_leaves
    # whatever stands for the arguments, `args_res` comes before it
    pull = _ferrax.VJP._unflatten(data, [*[0] * arguments, *leaves[count:]])
    pull.args_res = tree.unflatten(leaves[:count])
    return pull


def _shown(self: Any) -> str:
    """The parts that can be seen and set."""
    parts = ("in_tree", "out_tree", "args_res", "opaque_residuals")
    return f"VJP({', '.join(f'{name}={getattr(self, name)!r}' for name in parts)})"


_ferrax.VJP.__repr__ = _shown  # type: ignore[method-assign]
tree_util.register_pytree_node(_ferrax.VJP, _taken_apart, _put_together)
_register(_ferrax.LinearizedFunction)


def linear_program(data: Any, kept: Sequence[Any], types: Sequence[Any] = ()) -> Any:
    """The linear part of a function as a program.

    Args:
      data: what the node of the pullback, or of the linear function, holds beside its leaves.
      kept: the leaves, which are constants of the program.
      types: types of leaves where there are none: they are the first arguments of the program.

    Returns:
      A program of tangents, those of floats alone.
    """
    tree, primals, _ = data.parts
    tangents = [a.to_tangent_aval() for a in primals]
    is_float = [t.dtype != _FLOAT0 for t in tangents]

    def run(*values: Any) -> Any:
        leaves, given = [*kept, *values[: len(types)]], iter(values[len(types) :])
        all_tangents = [
            next(given) if on else np.zeros(t.shape, _FLOAT0) for t, on in zip(tangents, is_float, strict=True)
        ]
        return _ferrax.LinearizedFunction._unflatten(data, leaves)(*tree.unflatten(all_tangents))

    inputs = [*types, *(t for t, on in zip(tangents, is_float, strict=True) if on)]
    return _ferrax.trace_to_jaxpr(run, tuple(inputs), None, "linearize")


def _func(self: Any) -> Any:
    """The function that it is, of the linear program and of tangents: `func.args[0]` is the program."""
    return SimpleNamespace(args=(_jaxpr(self),))


def _jaxpr(self: Any) -> Any:
    """The linear part as a program, from tangents of the arguments to tangents of the results."""
    leaves, data = self._flatten()
    return linear_program(data, leaves).jaxpr


setattr(_ferrax.LinearizedFunction, "func", property(_func))  # noqa: B010
setattr(_ferrax.VJP, "jaxpr", property(_jaxpr))  # noqa: B010


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, as two functions.

    Args:
      fun: function to differentiate.
      argnums: position, or positions, of the arguments to differentiate.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      jitted: whether both functions are compiled.

    Returns:
      `(fwd, bwd)`: `fwd` takes the function's arguments and gives `(value, residuals)`, or `(value, residuals, aux)`;
      `bwd` takes `(residuals, cotangent)` and gives the cotangent of the argument, or a tuple of them.

    >>> import ferrax as jax
    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, residuals = fwd(3.0, 4.0)
    >>> print(value, *bwd(residuals, 1.0))
    12.0 4.0 3.0
    """
    from ferrax._api import jit
    from ferrax._derivatives import _active, vjp

    def fwd(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _active(fun, argnums, args, kwargs)
        return vjp(of_active, *active, has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        pulled = residuals(cotangent)
        return pulled[0] if isinstance(argnums, int) else pulled

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
