"""Python functions that run where devices are: on their hosts, with arrays of the hosts' CPU devices.

ferrax is one process on one host, so such a function runs here, when it is called. What is checked is what matters on
several hosts: that arguments are arrays of one set of devices, or that devices were given.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._shape_dtype import ShapeDtypeStruct
from ferrax._boundary import expose as _expose
from ferrax.sharding._mesh import Mesh

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


@overload
def colocated_cpu_devices(devices_or_mesh: Sequence[Any]) -> Sequence[Any]: ...
@overload
def colocated_cpu_devices(devices_or_mesh: Mesh) -> Mesh: ...


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices beside other devices, in their order.

    Args:
      devices_or_mesh: devices, or a mesh.

    Returns:
      A list of CPU devices, or a mesh of the same shape over them. CPU devices are beside themselves.

    Raises:
      ValueError: there are fewer CPU devices than others.

    >>> import ferrax as jax
    >>> from ferrax.experimental.colocated_python import colocated_cpu_devices
    >>> colocated_cpu_devices(jax.devices("cpu")[:1]) == jax.devices("cpu")[:1]
    True
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        grid = np.empty(mesh.devices.shape, object)
        grid.ravel()[:] = colocated_cpu_devices(list(mesh.devices.flat))
        return Mesh(grid, mesh.axis_names, mesh.axis_types)
    devices = list(devices_or_mesh)
    cpus = _ferrax.devices("cpu")
    others = iter(cpus)
    beside = [d if d.platform == "cpu" else next(others, None) for d in devices]
    if None in beside:
        raise ValueError(f"{len(devices)} devices have only {len(cpus)} CPU devices beside them")
    return beside


@dataclasses.dataclass(frozen=True)
class _Specialization:
    """What a function was told before its first call."""

    in_specs: Any = None
    out_specs_fn: Callable[..., Any] | None = None
    devices: Sequence[Any] | None = None

    def updated(self, **given: Any) -> _Specialization:
        for name, value in given.items():
            if value is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} already specified")
        return dataclasses.replace(self, **{n: v for n, v in given.items() if v is not None})


def _spec(x: Any) -> Any:
    """The type of an array, as `out_specs_fn` and `in_specs` have it."""
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=getattr(x, "sharding", None))


def _check(name: str, told: _Specialization, args: Any) -> None:
    """Errors unless the arguments are arrays of one set of devices, and of the types that were told."""
    leaves, tree = tree_util.tree_flatten(args)
    for x in leaves:
        if not isinstance(x, _ferrax.Array):
            raise ValueError(
                f"colocated_python functions take arrays, and {name} got an argument of type {type(x).__name__}: pass "
                "it as an array, or close over it"
            )
    if told.devices is None:
        places = {frozenset(x.sharding.device_set) for x in leaves}
        if not places:
            raise ValueError(
                f"No devices found. The colocated_python function {name} without input arguments must be first "
                "specialized with devices."
            )
        if len(places) > 1:
            raise ValueError(f"All arguments of the colocated_python function {name} must be on the same devices")
    if told.in_specs is not None:
        wanted, wanted_tree = tree_util.tree_flatten(told.in_specs)
        types = [(x.shape, x.dtype) for x in leaves]
        if wanted_tree != tree or [(s.shape, s.dtype) for s in wanted] != types:
            raise ValueError(f"Input specs in specialization and input specs must match: {name} got {args}")


def _check_results(name: str, told: _Specialization, args: Any, kwargs: Any, result: Any) -> None:
    """Errors unless the results are of the types that `out_specs_fn` says."""
    if told.out_specs_fn is None:
        return
    asked_args, asked_kwargs = tree_util.tree_map(_spec, (args, kwargs))
    wanted, tree = tree_util.tree_flatten(told.out_specs_fn(*asked_args, **asked_kwargs))
    leaves, given = tree_util.tree_flatten(result)
    if tree != given or [(s.shape, s.dtype) for s in wanted] != [(x.shape, x.dtype) for x in leaves]:
        raise ValueError(f"the results of the colocated_python function {name} are not of the types of out_specs_fn")


def _colocated(fun: Callable[..., Any], told: _Specialization) -> Callable[..., Any]:
    name = getattr(fun, "__name__", "colocated_python")

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        _check(name, told, (args, kwargs))
        result = tree_util.tree_map(_ferrax.asarray, fun(*args, **kwargs))
        _check_results(name, told, args, kwargs, result)
        return result

    def specialize(in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None) -> Callable[..., Any]:
        return _colocated(fun, told.updated(in_specs=in_specs, out_specs_fn=out_specs_fn, devices=devices))

    call.specialize = specialize  # type: ignore[attr-defined]
    return call


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on the hosts of its arguments' devices.

    Args:
      fun: a function of pytrees of arrays, with such a result.

    Returns:
      The function. `specialize(in_specs=, out_specs_fn=, devices=)` gives one that was told types of its arguments
      (`ShapeDtypeStruct`s), a function from these to the types of its results, or its devices; a function without
      arguments needs devices.

    Raises:
      ValueError: when called: an argument is no array, or they are on several sets of devices.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.colocated_python import colocated_python
    >>> colocated_python(lambda x: x + 1)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return _colocated(fun, _Specialization())


def colocated_python_class(cls: type[Any]) -> type[Any]:
    """A class whose objects live on the hosts of the devices that their methods' arguments are on.

    Args:
      cls: the class. Its objects are made at the first call of a method.

    Returns:
      A class with the same methods, each a function of `colocated_python`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.colocated_python import colocated_python_class
    >>> @colocated_python_class
    ... class Scale:
    ...     def __init__(self, by):
    ...         self.by = by
    ...
    ...     def of(self, x):
    ...         return x * self.by
    >>> Scale(3).of(jnp.ones(2))
    Array([3., 3.], dtype=float32)
    """

    class Colocated:
        __doc__ = cls.__doc__

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._make = functools.cache(lambda: cls(*args, **kwargs))

    def method(name: str) -> property:
        def of(self: Any) -> Any:
            @functools.wraps(getattr(cls, name))
            def call(*args: Any, **kwargs: Any) -> Any:
                return getattr(self._make(), name)(*args, **kwargs)

            return colocated_python(call)

        return property(of)

    for name, value in vars(cls).items():
        if callable(value) and not name.startswith("__"):
            setattr(Colocated, name, method(name))
    Colocated.__name__, Colocated.__qualname__ = cls.__name__, cls.__qualname__
    return Colocated


_expose(globals())
