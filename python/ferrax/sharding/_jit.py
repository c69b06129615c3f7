"""`jit` with shardings: what `in_shardings`, `out_shardings`, `device` and `backend` ask of arguments and results.

The function is traced with its results constrained; arguments are put where they are asked for before each call. Read
next: `_placement.py`.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._ferrax import Device, SingleDeviceSharding
from ferrax._prefixes import prefix_leaves
from ferrax._stages import trace_over
from ferrax.sharding._context import context_mesh
from ferrax.sharding._named import NamedSharding, Sharding
from ferrax.sharding._placement import check_fits, concrete, constrain, place
from ferrax.sharding._spec import PartitionSpec

__all__ = ["UNSPECIFIED", "constrained", "placed_arguments", "resolved"]


class _Unspecified:
    """Stands for shardings that nobody gave; there is one."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


def _is_leaf(x: Any) -> bool:
    return x is None or x is UNSPECIFIED or isinstance(x, (PartitionSpec, Sharding))


def resolved(shardings: Any, name: str) -> Any:
    """A tree of shardings with specs resolved by the mesh in use, and leaves checked.

    Args:
      shardings: the tree.
      name: `"in_shardings"` or `"out_shardings"`.

    Raises:
      TypeError: a leaf is no sharding.
      RuntimeError: a bare spec without a mesh in use.
    """

    def one(leaf: Any) -> Any:
        if leaf is None or leaf is UNSPECIFIED:
            return None
        if isinstance(leaf, PartitionSpec):
            mesh = context_mesh()
            if mesh is None:
                raise RuntimeError(
                    f"jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. You can "
                    "define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
                    f"{name} and then the mesh context manager is not required."
                )
            return concrete(NamedSharding(mesh, leaf))
        if type(leaf).__module__ == "ferrax.experimental.layout":
            if hasattr(leaf, "major_to_minor"):
                raise ValueError(
                    "`jax.jit` does not accept device-local layouts directly. Create a `Format` instance wrapping this "
                    f"device-local layout and pass that to `jit` instead. Got {leaf}"
                )
            return leaf
        if not isinstance(leaf, Sharding):
            raise TypeError(
                f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        return leaf

    return tree_util.tree_map(one, shardings, is_leaf=_is_leaf)


def of_device(device: Any, backend: Any, given: Any) -> Any:
    """The sharding that `jit`'s deprecated `device` and `backend` mean.

    Args:
      device: a device, or `None`.
      backend: a platform's name, or `None`.
      given: whether `in_shardings` or `out_shardings` are given, too.

    Raises:
      ValueError: both are given, or shardings are.
    """
    if device is not None and backend is not None:
        raise ValueError(
            f"can't specify both a device and a backend for jit, got device={device!r} and backend={backend!r}"
        )
    if given:
        raise ValueError("If backend or device is specified on jit, then in_shardings should not be specified.")
    warnings.warn(
        "backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
        'jax.local_devices(backend="cpu")[0])` on the inputs to the jitted function to get the same behavior.',
        DeprecationWarning,
        stacklevel=3,
    )
    if device is None:
        (device, *_) = _ferrax.devices(backend)
    if not isinstance(device, Device):
        raise TypeError(f"jit's device must be a device, got {device!r}")
    return SingleDeviceSharding(device)


def constrained(fun: Callable[..., Any], out_shardings: Any) -> Callable[..., Any]:
    """A function whose results are put where they are asked for, for `jit` to trace.

    Args:
      fun: the function.
      out_shardings: a pytree prefix of its result.
    """

    @functools.wraps(fun)
    def placed(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        wanted = resolved(out_shardings, "out_shardings")
        return _over(wanted, result, _result, "pjit out_shardings")

    return placed


def _plain(sharding: Any, shape: tuple[int, ...]) -> Any:
    """A sharding, also of a format; a format that leaves the layout open says nothing of it."""
    if sharding is None or isinstance(sharding, Sharding):
        return sharding
    from ferrax.experimental.layout import sharding_of

    return sharding_of(sharding, shape, "jit")


def _checked(sharding: Any, shape: tuple[int, ...]) -> Any:
    """The sharding asked for of an argument of a shape, which must fit it."""
    sharding = _plain(sharding, shape)
    if sharding is not None:
        check_fits(sharding, shape, "pjit arguments")
    return sharding


def _result(sharding: Any, leaf: Any) -> Any:
    sharding = _plain(sharding, np.shape(leaf))
    if sharding is None:
        return leaf
    leaf = leaf if isinstance(leaf, _ferrax.Array) else _ferrax.asarray(leaf)
    check_fits(sharding, leaf.shape, "pjit outputs")
    if isinstance(sharding, SingleDeviceSharding) and not (_ferrax.is_eager() and not _ferrax.is_tracer(leaf)):
        return _ferrax.sharding_constraint(leaf, place(sharding))
    return constrain(leaf, sharding)


def _over(shardings: Any, tree: Any, f: Callable[[Any, Any], Any], what: str) -> Any:
    """Applies a function to the leaves of a tree, with the sharding of each."""
    try:
        places = prefix_leaves(shardings, tree, _is_leaf)
    except ValueError as error:
        raise ValueError(str(error).replace("broadcast_prefix prefix_tree", what)) from None
    leaves, structure = tree_util.tree_flatten(tree)
    return structure.unflatten([f(s, x) for s, x in zip(places, leaves, strict=True)])


def placed_arguments(in_shardings: Any, args: tuple[Any, ...], statics: frozenset[int]) -> tuple[Any, ...]:
    """The arguments of a call, put where they are asked for.

    Args:
      in_shardings: a pytree prefix of the tuple of arguments that are not static.
      args: the arguments.
      statics: positions of static ones.

    Raises:
      ValueError: it is no prefix, or a committed argument is somewhere else.
      IndivisibleError: parts of an argument would differ in size.
    """
    moved = iter(_wanted(in_shardings, args, statics, _argument))
    return tuple(a if i in statics else next(moved) for i, a in enumerate(args))


def _wanted(in_shardings: Any, args: tuple[Any, ...], statics: frozenset[int], f: Callable[[Any, Any], Any]) -> Any:
    """The arguments that are not static, with a function applied to each leaf and the sharding asked for of it."""
    dynamic = tuple(a for i, a in enumerate(args) if i not in statics)
    wanted = resolved(in_shardings, "in_shardings")
    if isinstance(wanted, list):
        wanted = tuple(wanted)
    if isinstance(wanted, tuple) and len(wanted) != len(dynamic):
        raise ValueError(
            "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, "
            "pjit in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of "
            "positional arguments. But pjit in_shardings is the wrong length: got a tuple or list of length "
            f"{len(wanted)} for an args tuple of length {len(dynamic)}."
        )
    return _over(wanted, dynamic, f, "pjit in_shardings")


def with_arguments(compiled: Any, in_shardings: Any, static_argnums: list[int]) -> Callable[..., Any]:
    """A jitted function that puts its arguments where they are asked for.

    Args:
      compiled: the function.
      in_shardings: a pytree prefix of the tuple of arguments that are not static.
      static_argnums: positions of static arguments.
    """

    def statics(args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[int]:
        if kwargs:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        return frozenset(n % len(args) for n in static_argnums) if args else frozenset()

    def moved(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return placed_arguments(in_shardings, args, statics(args, kwargs))

    def wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        _wanted(in_shardings, args, statics(args, kwargs), lambda s, x: found.append(_checked(s, np.shape(x))))
        return found

    def trace(*args: Any, **kwargs: Any) -> Any:
        return trace_over(compiled, args, kwargs, wanted(args, kwargs))

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled(*moved(args, kwargs))

    for name in ("eval_shape", "cache_info", "clear_cache"):
        setattr(call, name, getattr(compiled, name))
    call.trace = trace  # type: ignore[attr-defined]
    call.lower = lambda *args, **kwargs: trace(*args, **kwargs).lower()  # type: ignore[attr-defined]
    _placing[call] = (compiled, wanted)
    return call


#: For functions of `with_arguments` the jitted function, and what gives the sharding asked for of each leaf of a call.
_placing: weakref.WeakKeyDictionary[Any, tuple[Any, Callable[..., list[Any]]]] = weakref.WeakKeyDictionary()


def without_placing(fun: Any) -> tuple[Any, Callable[..., list[Any]] | None]:
    """A jitted function that leaves its arguments where they are, and what gives the sharding asked for of each.

    Args:
      fun: a jitted function, with or without `in_shardings`.

    Returns:
      The function, and a function of the tuple and the dict of its arguments; None without `in_shardings`.
    """
    try:
        return _placing.get(fun, (fun, None))
    except TypeError:  # not hashable, or without weak references
        return fun, None


def _argument(sharding: Any, x: Any) -> Any:
    if sharding is None or (not hasattr(x, "shape") and not isinstance(x, (int, float, complex, bool))):
        return x
    sharding = _plain(sharding, np.shape(x))
    if sharding is None:
        return x
    leaf = x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x)
    check_fits(sharding, leaf.shape, "pjit arguments")
    if _ferrax.is_tracer(leaf) or not _ferrax.is_eager():
        return constrain(leaf, sharding) if not isinstance(sharding, SingleDeviceSharding) else leaf
    if leaf.committed and not leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
            f"{sharding},\narg sharding: {leaf.sharding} for arg type: {leaf.dtype.name}{list(leaf.shape)}"
        )
    return _ferrax.device_put_leaf(leaf, place(sharding), True)
