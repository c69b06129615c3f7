"""Costs of a function: operations, bytes of memory, bytes and hops between devices.

A function is traced, and each equation of its program asked for its costs by a rule of its primitive; those of nested
programs are added once. With a mesh the program is that of one device: its arguments are the parts of arrays that
`in_specs` say, and collectives are equations over named axes. Read next: `rooflines.py`, which has the rules.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

import ferrax
from ferrax import lax, tree_util
from ferrax._prefixes import prefix_leaves
from ferrax.core import ShapedArray
from ferrax.interpreters import partial_eval as pe
from ferrax.sharding import NamedSharding, PartitionSpec
from ferrax.sharding._spec import entry_names
from ferrax.sharding._specs import names_of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule is told of its equation, besides operands and parameters.

    Attributes:
      name_stack: the names of the scopes that it is in.
      primitive: its primitive.
      avals_in: types of the operands.
      avals_out: types of the results.
      jaxpr_eqn_ctx: the context that it was traced in.
      mesh: the mesh, or None.
      pin_lhs_in_vmem: whether left operands of products are not read from the device's memory.
      pin_rhs_in_vmem: whether right ones are not.
    """

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """Shape and dtype of a value.

    Attributes:
      shape: the shape.
      dtype: the dtype.

    >>> from ferrax.experimental import roofline
    >>> roofline.RooflineShape(shape=(2, 3), dtype=np.dtype("float32")).bytes
    24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """That of a type."""
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"Expected ShapedArray, got {type(aval)}.")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def bytes(self) -> int:
        """The bytes of all elements."""
        return int(self.size * self.dtype.itemsize)

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of values of these types."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """Costs, which add up; of peaks the higher one counts.

    Attributes:
      flops: operations of what compilers do not fuse: products.
      unfused_flops: operations of everything.
      ici_bytes: bytes over the links of each mesh axis.
      ici_latency: hops over them.
      hbm_bytes: bytes that products read and write.
      peak_hbm_bytes: the most that values take at one time.
      unfused_hbm_bytes: bytes that all operations read and write.

    >>> from ferrax.experimental import roofline
    >>> a = roofline.RooflineResult(flops=2, ici_bytes={"x": 1}, peak_hbm_bytes=5)
    >>> total = a + 3 * a
    >>> total.flops, total.ici_bytes, total.peak_hbm_bytes
    (8, {'x': 4}, 15)
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """What nothing costs: all costs are zero."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def both(name: str) -> Any:
            a, b = getattr(self, name), getattr(other, name)
            if isinstance(a, dict):
                return {axis: a.get(axis, 0) + b.get(axis, 0) for axis in {**a, **b}}
            return max(a, b) if name.startswith("peak") else a + b

        return RooflineResult(**{f.name: both(f.name) for f in fields(self)})

    def __mul__(self, constant: float) -> RooflineResult:
        def scaled(value: Any) -> Any:
            if isinstance(value, dict):
                return {axis: int(n * constant) for axis, n in value.items()}
            return int(value * constant)

        return RooflineResult(**{f.name: scaled(getattr(self, f.name)) for f in fields(self)})

    __rmul__ = __mul__


_Rule = Callable[..., RooflineResult]
_rooflines: dict[Any, _Rule] = {}


def register_roofline(prim: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the function is the rule of a primitive.

    Args:
      prim: the primitive. Its rule takes a `RooflineRuleContext`, a `RooflineShape` an operand and the parameters by
        name, and gives a `RooflineResult`.

    >>> from ferrax.experimental import roofline
    >>> twice = core.Primitive("twice")
    >>> _ = twice.def_abstract_eval(lambda x: x)
    >>> @roofline.register_roofline(twice)
    ... def rule(ctx, x, **params):
    ...     return roofline.RooflineResult(flops=x.size)
    >>> roofline.roofline(twice.bind)(np.zeros(3, "float32"))[1].flops
    3
    """

    def register(rule: _Rule) -> _Rule:
        _rooflines[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Any) -> None:
    """Says of a primitive that it costs nothing.

    >>> from ferrax.experimental import roofline
    >>> roofline.register_standard_roofline(core.Primitive("free"))
    """
    _rooflines[prim] = lambda *_, **__: RooflineResult.zeros()


