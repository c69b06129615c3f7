"""`shard_map`: a function written for one device, run on the parts of arrays over a mesh.

Each array is cut into the blocks that its spec says, with a leading axis for every mesh axis; the function is mapped
over these axes, which have the mesh axes' names, so that collectives find them; the results are put together again. All
of it is ordinary array code, so `jit`, `grad` and `vmap` of it need nothing of their own. What is the same on all
devices of an axis is tracked by its type (`crates/ferrax-ir/src/manual.rs`).

Read next: `_blocks.py` for the cutting, `_specs.py` for the checks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._ferrax import SingleDeviceSharding
from ferrax.sharding import _specs
from ferrax.sharding._blocks import cut, joined, terms
from ferrax.sharding._context import context_mesh, get_abstract_mesh, use_abstract_mesh
from ferrax.sharding._manual import manual, names_in_force
from ferrax.sharding._marks import marked
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh
from ferrax.sharding._named import NamedSharding, OpenSharding
from ferrax.sharding._placement import _constrained, place, put
from ferrax.sharding._spec import PartitionSpec, entry_names

__all__ = ["Infer", "shard_map", "smap"]


class _Infer:
    """Stands for specs that follow from the arguments; there is one."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


Infer = _Infer()


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Any = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Maps a function over the parts of arrays on a mesh: it is written for one device, and sees that device's parts.

    Inside, `lax.psum` and the other collectives work across the mesh's axes by their names. The types of values say
    over which axes they vary; where a value that does not meets one that does, it is made to (`lax.pcast`), and so
    gradients of what all devices share are summed over them.

    Args:
      f: function of arrays, or pytrees of arrays, and so are its results. Without it, returns a decorator.
      out_specs: pytree prefix of the result: a `PartitionSpec` for each array says how the parts are put together. Mesh
        axes that it does not name hold the same everywhere.
      in_specs: pytree prefix of the tuple of arguments: how each array is cut. Taken from the arguments' shardings by
        default.
      mesh: the `Mesh`, or an `AbstractMesh`; the mesh in use by default.
      axis_names: the mesh axes to map over; all by default.
      check_vma: whether to check that what `out_specs` takes for the same everywhere is so. Without the check, the
        first device's counts, and the transpose of `lax.psum` is `lax.psum`.

    Returns:
      A function of whole arrays.

    Raises:
      ValueError: an array cannot be cut so, a spec names no axis of the mesh, or a result is not the same everywhere.
      TypeError: specs are no `PartitionSpec`s, or `mesh` is no mesh.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> total = jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
    >>> print(total(jnp.arange(4)))
    6
    """
    options = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh, "check_vma": check_vma}
    if f is None:
        return functools.partial(shard_map, axis_names=axis_names, **options)
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f!r} of type {type(f)}.")
    if not isinstance(axis_names, (frozenset, set)):
        raise TypeError(
            f"`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: {type(axis_names)}"
        )
    return _wrapped(f, axis_names=frozenset(axis_names), **options)


def _wrapped(
    f: Callable[..., Any], out_specs: Any, in_specs: Any, mesh: Any, axis_names: frozenset[Any], check_vma: bool
) -> Callable[..., Any]:
    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        from ferrax._api import jit

        over, names = _mesh_and_names(mesh, axis_names)
        _specs.check(in_specs, names, "in_specs", Infer)
        _specs.check(out_specs, names, "out_specs", Infer)
        leaves, tree = tree_util.tree_flatten(args)
        if any(map(_ferrax.is_reference, leaves)):
            from ferrax.sharding import _references

            def mapped_with(g: Callable[..., Any], specs: list[Any]) -> Callable[..., Any]:
                return _wrapped(g, (out_specs, specs), in_specs, mesh, axis_names, check_vma)

            specs_of = lambda values: _specs.of_arguments(f, in_specs, values, over, Infer, names)
            return _references.called(f, args, specs_of, mapped_with)
        asked = _specs.of_arguments(f, in_specs, args, over, Infer, names)
        handed = {i: x for i, (x, s) in enumerate(zip(leaves, asked, strict=True)) if s is None and not _is_array(x)}
        specs = [PartitionSpec() if s is None else s for i, s in enumerate(asked) if i not in handed]
        _specs.check_sums(specs, over, names, "in_specs")
        sizes = {n: over.shape[n] for n in over.axis_names if n in names}
        given = [x for i, x in enumerate(leaves) if i not in handed]
        values = [_ferrax.asarray(x) if not isinstance(x, _ferrax.Array) else x for x in given]
        at = [i for i in range(len(leaves)) if i not in handed]
        _specs.check_arguments(f, in_specs, args, values, specs, sizes, over, at)
        _specs.check_explicit(values, specs, over, names)
        eager = _ferrax.is_eager() and not any(map(_ferrax.is_tracer, values))
        if eager and isinstance(over, AbstractMesh) and not names_in_force():
            over = _mesh_of(values, over)
        if len(sizes) < len(over.axis_names) and eager and not handed and not names_in_force():
            # what axes divide that are not mapped over is said by types of traced values, and by rules for programs
            return jit(mapped)(*args)
        values = [_whole(x, over, spec, names) for x, spec in zip(values, specs, strict=True)]
        run = _Run(f, tree, handed, out_specs, sizes, over, check_vma)
        blocks = _ferrax.making_placed(lambda: run.cut(values, specs), "shard_map")
        outs = run(blocks, specs)
        return run.out_tree.unflatten(outs)

    return mapped


def _mesh_of(values: Sequence[Any], mesh: AbstractMesh) -> Mesh:
    """The devices of arrays that are mapped over a mesh without devices."""
    found: list[Mesh] = []
    for x in values:
        have = x.sharding
        if not isinstance(have, NamedSharding) or have.mesh.is_scalar:
            continue
        if have.mesh.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {have.mesh.shape_tuple} does not match the mesh shape passed to shard_map "
                f"{mesh.shape_tuple} for shape {x.dtype.name}[{','.join(map(str, x.shape))}]"
            )
        found.append(have.mesh)
    if found:
        return found[0]
    raise ValueError(
        "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to the "
        "mesh argument."
    )


def _is_array(x: Any) -> bool:
    return isinstance(x, (_ferrax.Array, np.ndarray, np.generic, int, float, complex)) or hasattr(x, "__jax_array__")


def _mesh_and_names(mesh: Any, axis_names: frozenset[Any]) -> tuple[Any, frozenset[Any]]:
    """The mesh to map over, and those of its axes that the function is mapped over."""
    if mesh is None:
        # `with mesh:` is not asked: it is a context of older functions
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context")
        found = context_mesh()
        mesh = found if isinstance(found, Mesh) else mesh
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for its second "
            f"argument, but got {mesh} of type {type(mesh)}."
        )
    if mesh.empty:
        raise ValueError(f"shard_map requires a non-empty mesh. Got {mesh}")
    seen = get_abstract_mesh()
    if not seen.empty and seen != mesh.abstract_mesh:
        raise ValueError(f"The context mesh {seen} should match the mesh passed to shard_map {mesh}")
    if not axis_names:
        taken = names_in_force()
        axis_names = frozenset(n for n in mesh.axis_names if n not in taken)
    if not axis_names <= frozenset(mesh.axis_names):
        raise ValueError(
            f"jax.shard_map requires axis_names={axis_names} to be a subset of "
            f"mesh.axis_names={frozenset(mesh.axis_names)}"
        )
    return mesh, axis_names


def _asked(mesh: Any, spec: PartitionSpec, names: frozenset[Any], where: str) -> NamedSharding:
    """What a spec says of an array; axes that are not mapped over may divide it further."""
    return OpenSharding(mesh, spec, frozenset(mesh.axis_names) - names, f"shard_map {where}")


def _whole(x: Any, mesh: Any, spec: PartitionSpec, names: frozenset[Any]) -> Any:
    """An argument as one array that is nowhere in particular; errors where it must stay on other devices."""
    if spec.reduced:
        # what comes back to it is due; inside it is the same everywhere, as others are
        return put(x, NamedSharding(mesh, spec.update(reduced=frozenset())))
    if isinstance(mesh, AbstractMesh):
        return x if names_in_force() else _constrained(x, _asked(mesh, spec, names, "in_specs"))
    if _ferrax.is_tracer(x):
        # so that a gradient is cut as its argument is
        typed = names_in_force() or _ferrax.explicit_in_use() or spec.unreduced or spec.reduced
        return x if typed else _constrained(x, _asked(mesh, spec, names, "in_specs"))
    have, committed = x.sharding, x.committed
    if isinstance(have, SingleDeviceSharding) and not committed:
        return x
    if committed and set(have.device_set) != set(mesh.devices.flat):
        ids = [d.id for d in have._device_assignment]
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument of shard_map with shape "
            f"{x.dtype.name}{list(x.shape)} and with device ids {ids} on platform CPU and a mesh with device ids "
            f"{[d.id for d in mesh.devices.flat]}"
        )
    return _ferrax.alias(x)


class _Run:
    """One call: the function mapped over the axes, one inside the other."""

    def __init__(
        self,
        f: Callable[..., Any],
        tree: Any,
        handed: dict[int, Any],
        out_specs: Any,
        sizes: dict[Any, int],
        mesh: Any,
        check: bool,
    ):
        self.f, self.tree, self.out_specs, self.mesh, self.check = f, tree, out_specs, mesh, check
        #: leaves of the arguments that are no arrays, by their places
        self.handed = handed
        self.sizes = sizes
        self.names = list(sizes)
        self.specs: list[PartitionSpec] = []
        self.in_specs: Sequence[PartitionSpec] = ()
        self.out_tree: Any = None
        #: for each result, what explicit axes that are not mapped over divide of one device's part
        self.others: list[Any] = []
        #: for every axis, which results have a leading axis of it
        self.stacked: dict[Any, list[bool]] = {}

    def __call__(self, blocks: Sequence[Any], in_specs: Sequence[PartitionSpec]) -> list[Any]:
        types = dict.fromkeys(self.names, AxisType.Manual)
        before = get_abstract_mesh()
        around = before if not before.empty and set(self.names) <= set(before.axis_names) else self.mesh.abstract_mesh
        mesh = self.mesh if isinstance(self.mesh, Mesh) else None
        with manual(tuple(self.names), mesh), use_abstract_mesh(around.update_axis_types(types)):
            self.in_specs = in_specs
            outs = self._map(0, list(blocks), [_specs.names_of(s) | set(s.unreduced) for s in in_specs])
        return [self._put_together(k, x) for k, x in enumerate(outs)]

    def cut(self, values: Sequence[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
        """The arguments as blocks, with leading axes for the mesh axes that cut them or over which they are due."""
        blocks = []
        for x, spec in zip(values, specs, strict=True):
            block = cut(x, spec, self.sizes)
            cutting = _specs.names_of(spec) | set(spec.unreduced)
            for at, name in enumerate(n for n in self.names if n in cutting):
                block = terms(block, self.sizes[name], at) if name in spec.unreduced else block
            blocks.append(self._pinned(block, [n for n in self.names if n in cutting]))
        return blocks

    def _pinned(self, block: Any, leading: Sequence[Any]) -> Any:
        """A part of each device, said to be there: for devices whose memories are their own, if types do not say it."""
        traced = _ferrax.is_tracer(block) or not _ferrax.is_eager()
        if not traced or _ferrax.explicit_in_use():
            return block
        if isinstance(self.mesh, AbstractMesh) or self.mesh.devices.flat[0].platform == "cpu":
            return block
        others = frozenset(self.mesh.axis_names) - frozenset(self.names)
        said = OpenSharding(self.mesh, PartitionSpec(*leading), others, "")
        return _ferrax.sharding_constraint(block, place(said))

    def _map(self, depth: int, blocks: list[Any], cut_by: list[set[Any]]) -> list[Any]:
        """Maps over the axes from one on; the blocks have leading axes for those that cut them."""
        if depth == len(self.names):
            return self._innermost(blocks)
        name = self.names[depth]
        axes = [0 if name in names else None for names in cut_by]
        inner = lambda values: self._map(depth + 1, values, cut_by)
        pairs = _ferrax.map_flat(inner, blocks, axes, self.sizes[name], str(name), self.check)
        self.stacked[name] = [at is not None for _, at in pairs]
        return [_in_front(x, at) for x, at in pairs]

    def _innermost(self, blocks: list[Any]) -> list[Any]:
        if self.check:
            blocks = [
                marked(x, s.unreduced, s.reduced) if s.unreduced or s.reduced else x
                for x, s in zip(blocks, self.in_specs, strict=True)
            ]
        cut = iter(blocks)
        leaves = [self.handed[i] if i in self.handed else next(cut) for i in range(self.tree.num_leaves)]
        result = self.f(*self.tree.unflatten(leaves))
        outs, self.out_tree = tree_util.tree_flatten(result)
        outs = [x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x) for x in outs]
        self.specs = _specs.of_results(self.f, self.out_specs, result, outs)
        _specs.check_sums(self.specs, self.mesh, frozenset(self.names), "out_specs")
        self.others = [_ferrax.typeof(x) for x in outs]
        if self.check:
            _specs.check_replication(self.f, self.mesh, self.names, self.specs, outs)
        return outs

    def _put_together(self, k: int, x: Any) -> Any:
        """A whole result from its blocks, with its sharding."""
        spec = self.specs[k]
        stacked = [n for n in self.names if self.stacked[n][k]]
        x = self._pinned(x, stacked)
        x = _ferrax.making_placed(lambda: joined(x, spec, self.sizes, stacked), "shard_map")
        sharding = NamedSharding(self.mesh, self._with_others(spec, self.others[k]))
        if names_in_force():
            return self._inside(x, sharding)
        if isinstance(self.mesh, AbstractMesh) or _ferrax.is_tracer(x) or not _ferrax.is_eager():
            typed = _ferrax.explicit_in_use() or sharding.spec.unreduced or sharding.spec.reduced
            if not typed:
                sharding = _asked(self.mesh, sharding.spec, frozenset(self.names), "out_specs")
            return _constrained(x, sharding)
        return _ferrax.device_put_leaf(x, place(sharding), True)

    def _inside(self, x: Any, sharding: NamedSharding) -> Any:
        """A result inside of another `shard_map`, whose type says what the outer one sees."""
        from ferrax.sharding._typed import of_sharding, settled

        number = of_sharding(NamedSharding(get_abstract_mesh(), sharding.spec), x.ndim) if _in_explicit() else 0
        return settled(x, number) if number else x

    def _with_others(self, spec: PartitionSpec, aval: Any) -> PartitionSpec:
        """The spec with the explicit axes that divide each device's part; whole, where the mesh is explicit."""
        if not self.mesh.are_all_axes_explicit and not aval._spread:
            return spec
        entries: list[Any] = [*spec, *(None,) * (len(aval.shape) - len(spec))]
        if aval._spread:
            inside = aval.sharding.spec
            both = ([*entry_names(a), *entry_names(b)] for a, b in zip(entries, inside, strict=True))
            entries = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in both]
        return spec.update(partitions=tuple(entries))


