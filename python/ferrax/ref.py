"""References: arrays that are read and written in place.

A function may read and write references that it is given or closes over, under `jit`, in loops and branches, and (as
arguments) under `vmap`; transformations see a function of their values. What is written must not be differentiated or
mapped by a transformation that began after the reference was made. Read next: `_refs.py`.
"""

from __future__ import annotations

from typing import Any

from ferrax import (
    _ferrax,
    _refs,
    _refs_calls as _refs_calls,  # what `jit` and `vmap` need once there is a reference
)
from ferrax._boundary import expose as _expose
from ferrax._core import asarray as _asarray, is_arraylike as _is_arraylike
from ferrax._refs import AbstractRef, Ref

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

_KINDS = (None, "no_grad_no_remat")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a new array.

    Args:
      init_val: array or number that it holds first, of any shape and dtype.
      memory_space: must be None.
      kind: None or `"no_grad_no_remat"`, which changes nothing: what is written is never differentiated here.

    Returns:
      A `Ref`.

    Raises:
      TypeError: `init_val` is no array, or is a reference.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.arange(3))
    >>> ref[0] = 7
    >>> print(ref[...])
    [7 1 2]
    """
    if memory_space is not None:
        raise NotImplementedError("new_ref with memory_space is not implemented")
    if kind not in _KINDS:
        raise ValueError(f"new_ref takes the kinds {', '.join(map(repr, _KINDS))}, got {kind!r}")
    if isinstance(init_val, Ref) or not _is_arraylike(init_val):
        raise TypeError(
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of type "
            f"{type(init_val)} and was passed to new_ref at position 0."
        )
    return _refs.make(_asarray(init_val), kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to a new array of unspecified elements (zeros here).

    Args:
      ty: anything with a shape and a dtype.
      memory_space: must be None.

    Returns:
      A `Ref`.

    >>> import ferrax as jax
    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), "float32")).shape
    (2,)
    """
    from ferrax.lax import full

    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(f"empty_ref takes what has a shape and a dtype, got {type(ty).__name__}")
    return new_ref(full(ty.shape, 0, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Any:
    """The last value of a reference, which cannot be used after that.

    Args:
      ref: a reference that was made in the same function.

    Returns:
      The array that it held.

    Raises:
      ValueError: the reference was made elsewhere, or is frozen.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.arange(3))
    >>> print(jax.freeze(ref))
    [0 1 2]
    """
    return _refs.freeze(_checked("freeze", ref))


def free_ref(ref: Ref) -> None:
    """Ends the use of a reference, whose value nobody needs.

    Args, Raises: as in `freeze`.

    >>> import ferrax as jax
    >>> jax.free_ref(jax.new_ref(1.0))
    """
    _refs.freeze(_checked("free_ref", ref))


def _checked(name: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise TypeError(f"{name} takes a reference, got {type(ref).__name__}")
    return ref


def _viewed(name: str, ref: Any) -> Any:
    if not _ferrax.is_reference(ref):
        raise ValueError(f"Can only call `ref_{name}` on a `Ref`, got {type(ref).__name__}.")
    return ref


def get(ref: Ref, idx: Any = None) -> Any:
    """Reads from a reference.

    Args:
      ref: a reference.
      idx: an index; None for all of the array.

    Returns:
      `ref[idx]`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.ref.get(jax.new_ref(jnp.arange(3)), 1))
    1
    """
    return _viewed("get", ref)[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """Writes to a reference: `ref[idx] = value`.

    Args:
      ref: a reference.
      idx: an index; None for all of the array.
      value: array of the shape and dtype of `ref[idx]`.

    Raises:
      ValueError: the value has another shape or dtype, or is differentiated or mapped by a later transformation.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.arange(3))
    >>> jax.ref.set(ref, 1, 5)
    >>> print(ref[...])
    [0 5 2]
    """
    swap(_viewed("set", ref), idx, value)


def swap(ref: Ref, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Writes to a reference, and reads what was there before.

    Args:
      ref, idx, value: as in `set`.
      _function_name: accepted for compatibility.

    Returns:
      `ref[idx]` before the call.

    Raises:
      ValueError: as for `set`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.ref.swap(jax.new_ref(jnp.arange(3)), 1, 5))
    1
    """
    return _viewed("swap", ref).swap(value, ... if idx is None else idx)


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Adds to elements of a reference: `ref[idx] += x`, where elements that are named twice get both.

    Args:
      ref: a reference.
      idx: an index; None for all of the array.
      x: array of the shape and dtype of `ref[idx]`.

    Raises:
      ValueError: as for `set`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(2))
    >>> jax.ref.addupdate(ref, jnp.array([1, 1]), jnp.ones(2))
    >>> print(ref[...])
    [0. 2.]
    """
    _viewed("addupdate", ref).addupdate(x, ... if idx is None else idx)


_expose(globals())
