"""`pcast`: what types say of manual axes. Read next: `ferrax/sharding/_marks.py` for sums that are due."""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._ferrax import lax as _lax
from ferrax.lax._axis_names import names_of
from ferrax.sharding._marks import not_varying, reduced_over, state

__all__ = ["pcast"]

#: What types of values can be made to say, by what they say: see `pcast`.
_CASTS = frozenset(
    [("invarying", "varying"), ("invarying", "reduced"), ("varying", "unreduced"), ("reduced", "varying")]
)


def _require_bound(name: str) -> None:
    """Raises NameError unless the name of an axis is bound; ValueError if the mesh in use has it, outside of maps."""
    from ferrax.sharding._context import get_abstract_mesh
    from ferrax.sharding._manual import names_in_force

    try:
        _lax.axis_size(name, "pvary")
    except NameError:
        if not names_in_force() and name in get_abstract_mesh().axis_names:
            raise ValueError("pvary should be called under jax.shard_map.") from None
        raise


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The value, which counts as varying over manual axes from now on.

    Under `shard_map` with `check_vma` the type of a value says over which axes it varies between devices; one that is
    the same everywhere is made to vary by this. Its transpose is the sum over the axes. It is done where a value that
    does not vary meets one that does; loops whose carry begins as a constant need not ask for it either.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the axis, or a tuple of names.
      to: `"varying"`; `"unreduced"`: what devices hold are terms of a sum that is still due, as `out_specs` with
        `unreduced` axes say; `"reduced"`: the value is the same everywhere, and its gradient is due over the axis.

    Returns:
      The values.

    Raises:
      ValueError: `to` is none of `"varying"`, `"reduced"`, `"unreduced"`, or the value varies already.
      NameError: nothing binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = lambda x: jax.typeof(jax.lax.pcast(x, "x", to="varying")).vma
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> g = lambda x: (print(*f(x)), x)[1]
    >>> print(jax.shard_map(g, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(jnp.ones(2)))
    x
    [1. 1.]
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError("Got unexpected `to` value. Allowed `to` values are: {'reduced', 'unreduced', 'varying'}")
    if not isinstance(axis_name, (str, tuple)):
        raise TypeError(f"axis_name={axis_name!r} must be a tuple or a str. Got {axis_name!r}")
    names = [str(n) for n in names_of(axis_name)]
    for n in names:
        _require_bound(n)
    checked = _ferrax.checked_axes(names)

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if not checked:
            return leaf
        aval = _ferrax.typeof(leaf)
        if to == "unreduced" and not set(checked) <= set(aval.mat.varying):
            raise not_varying(names, aval.mat.varying)
        states = state(aval, checked)
        if len(states) > 1:
            raise ValueError(
                "jax.lax.pcast can only accept axis_name which corresponds to one of varying, unreduced, reduced or "
                f"invarying state of the input. Got input type: {aval}, axes: {tuple(names)} and input state: "
                f"{set(states)}"
            )
        (have,) = states
        if (have, to) not in _CASTS:
            raise ValueError(f"Unsupported pcast from={have}, to={to!r}")
        if to == "varying":
            return _ferrax.pvary(leaf, checked)
        return reduced_over(leaf, checked) if to == "reduced" else _ferrax.vary_unreduced(leaf, checked)

    return tree_util.tree_map(one, x)
