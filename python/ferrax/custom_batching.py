"""Functions with batching rules of their own: `custom_vmap` and `sequential_vmap`.

Read next: `crates/ferrax-ops/src/control/custom_vmap.rs`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._named_functions import name_function, name_of
from ferrax._texts import differences, short
from ferrax._typed import P, R
from ferrax.custom_derivatives import _bound_arguments

__all__ = ["custom_vmap", "sequential_vmap"]


class custom_vmap(Generic[P, R]):
    """A function whose batching is given by a rule.

    Args:
      fun: the function.

    The rule, set with `def_vmap`, takes the number of rows, a list with a pytree of booleans for each argument (which
    leaves are batched) and the arguments themselves, batched leaves with their rows on axis 0. It returns the results
    and a pytree of booleans like them (or one that is a prefix): which are batched, on axis 0.

    Forward-mode derivatives under `vmap` use the rule's; reverse mode differentiates the function.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.custom_batching.custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     print("rows:", axis_size, in_batched)
    ...     return x + y, True
    >>> print(jax.vmap(f, in_axes=(0, None))(jnp.arange(3), 10))
    rows: 3 [True, False]
    [10 11 12]
    """

    def __init__(self, fun: Callable[P, R]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule: `(axis_size, in_batched, *args) -> (out, out_batched)`; returns it."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = name_of(self.fun, type(self.fun).__name__)
        rule = self.vmap_rule
        if rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap")
        rule_name = name_of(rule, type(rule).__name__)
        bound = _bound_arguments("custom_vmap", self.fun, args, kwargs)
        leaves, tree = tree_util.tree_flatten(bound)
        program = _ferrax.trace_to_jaxpr(self.fun, bound, None, "custom_vmap")

        def flat_rule(axis_size: int, batched: list[bool], values: list[Any]) -> tuple[list[Any], list[bool]]:
            in_batched = list(tree.unflatten(batched))
            pair = rule(axis_size, in_batched, *tree.unflatten(values))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"the vmap rule of {name} must return a pair (results, which of them are batched), got "
                    f"{short(pair)}"
                )
            return _flat_results(name, rule_name, program.out_tree, *pair)

        name_function(flat_rule, rule_name, arity=len(leaves))
        outs = _ferrax.bind_custom_vmap(program, name, flat_rule, leaves)
        return program.out_tree.unflatten(outs)


def _flat_results(name: str, rule: str, wanted: Any, out: Any, batched: Any) -> tuple[list[Any], list[bool]]:
    """A rule's results and which are batched, flat, checked against each other and against the function's."""
    leaves, tree = tree_util.tree_flatten(out)
    flags: list[bool] = []
    try:
        tree_util.tree_map(
            lambda flag, part: flags.extend([bool(flag)] * len(tree_util.tree_leaves(part))), batched, out
        )
    except ValueError as error:
        raise ValueError(
            f"structure of output value and output batching specification returned by custom vmap rule ({rule}) do not "
            f"match: the rule of {name} must say which results are batched by a pytree of booleans like the results or "
            f"a prefix of it: {error}"
        ) from None
    if tree != wanted:
        raise ValueError(
            f"structure of output returned by custom vmap rule ({rule}) does not match that of original custom-vmapped "
            f"function: {name} gives {short(wanted)}, but the rule {short(tree)}:"
            f"{differences(wanted, tree, 'the result of the function', 'that of the rule', 'output')}"
        )
    return leaves, flags


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """A function that `vmap` applies row by row, in a loop.

    Args:
      f: the function.

    Returns:
      A `custom_vmap` function with the same results.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.custom_batching.sequential_vmap
    ... def f(x):
    ...     jax.debug.print("{}", x)
    ...     return x * x
    >>> print(jax.vmap(f)(jnp.arange(2)))
    0
    1
    [0 1]
    """
    from ferrax.lax import map as lax_map

    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = tree_util.tree_flatten(args)
        flags = tree_util.tree_leaves(tuple(in_batched))
        rows = [leaf for leaf, on in zip(leaves, flags, strict=True) if on]

        def one(row: list[Any]) -> Any:
            given = iter(row)
            values = tree.unflatten([next(given) if on else x for x, on in zip(leaves, flags, strict=True)])
            return wrapped(*values)  # type: ignore[call-arg]

        out = lax_map(one, rows)
        return out, tree_util.tree_map(lambda _: True, out)

    return wrapped


_expose(globals())