def _costs(jaxpr: Any, names: Any, **given: Any) -> RooflineResult:
    """The costs of a program, and the most that its values take at one time."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    alive = {v: RooflineShape.from_aval(v.aval) for v in [*jaxpr.constvars, *jaxpr.invars]}
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if not hasattr(v, "val")}
    last.update((v, -1) for v in jaxpr.outvars if not hasattr(v, "val"))
    held = peak = sum(shape.bytes for shape in alive.values())
    result = RooflineResult.zeros()
    for i, eqn in enumerate(jaxpr.eqns):
        stack = names + eqn.source_info.name_stack
        nested = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        rule = _rooflines.get(eqn.primitive)
        if nested is not None:
            result += _costs(nested, stack, **given)
        elif rule is None:
            _LOG.warning("No roofline rule for %s: it counts as free.", eqn.primitive)
        else:
            avals_in, avals_out = ([v.aval for v in some] for some in (eqn.invars, eqn.outvars))
            context = RooflineRuleContext(
                name_stack=stack,
                primitive=eqn.primitive,
                avals_in=avals_in,
                avals_out=avals_out,
                jaxpr_eqn_ctx=eqn.ctx,
                **given,
            )
            result += rule(context, *map(RooflineShape.from_aval, avals_in), **eqn.params)
        for v in eqn.outvars:
            alive[v] = RooflineShape.from_aval(v.aval)
            held += alive[v].bytes
        done = {v for v in eqn.invars if not hasattr(v, "val") and last[v] == i}
        held -= sum(alive.pop(v).bytes for v in done)
        peak = max(peak, held)
    return result + RooflineResult(peak_hbm_bytes=peak)


def _resized(x: Any, spec: Any, mesh: Any, cut: bool) -> tuple[int, ...]:
    """The shape of a device's part of an array, or of the array that has such parts."""
    shape = list(x.shape)
    for i, entry in enumerate(spec):
        n = int(np.prod([mesh.shape[axis] for axis in entry_names(entry)]))
        shape[i] = shape[i] // n if cut else shape[i] * n
    return tuple(shape)


def _flat_specs(specs: Any, tree: Any) -> list[Any]:
    """A spec a leaf; specs may stand for whole subtrees."""
    return prefix_leaves(specs, tree, lambda x: isinstance(x, PartitionSpec))


def _parts_traced(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, vjp: bool, args: Any) -> Any:
    """The program of one device, and the types of the whole results."""
    if isinstance(in_specs, PartitionSpec):
        in_specs = (in_specs,) * len(args)
    leaves, tree = tree_util.tree_flatten(args)
    specs = _flat_specs(tuple(in_specs), args)
    parts = [ferrax.ShapeDtypeStruct(_resized(x, s, mesh, True), x.dtype) for x, s in zip(leaves, specs, strict=True)]
    varying = set().union(*map(names_of, specs))

    def reduced(ct: Any, spec: Any) -> Any:
        """Each device has a part of the cotangent of what all of them have."""
        axes = tuple(axis for axis in mesh.axis_names if axis in varying and axis not in names_of(spec))
        return lax.psum(ct, axes) if axes and ct.dtype != ferrax.float0 else ct

    traced = functools.partial(
        ferrax.make_jaxpr, axis_env=[(name, mesh.shape[name]) for name in mesh.axis_names], return_shape=True
    )
    parts = tree_util.tree_unflatten(tree, parts)
    if vjp:
        _, (primals, pullback) = traced(lambda *xs: ferrax.vjp(f, *xs))(*parts)

        def back(pullback: Any, primals: Any) -> Any:
            return list(map(reduced, tree_util.tree_leaves(pullback(_cotangents(primals))), specs))

        return traced(back)(pullback, primals)
    jaxpr, shapes = traced(f)(*parts)
    shapes, out_tree = tree_util.tree_flatten(shapes)
    flat = _flat_specs(out_specs, tree_util.tree_unflatten(out_tree, shapes))
    whole = [
        ferrax.ShapeDtypeStruct(_resized(x, s, mesh, False), x.dtype, sharding=NamedSharding(mesh, s))
        for x, s in zip(shapes, flat, strict=True)
    ]
    return jaxpr, tree_util.tree_unflatten(out_tree, whole)