def _in_explicit() -> bool:
    return _ferrax.explicit_in_use() and get_abstract_mesh().shape_tuple != ()


def _in_front(x: Any, at: int | None) -> Any:
    from ferrax import lax

    if not at:
        return x
    return lax.transpose(x, (at, *(d for d in range(x.ndim) if d != at)))


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any) -> Any:
    """Maps a function over one axis of the mesh in use, by numbers of axes as `vmap` has them.

    Args:
      f: function of arrays; without it, returns a decorator.
      in_axes: for each argument the axis that the mesh axis cuts, `None` for what all devices get; a pytree prefix.
      out_axes: for each result the axis along which parts are put together, `None` for what is the same everywhere.
      axis_name: name of the mesh axis.

    Returns:
      A function of whole arrays.

    Raises:
      ValueError: no mesh is in use, or an array cannot be cut so.
      TypeError: axes are no ints, or `axis_name` is a tuple or cannot be hashed.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     x = jax.reshard(jnp.arange(3), jax.P("x"))
    ...     print(jax.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")(x))
    [0 2 4]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    if isinstance(axis_name, tuple) or not isinstance(axis_name, Hashable):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    kinds = "an int, None, jax.sharding.Infer, or"
    if not isinstance(in_axes, (int, list, tuple, dict, _Infer, type(None))) or isinstance(in_axes, PartitionSpec):
        raise TypeError(
            f"smap in_axes must be {kinds} a tuple of entries corresponding to the positional arguments passed to the "
            f"function, but got {in_axes}."
        )
    for what, axes, allowed in (("in_axes", in_axes, kinds), ("out_axes", out_axes, "an int, None, or")):
        if not all(isinstance(a, (int, _Infer)) for a in tree_util.tree_leaves(axes)):
            raise TypeError(
                f"smap {what} must be {allowed} (nested) container with those types as leaves, but got {axes}."
            )

    def spec(axis: Any) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, axis_name)

    def specs(axes: Any) -> Any:
        if axes is Infer:
            return Infer
        return tree_util.tree_map(spec, axes, is_leaf=lambda a: a is None)

    mapped = shard_map(f, in_specs=specs(in_axes), out_specs=specs(out_axes), axis_names=frozenset([axis_name]))
    if in_axes is not Infer:
        return mapped

    @functools.wraps(f)
    def inferring(*args: Any) -> Any:
        kind = get_abstract_mesh()._name_to_type.get(axis_name)
        if kind in (AxisType.Auto, AxisType.Manual):
            raise TypeError(
                f"in_axes was not specified when axis_name={frozenset([axis_name])} was of type {kind}: only of "
                "explicit axes do types say what they divide"
            )
        return mapped(*args)

    return inferring
