"""Names for the values that policies of `checkpoint` may keep, under the module name JAX gives them."""

from __future__ import annotations

from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._checkpoint import checkpoint, checkpoint_policies, remat
from ferrax._ferrax import lax as _lax

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]


def checkpoint_name(x: Any, name: str) -> Any:
    """The value under a name, for policies such as `checkpoint_policies.save_only_these_names`.

    Args:
      x: array or pytree of arrays.
      name: the name.

    Returns:
      `x`. Outside `checkpoint` the name means nothing.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.ad_checkpoint import checkpoint_name
    >>> policy = jax.checkpoint_policies.save_only_these_names("hidden")
    >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.exp(x), "hidden")), policy=policy)
    >>> print(jax.grad(f)(0.0).round(3))
    0.54
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string for a name, got {name!r} of type {type(name).__name__}")
    return tree_util.tree_map(lambda leaf: _lax.checkpoint_name(leaf, name), x)


_expose(globals())