def _cotangents(primals: Any) -> Any:
    """Cotangents of results: numbers of bfloat16."""
    return tree_util.tree_map(ferrax.numpy.bfloat16, primals)


def _pulled(f: Callable[..., Any], *args: Any) -> Any:
    primals, pullback = ferrax.vjp(f, *args)
    return pullback(_cotangents(primals))


def roofline(
    f: Callable[..., Any],
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function of the same arguments that gives the types of `f`'s results, and its costs.

    Args:
      f: the function; with a mesh and specs that of one device, as `shard_map` takes it.
      mesh: devices with named axes.
      in_specs: a partition spec an argument, or one for all of them.
      out_specs: specs of the results.
      pin_lhs_in_vmem: first operands of products, and results, cost no memory traffic.
      pin_rhs_in_vmem: nor do second ones.
      vjp: the costs of its differentiation.
      print_jaxpr: whether to print the program.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import roofline
    >>> out, costs = roofline.roofline(lambda a, b: a @ b)(jnp.ones((2, 3)), jnp.ones((3, 4)))
    >>> out.shape, costs.flops, costs.hbm_bytes
    ((2, 4), 48, 104)
    """

    @functools.wraps(f)
    def wrapped(*args: Any) -> tuple[Any, RooflineResult]:
        if mesh is not None and in_specs is not None and out_specs is not None:
            jaxpr, shapes = _parts_traced(f, mesh, in_specs, out_specs, vjp, args)
        else:
            run = functools.partial(_pulled, f) if vjp else f
            jaxpr, shapes = ferrax.make_jaxpr(run, return_shape=True)(*args)
        program, _ = pe.dce_jaxpr(jaxpr.jaxpr, (True,) * len(jaxpr.jaxpr.outvars))
        if print_jaxpr:
            print(program)
        names = ferrax.extend.source_info_util.new_name_stack(f"roofline({getattr(f, '__name__', 'f')})")
        pinned = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem}
        return shapes, _costs(program, names, mesh=mesh, **pinned)

    return wrapped


def roofline_and_grad(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, **options: Any
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """As `roofline`, with the costs of differentiating `f` at arguments of bfloat16 as a third result.

    Args:
      f, mesh, in_specs, out_specs: as in `roofline`.
      **options: `pin_lhs_in_vmem`, `pin_rhs_in_vmem` and `print_jaxpr`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import roofline
    >>> mesh, spec = jax.make_mesh((1,), ("x",)), jax.P()
    >>> x = jax.ShapeDtypeStruct((4, 4), "float32", sharding=jax.NamedSharding(mesh, spec))
    >>> _, forward, back = roofline.roofline_and_grad(lambda x: x @ x, mesh, spec, spec)(x)
    >>> forward.flops, back.flops
    (128, 256)
    """

    @functools.wraps(f)
    def wrapped(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        def narrow(x: Any) -> Any:
            dtype = x.dtype if x.dtype == np.int32 else ferrax.numpy.bfloat16
            return ferrax.ShapeDtypeStruct(x.shape, dtype, sharding=x.sharding)

        shapes, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        back = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*tree_util.tree_map(narrow, args))[1]
        return shapes, forward, back

    return wrapped
