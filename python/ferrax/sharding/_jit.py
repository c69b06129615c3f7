"""`jit` with shardings: what `in_shardings`, `out_shardings`, `device` and `backend` ask of arguments and results.

The function is traced with its results constrained; arguments are put where they are asked for before each call. Read
next: `_placement.py`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._ferrax import Device, SingleDeviceSharding
from ferrax._prefixes import prefix_leaves
from ferrax._stages import trace_over
from ferrax.sharding._context import concrete_mesh, context_mesh, physical_mesh
from ferrax.sharding._named import DuplicateSpecError, NamedSharding, Sharding, is_abstract
from ferrax.sharding._placement import check_fits, concrete, constrain, place, put
from ferrax.sharding._spec import UNCONSTRAINED, PartitionSpec

__all__ = ["UNSPECIFIED", "check", "constrained", "on_device", "over_mesh", "placed_arguments", "resolved"]


class _Unspecified:
    """Stands for shardings that nobody gave; there is one."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


def _is_leaf(x: Any) -> bool:
    return x is None or x is UNSPECIFIED or isinstance(x, (PartitionSpec, Sharding))


def check(shardings: Any, name: str) -> None:
    """Raises unless the leaves of a tree are shardings that `jit` can have.

    Args:
      shardings: the tree.
      name: `"in_shardings"` or `"out_shardings"`.

    Raises:
      TypeError: a leaf is no sharding.
      ValueError: a leaf leaves axes to the compiler, or has a mesh without axes.
    """

    def one(leaf: Any) -> None:
        if leaf is None or leaf is UNSPECIFIED:
            return
        if type(leaf).__module__ == "ferrax.experimental.layout":
            if not hasattr(leaf, "layout"):
                raise ValueError(
                    "`jax.jit` does not accept device-local layouts directly. Create a `Format` instance wrapping this "
                    f"device-local layout and pass that to `jit` instead. Got {leaf}"
                )
            return
        if not isinstance(leaf, (PartitionSpec, Sharding)):
            raise TypeError(
                f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        if isinstance(leaf, NamedSharding) and leaf.mesh.empty:
            raise ValueError(
                f"One of {name} leaf specifications got an empty NamedSharding: {leaf} which is not allowed."
            )
        spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", ())
        if any(entry is UNCONSTRAINED for entry in spec):
            raise ValueError(f"Unconstrained dims are not allowed when passed to {name}: {leaf}")

    tree_util.tree_map(one, shardings, is_leaf=_is_leaf)


def resolved(shardings: Any, name: str, caller: str = "jit") -> Any:
    """A tree of shardings with specs resolved by the mesh in use.

    Args:
      shardings: the tree.
      name: `"in_shardings"` or `"out_shardings"`.
      caller: `"jit"`, or `"pjit"`, which looks at `with mesh:`, too.

    Raises:
      RuntimeError: a bare spec without a mesh in use.
      DuplicateSpecError: a spec names an axis twice.
    """

    def one(leaf: Any) -> Any:
        if isinstance(leaf, PartitionSpec):
            mesh = context_mesh(physical=caller == "pjit")
            if mesh is None:
                raise RuntimeError(
                    f"{caller} requires a non-empty mesh in context if you are passing `PartitionSpec`s to {name}. You "
                    "can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
                    f"{name} and then the mesh context manager is not required."
                )
            try:
                return concrete(NamedSharding(mesh, leaf))
            except DuplicateSpecError as error:
                raise DuplicateSpecError(str(error).replace("NamedSharding spec", name)) from None
        if leaf is None and caller == "pjit" and not physical_mesh().empty:
            return NamedSharding(physical_mesh(), PartitionSpec())  # over all devices of `with mesh:`
        return None if leaf is UNSPECIFIED else leaf

    return tree_util.tree_map(one, shardings, is_leaf=_is_leaf)


def of_device(device: Any, backend: Any, given: list[str]) -> Any:
    """The sharding that `jit`'s deprecated `device` and `backend` mean.

    Args:
      device: a device, or `None`.
      backend: a platform's name, or `None`.
      given: which of `in_shardings` and `out_shardings` are given, too.

    Raises:
      ValueError: both are given, or shardings are.
    """
    if device is not None and backend is not None:
        raise ValueError(
            f"can't specify both a device and a backend for jit, got device={device!r} and backend={backend!r}"
        )
    if given:
        raise ValueError(f"If backend or device is specified on jit, then {given[0]} should not be specified.")
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


def on_device(compiled: Any, sharding: Any, statics: tuple[list[int], list[str]], caller: str) -> Callable[..., Any]:
    """A jitted function that runs on one device, wherever its arguments are.

    Args:
      compiled: the function.
      sharding: the device's.
      statics: positions and names of static arguments.
      caller: `"jit"` or `"pjit"`.
    """

    def moved(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if concrete_mesh() is not None or (caller == "pjit" and not physical_mesh().empty):
            raise ValueError(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                "argument to jit."
            )
        fixed = {n % len(args) for n in statics[0]} if args else set()
        one = functools.partial(_onto_device, sharding)
        there = lambda tree: tree_util.tree_map(one, tree)
        return tuple(a if i in fixed else there(a) for i, a in enumerate(args)), {
            name: a if name in statics[1] else there(a) for name, a in kwargs.items()
        }

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = moved(args, kwargs)
        return tree_util.tree_map(functools.partial(_left_on_device, sharding), compiled(*args, **kwargs))

    def trace(*args: Any, **kwargs: Any) -> Any:
        count = compiled.trace(*args, **kwargs).in_tree.num_leaves
        return trace_over(compiled, args, kwargs, [sharding] * count, moves=True)

    for name in ("eval_shape", "cache_info", "clear_cache", "_cache_size", "_clear_cache"):
        setattr(call, name, getattr(compiled, name))
    call.trace = trace  # type: ignore[attr-defined]
    call.lower = lambda *args, **kwargs: trace(*args, **kwargs).lower()  # type: ignore[attr-defined]
    return call


def _onto_device(sharding: Any, x: Any) -> Any:
    """An argument on a device, from wherever it is; traced values and numbers as they are."""
    if not isinstance(x, (_ferrax.ArrayImpl, np.ndarray)) or _ferrax.is_tracer(x) or not _ferrax.is_eager():
        return x
    return _ferrax.device_put_leaf(x, sharding, True)


def _left_on_device(sharding: Any, x: Any) -> Any:
    """A result on a device; an error where the program put it somewhere else."""
    traced = _ferrax.is_tracer(x) or not _ferrax.is_eager()
    if not traced and x.committed and x.devices() != sharding.device_set:
        (device,) = sharding.device_set
        ids = [d.id for d in x.sharding._device_assignment]
        platform = device.platform.upper()
        raise ValueError(
            "Received incompatible devices for jitted computation. Got explicit output sharding with device ids "
            f"[{device.id}] on platform {platform} and sharding_constraint inside jit with device ids {ids} on "
            f"platform {platform}"
        )
    return _onto_device(sharding, x)


def over_mesh(compiled: Any) -> Callable[..., Any]:
    """A jitted function that runs over the devices of `with mesh:`, if one is in use when it is called.

    Args:
      compiled: the function.
    """

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        mesh = physical_mesh()
        if mesh.empty or not _ferrax.is_eager():
            return compiled(*args, **kwargs)
        _require_devices(compiled, mesh, args, kwargs)
        result = compiled(*args, **kwargs)
        whole = NamedSharding(mesh, PartitionSpec())
        return tree_util.tree_map(lambda x: x if _ferrax.is_tracer(x) or x.committed else put(x, whole), result)

    for name in ("trace", "lower", "eval_shape", "cache_info", "clear_cache", "_cache_size", "_clear_cache"):
        setattr(call, name, getattr(compiled, name))
    _placing[call] = without_placing(compiled)
    return call


def _require_devices(compiled: Any, mesh: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises where an argument is committed to other devices than a mesh's."""
    devices = list(mesh.devices.flat)
    names = None
    for i, x in enumerate(tree_util.tree_leaves((args, kwargs))):
        if not isinstance(x, _ferrax.ArrayImpl) or _ferrax.is_tracer(x) or not x.committed:
            continue
        have = list(x.sharding._device_assignment)
        if have != devices:
            names = argument_names(compiled, args, kwargs) if names is None else names
            platform = devices[0].platform.upper()
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got argument {names[i]} of "
                f"{compiled.__qualname__} with shape {_ferrax.typeof(x).str_short()} and with device ids "
                f"{[d.id for d in have]} on platform {platform} and jit's context mesh with device ids "
                f"{[d.id for d in devices]} on platform {platform}"
            )


def argument_names(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The leaves of the arguments by the names of parameters, such as `x['a'][0]`.

    Args:
      fun: the function.
      args, kwargs: its arguments.
    """
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
        names = [
            n for n, p in inspect.signature(fun).parameters.items() if n in bound.arguments and p.kind not in (2, 4)
        ]
        names += [
            f"{n}[{i}]"
            for n, p in inspect.signature(fun).parameters.items()
            if p.kind == 2
            for i in range(len(bound.arguments.get(n, ())))
        ]
    except (TypeError, ValueError):
        names = []
    names = names[: len(args)] if len(names) >= len(args) else [f"args[{i}]" for i in range(len(args))]
    found = []
    for name, value in [*zip(names, args, strict=True), *sorted(kwargs.items())]:
        found += [name + tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(value)[0]]
    return found


def constrained(fun: Callable[..., Any], out_shardings: Any, caller: str = "jit") -> Callable[..., Any]:
    """A function whose results are put where they are asked for, for `jit` to trace.

    Args:
      fun: the function.
      out_shardings: a pytree prefix of its result.
      caller: `"jit"` or `"pjit"`.
    """

    @functools.wraps(fun)
    def placed(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        wanted = resolved(out_shardings, "out_shardings", caller)
        paths = iter(["result" + tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(result)[0]])
        return _over(wanted, result, lambda s, x: _result(s, x, next(paths)), "pjit out_shardings")

    return placed


def _plain(sharding: Any, shape: tuple[int, ...]) -> Any:
    """A sharding, also of a format; a format that leaves the layout open says nothing of it."""
    if sharding is None or isinstance(sharding, Sharding):
        return sharding
    from ferrax.experimental.layout import sharding_of

    return sharding_of(sharding, shape, "jit")


def _require_open_layout(sharding: Any, x: Any) -> None:
    """Raises where a committed array, whose layout is known, is asked for in a layout that is chosen."""
    layout = getattr(sharding, "layout", None)
    if repr(layout) == "AUTO" and isinstance(x, _ferrax.ArrayImpl) and x.committed:
        raise ValueError(
            "Layout passed to jit does not match the layout on the respective arg. Got jit layout: AUTO,\n"
            f"arg layout: {x.format.layout} for arg type: {_ferrax.typeof(x).str_short()}. The layout given to "
            "`jax.jit` is `Layout.AUTO` but the corresponding argument passed is a `jax.Array` with a concrete layout. "
            "Consider passing a `jax.ShapeDtypeStruct` instead of `jax.Array` as an argument to the jitted function "
            "when using `Layout.AUTO`."
        )


def _checked(sharding: Any, x: Any, name: str) -> Any:
    """The sharding asked for of an argument, which must fit it."""
    shape = np.shape(x)
    _require_open_layout(sharding, x)
    sharding = _plain(sharding, shape)
    if sharding is not None:
        check_fits(sharding, shape, f"pjit arguments with pytree key path {name}")
        _require_there(sharding, x, getattr(x, "sharding", None), getattr(x, "committed", True))
    return sharding


def _require_there(sharding: Any, x: Any, have: Any, committed: bool) -> None:
    """Raises where an argument is committed to another sharding than the one that is asked for.

    What is on one device may be asked for on all devices of a mesh.
    """
    if is_abstract(have):
        return  # of a type, which is nowhere
    if len(getattr(have, "device_set", ())) == 1 and sharding.is_fully_replicated and sharding.num_devices > 1:
        return
    if committed and isinstance(have, Sharding) and not have.is_equivalent_to(sharding, len(x.shape)):
        kind = _ferrax.typeof(x).str_short() if isinstance(x, _ferrax.Array) else f"{x.dtype.name}{list(x.shape)}"
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
            f"{sharding},\narg sharding: {have} for arg type: {kind}"
        )


def _result(sharding: Any, leaf: Any, path: str) -> Any:
    sharding = _plain(sharding, np.shape(leaf))
    if sharding is None:
        return leaf
    leaf = leaf if isinstance(leaf, _ferrax.Array) else _ferrax.asarray(leaf)
    check_fits(sharding, leaf.shape, f"pjit outputs with pytree key path {path}")
    if isinstance(sharding, SingleDeviceSharding) and not (_ferrax.is_eager() and not _ferrax.is_tracer(leaf)):
        return _ferrax.sharding_constraint(leaf, place(sharding))
    return _inside(leaf, sharding)


def _inside(leaf: Any, sharding: Any) -> Any:
    """An argument or result of a jitted function put where it is asked for; `reshard` does so along explicit axes."""
    if isinstance(sharding, NamedSharding) and not sharding.mesh.are_all_axes_auto:
        return put(leaf, sharding)
    return constrain(leaf, sharding)


def _over(shardings: Any, tree: Any, f: Callable[[Any, Any], Any], what: str) -> Any:
    """Applies a function to the leaves of a tree, with the sharding of each."""
    try:
        places = prefix_leaves(shardings, tree, _is_leaf)
    except ValueError as error:
        raise ValueError(str(error).replace("broadcast_prefix prefix_tree", what)) from None
    leaves, structure = tree_util.tree_flatten(tree)
    return structure.unflatten([f(s, x) for s, x in zip(places, leaves, strict=True)])


def told(info: Any, out_shardings: Any) -> Any:
    """Types of a jitted function's results, with the shardings that are asked for."""
    with_sharding = lambda s, x: x if (own := _plain(s, x.shape)) is None else x.update(sharding=own)
    return _over(resolved(out_shardings, "out_shardings", "jit"), info, with_sharding, "pjit out_shardings")


def flat_results(avals: Any, tree: Any, out_shardings: Any) -> list[Any]:
    """For each result of a jitted function the sharding that is asked for, or None.

    Args:
      avals: types of the results.
      tree: their structure.
      out_shardings: what is asked for, a pytree prefix.
    """
    if out_shardings is None:
        return [None] * len(avals)
    asked: list[Any] = []
    _over(out_shardings, tree.unflatten(avals), lambda s, x: asked.append(_plain(s, x.shape)), "pjit out_shardings")
    return asked


def placed_arguments(
    fun: Any, in_shardings: Any, args: tuple[Any, ...], statics: frozenset[int], caller: str
) -> tuple[Any, ...]:
    """The arguments of a call, put where they are asked for.

    Args:
      fun: the function.
      in_shardings: a pytree prefix of the tuple of arguments that are not static.
      args: the arguments.
      statics: positions of static ones.
      caller: `"jit"` or `"pjit"`.

    Raises:
      ValueError: it is no prefix, or a committed argument is somewhere else.
      IndivisibleError: parts of an argument would differ in size.
    """
    at = itertools.count()
    name = lambda i: _name_of(fun, args, statics, i)
    moved = iter(
        _wanted(in_shardings, args, statics, lambda s, x: _argument(s, x, functools.partial(name, next(at))), caller)
    )
    return tuple(a if i in statics else next(moved) for i, a in enumerate(args))


def _name_of(fun: Any, args: tuple[Any, ...], statics: frozenset[int], leaf: int) -> str:
    """A leaf of the arguments that are not static, by the name of its parameter."""
    shown = tuple(() if i in statics else a for i, a in enumerate(args))
    return argument_names(fun, shown, {})[leaf]


def _wanted(
    in_shardings: Any, args: tuple[Any, ...], statics: frozenset[int], f: Callable[[Any, Any], Any], caller: str
) -> Any:
    """The arguments that are not static, with a function applied to each leaf and the sharding asked for of it."""
    dynamic = tuple(a for i, a in enumerate(args) if i not in statics)
    wanted = resolved(in_shardings, "in_shardings", caller)
    if isinstance(wanted, list):
        wanted = tuple(wanted)
    prefix = (
        "pjit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, pjit "
        "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of "
        "positional arguments. But pjit in_shardings is "
    )
    if not _is_leaf(wanted) and type(wanted) is not tuple and type(wanted).__module__ != "ferrax.experimental.layout":
        hint = ""
        if len(dynamic) == 1:
            hint = (
                " Given the corresponding argument being passed, it looks like pjit in_shardings might need to be "
                "wrapped in a singleton tuple."
            )
        raise ValueError(f"{prefix}not a tuple: got {type(wanted)} instead.{hint}")
    if isinstance(wanted, tuple) and len(wanted) != len(dynamic):
        raise ValueError(
            f"{prefix}the wrong length: got a tuple or list of length {len(wanted)} for an args tuple of length "
            f"{len(dynamic)}."
        )
    return _over(wanted, dynamic, f, "pjit in_shardings")


def with_arguments(
    compiled: Any, in_shardings: Any, static_argnums: list[int], caller: str = "jit"
) -> Callable[..., Any]:
    """A jitted function that puts its arguments where they are asked for.

    Args:
      compiled: the function.
      in_shardings: a pytree prefix of the tuple of arguments that are not static.
      static_argnums: positions of static arguments.
      caller: `"jit"` or `"pjit"`.
    """

    def statics(args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[int]:
        if kwargs and in_shardings is not None:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        return frozenset(n % len(args) for n in static_argnums) if args else frozenset()

    def moved(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return placed_arguments(compiled, in_shardings, args, statics(args, kwargs), caller)

    def wanted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        found: list[Any] = []
        fixed = statics(args, kwargs)

        def one(s: Any, x: Any) -> None:
            found.append(_checked(s, x, _name_of(compiled, args, fixed, len(found))))

        _wanted(in_shardings, args, fixed, one, caller)
        return found + [None] * len(tree_util.tree_leaves(kwargs))

    def trace(*args: Any, **kwargs: Any) -> Any:
        return trace_over(compiled, args, kwargs, wanted(args, kwargs))

    there: set[Any] = set()

    def seen(args: tuple[Any, ...]) -> Any:
        """What stands for a call whose arguments are over meshes, by what decides whether they stay."""
        leaves, tree = tree_util.tree_flatten(args)
        if not _ferrax.is_eager() or not all(type(x) is _ferrax.ArrayImpl for x in leaves):
            return None
        places = tuple(map(_ferrax.place_of, leaves))
        return None if None in places else (context_mesh(), tree, places, tuple(x.shape for x in leaves))

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        key = None if kwargs or static_argnums else seen(args)
        if key is not None and key in there:
            return compiled(*args, **kwargs)
        given, args = args, moved(args, kwargs)
        pairs = zip(*map(tree_util.tree_leaves, (given, args)), strict=True)
        put = [(a, b) for a, b in pairs if a is not b]
        if key is not None and len(there) < _MOST_SEEN and not put:
            there.add(key)
        result = compiled(*args, **kwargs)
        for a, b in put:
            # what was donated is the argument, wherever it has been put
            if type(a) is type(b) is _ferrax.ArrayImpl and b.is_deleted():
                a.delete()
        return result

    for name in ("eval_shape", "cache_info", "clear_cache", "_cache_size", "_clear_cache"):
        setattr(call, name, getattr(compiled, name))
    call.trace = trace  # type: ignore[attr-defined]
    call.lower = lambda *args, **kwargs: trace(*args, **kwargs).lower()  # type: ignore[attr-defined]
    _placing[call] = (compiled, wanted)
    return call


#: Kinds of calls whose arguments a function of `with_arguments` knows to be where they are asked for, at most.
_MOST_SEEN = 256
#: For functions of `with_arguments` the jitted function, and what gives the sharding asked for of each leaf of a call;
#: for those of `over_mesh` the jitted function, perhaps without the latter.
_placing: weakref.WeakKeyDictionary[Any, tuple[Any, Callable[..., list[Any]] | None]] = weakref.WeakKeyDictionary()


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


def _argument(sharding: Any, x: Any, name: Callable[[], str]) -> Any:
    """An argument put where it is asked for; `name` gives its name, for errors."""
    if sharding is None or (not hasattr(x, "shape") and not isinstance(x, (int, float, complex, bool))):
        return x
    _require_open_layout(sharding, x)
    sharding = _plain(sharding, np.shape(x))
    if sharding is None:
        return x
    leaf = x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x)
    try:
        check_fits(sharding, leaf.shape, "pjit arguments")
    except ValueError:
        check_fits(sharding, leaf.shape, f"pjit arguments with pytree key path {name()}")
        raise
    if _ferrax.is_tracer(leaf) or not _ferrax.is_eager():
        return _inside(leaf, sharding) if not isinstance(sharding, SingleDeviceSharding) else leaf
    have, wanted = (s.memory_kind or "device" for s in (leaf.sharding, sharding))
    if leaf is x and have != wanted:
        raise ValueError(
            "Memory kinds passed to jax.jit does not match memory kind on the respective arg. Got jit memory kind: "
            f"{wanted}, arg memory kind: {have} for arg type: {_ferrax.typeof(leaf).str_short()}"
        )
    if leaf is x:
        _require_there(sharding, leaf, leaf.sharding, leaf.committed)
    to = place(sharding)
    there = leaf is x and leaf.committed and _ferrax.place_of(leaf) == to
    return x if there else _ferrax.device_put_leaf(leaf, to, True)
