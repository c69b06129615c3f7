"""Rematerialization: `checkpoint` and the policies that say what reverse mode may keep.

The function is traced to one program; linearization keeps its inputs and what the policy approves and computes the
rest again. Read next: `crates/ferrax-ops/src/control/remat.rs`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._boundary import shielded

__all__ = ["checkpoint", "checkpoint_policies", "remat"]

Policy = Callable[..., bool]


def _everything_saveable(*_: Any, **__: Any) -> bool:
    """Every intermediate value may be kept."""
    return True


def _nothing_saveable(*_: Any, **__: Any) -> bool:
    """Nothing but the inputs may be kept: the default."""
    return False


def _dots_saveable(primitive: Any, *_: Any, **__: Any) -> bool:
    """Results of dot products may be kept."""
    return str(primitive) in ("dot_general", "conv_general_dilated")


def _dots_with_no_batch_dims_saveable(primitive: Any, *_: Any, **params: Any) -> bool:
    """Results of dot products without batch axes may be kept: matrix products of activations and weights."""
    if str(primitive) != "dot_general":
        return False
    batch = str(params.get("dimension_numbers", "")).replace(" ", "")
    return batch.endswith("([],[]))")


def _save_names(names: frozenset[str]) -> Policy:
    def policy(primitive: Any, *_: Any, **params: Any) -> bool:
        return str(primitive) == "name" and str(params.get("name")) in names

    policy.__name__ = f"save_only_these_names({', '.join(sorted(names))})"
    return policy


def _save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Only values named by `checkpoint_name` with one of these names may be kept."""
    return _save_names(frozenset(names_which_can_be_saved))


def _save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """What either policy approves may be kept."""

    def policy(primitive: Any, *args: Any, **params: Any) -> bool:
        return bool(policy_1(primitive, *args, **params) or policy_2(primitive, *args, **params))

    return policy


class checkpoint_policies:
    """What reverse mode may keep of a function under `checkpoint`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = jax.checkpoint(lambda w, x: jnp.sin(w @ x), policy=jax.checkpoint_policies.dots_saveable)
    >>> print(jax.grad(lambda w: f(w, jnp.ones(2)).sum())(jnp.zeros((1, 2))))
    [[1. 1.]]
    """

    everything_saveable = staticmethod(_everything_saveable)
    nothing_saveable = staticmethod(_nothing_saveable)
    dots_saveable = staticmethod(_dots_saveable)
    checkpoint_dots = staticmethod(_dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(_dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(_dots_with_no_batch_dims_saveable)
    save_only_these_names = staticmethod(_save_only_these_names)
    save_from_both_policies = staticmethod(_save_from_both_policies)


@functools.lru_cache(maxsize=256)
def _policy(fun: Policy) -> Any:
    """The Rust object of a policy: one a function, so that equal calls share their programs."""
    return _ferrax.CheckpointPolicy(fun)


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Any:
    """A function whose intermediate values reverse mode computes again instead of keeping.

    Args:
      fun: function to wrap; without it, returns a decorator.
      prevent_cse: whether the compiler must keep the second computation apart from the first.
      policy: says of each operation whether its results may be kept; see `checkpoint_policies`.
      static_argnums: positions of arguments that are not traced; they must be hashable.
      concrete: accepted for compatibility; must be false.

    Returns:
      A function with the same results and derivatives.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    if fun is None:
        return functools.partial(
            checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, concrete=concrete
        )
    if concrete:
        raise NotImplementedError("checkpoint with concrete=True is not supported; use static_argnums instead")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    target = fun

    @functools.wraps(target)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        places = {n % len(args) for n in static} if args else set()
        dynamic = tuple(a for i, a in enumerate(args) if i not in places)

        def call(*values: Any, **named: Any) -> Any:
            rest = iter(values)
            return target(*(args[i] if i in places else next(rest) for i in range(len(args))), **named)

        program = _ferrax.trace_to_jaxpr(call if places else target, dynamic, kwargs, "checkpoint")
        leaves = tree_util.tree_leaves((dynamic, kwargs))
        rule = None if policy is None else _policy(policy)
        return program.out_tree.unflatten(_ferrax.bind_remat(program, leaves, prevent_cse, rule))

    return shielded(wrapped)


remat = checkpoint
