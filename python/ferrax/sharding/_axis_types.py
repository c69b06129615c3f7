"""Functions that see axes of the mesh in use as of another type, and what a type says of manual axes.

Read next: `_context.py` for the mesh in use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._prefixes import prefix_leaves
from ferrax.sharding._context import concrete_mesh, explicit_mesh, get_abstract_mesh, use_abstract_mesh
from ferrax.sharding._mesh import AxisType, Mesh
from ferrax.sharding._named import NamedSharding, Sharding
from ferrax.sharding._placement import put, whole_spec, with_mesh
from ferrax.sharding._spec import PartitionSpec
from ferrax.sharding._typed import sharding_of

__all__ = ["ManualAxisType", "auto_axes", "explicit_axes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualAxisType:
    """What the type of a value says of the manual axes of a mesh.

    Args:
      varying: axes over which it varies.
      unreduced: axes over which a sum is still due.
      reduced: axes whose gradient is unreduced.

    >>> from ferrax.sharding import ManualAxisType
    >>> ManualAxisType(varying={"x"}).varying
    frozenset({'x'})
    """

    varying: frozenset[Any] = field(default_factory=frozenset)
    unreduced: frozenset[Any] = field(default_factory=frozenset)
    reduced: frozenset[Any] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        for name in ("varying", "unreduced", "reduced"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))

    @property
    def empty(self) -> bool:
        """Whether it says nothing of any axis."""
        return not self.vur

    @property
    def vur(self) -> frozenset[Any]:
        """All axes that it says something of."""
        return self.varying | self.unreduced | self.reduced

    def invarying(self, mesh: Any) -> frozenset[Any]:
        """The manual axes of a mesh that it says nothing of.

        Args:
          mesh: the mesh.
        """
        manual = (n for n, kind in mesh._name_to_type.items() if kind is AxisType.Manual)
        return frozenset(manual) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """What the type of a cotangent says: sums that are due here were done there, and the other way round."""
        return replace(self, unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **kwargs: Any) -> ManualAxisType:
        """A copy with some parts changed.

        Args:
          **kwargs: `varying`, `unreduced`, `reduced`.
        """
        return replace(self, **kwargs)


def _is_sharding(x: Any) -> bool:
    return x is None or isinstance(x, (PartitionSpec, Sharding))


def _placed(tree: Any, shardings: Any, function: str) -> Any:
    """A tree of arrays with shardings, a prefix of it."""
    if shardings is None:
        return tree
    leaves, structure = tree_util.tree_flatten(tree)
    places = prefix_leaves(shardings, tree, _is_sharding)

    def placed(x: Any, s: Any) -> Any:
        s = with_mesh(s, function)
        if isinstance(s, NamedSharding) and s.mesh.are_all_axes_explicit:
            s = whole_spec(s, x)
        return put(x, s, typed=True)

    return structure.unflatten([x if s is None else placed(x, s) for x, s in zip(leaves, places, strict=True)])


def _cast(tree: Any, mesh: Any) -> Any:
    """A tree of arrays over the devices of the mesh in use, on a mesh with axes of other types: nothing moves."""
    if not isinstance(mesh, Mesh):
        return tree

    def one(x: Any) -> Any:
        if _ferrax.is_tracer(x):
            number = _ferrax.typeof(x)._spread
            sharding = sharding_of(number) if number else None
        else:
            sharding = getattr(x, "sharding", None)
        if not isinstance(sharding, NamedSharding) or sharding.mesh.shape_tuple != mesh.shape_tuple:
            return x
        entries = list(sharding.spec)
        while entries and entries[-1] is None and not mesh.are_all_axes_explicit:
            entries.pop()
        return put(x, NamedSharding(mesh, sharding.spec.update(partitions=tuple(entries))), typed=True)

    return tree_util.tree_map(one, tree)


def _seen() -> Any:
    """The mesh in use with devices, whose axes are of the types in use; `None` where it has none."""
    mesh, seen = concrete_mesh(), get_abstract_mesh()
    if mesh is None or mesh.shape_tuple != seen.shape_tuple:
        return None
    return mesh.update(axis_types=seen.axis_types)


def _with_axes(axes: Any, kind: AxisType) -> use_abstract_mesh:
    """The mesh in use, with some axes (all by default) of another type."""
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context")
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    if any(mesh._name_to_type.get(n) is AxisType.Manual for n in names):
        raise NotImplementedError(
            "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: inside of shard_map a value "
            "is the part of one device"
        )
    return use_abstract_mesh(mesh.update_axis_types(dict.fromkeys(names, kind)))


def _require(sharding: Any, name: str) -> None:
    if sharding is None:
        raise TypeError(f"Missing required keyword argument: '{name}'")


def auto_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """A function that sees axes of the mesh in use as of type `Auto`.

    Args:
      f: the function; without it, returns a decorator.
      axes: names of the axes; all by default.
      out_sharding: shardings of the results, a pytree prefix; may be given to each call, too.

    Returns:
      A function with `f`'s arguments, and `out_sharding`.

    Raises:
      ValueError: no mesh is in use.
      TypeError: nothing says how the results are divided.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = jax.sharding.auto_axes(jnp.sin, out_sharding=jax.P("x"))
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(f(jnp.zeros(2)).sharding.spec)
    P('x',)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    given = out_sharding

    @functools.wraps(f)
    def automatic(*args: Any, out_sharding: Any = given, **kwargs: Any) -> Any:
        _require(out_sharding, "out_sharding")
        arrays = tree_util.tree_leaves((args, kwargs))
        with explicit_mesh(x.sharding for x in arrays if isinstance(x, _ferrax.Array) and not _ferrax.is_tracer(x)):
            with _with_axes(axes, AxisType.Auto):
                result = f(*_cast(args, _seen()), **_cast(kwargs, _seen()))
            return _placed(result, out_sharding, "auto_axes")

    return automatic


def explicit_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """A function that sees axes of the mesh in use as of type `Explicit`.

    Args:
      f, axes: as in `auto_axes`.
      in_sharding: shardings of the arguments, a pytree prefix of their tuple; may be given to each call, too.

    Returns:
      A function with `f`'s arguments, and `in_sharding`.

    Raises: as in `auto_axes`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = jax.sharding.explicit_axes(lambda x: x + 1, in_sharding=jax.P("x"))
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(f(jnp.zeros(2)).sharding.spec)
    P('x',)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    given = in_sharding

    @functools.wraps(f)
    def explicit(*args: Any, in_sharding: Any = given, **kwargs: Any) -> Any:
        _require(in_sharding, "in_sharding")
        outside = _seen()
        with _with_axes(axes, AxisType.Explicit):
            placed = _placed(args, in_sharding, "explicit_axes")
            result = f(*placed, **_cast(kwargs, _seen()))
        return _cast(result, outside)

    return explicit
