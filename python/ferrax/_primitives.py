"""Primitives: the built-in ones by name, and what users define with rules of their own.

The tables of rules have JAX's form: `primitive_jvps[p](primals, tangents, **params)` and so on. The core asks a
primitive that a user defines for its rules by the methods that start with an underscore, on flat lists; they look the
rules up, and turn what JAX's rules take and give (zeros, undefined primals, single results) into lists and `None`.
Read next: `crates/ferrax-python/src/api/primitive.rs`, and `interpreters/ad.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._core import ShapedArray
from ferrax.dtypes import issubdtype

__all__ = [
    "Lowering",
    "Primitive",
    "TypedLowering",
    "UndefinedPrimal",
    "Zero",
    "axis_primitive_batchers",
    "built_in",
    "fancy_primitive_batchers",
    "primitive_batchers",
    "primitive_jvps",
    "primitive_linearizations",
    "primitive_lowerings",
    "primitive_transposes",
]


class Zero:
    """A tangent or cotangent that is zero, in rules.

    Args:
      aval: its type.

    >>> import ferrax as jax
    >>> jax.interpreters.ad.Zero(jax.core.ShapedArray((2,), "float32"))
    Zero(float32[2])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({_long_text(self.aval)})"

    @staticmethod
    def from_primal_value(val: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(_ferrax.typeof(val).to_tangent_aval())

    def instantiate(self) -> Any:
        """An array of zeros."""
        return zeros_of(self.aval)


class UndefinedPrimal:
    """An operand of a linear operation that a transpose rule is asked the cotangent of.

    Args:
      aval: its type.

    >>> import ferrax as jax
    >>> jax.interpreters.ad.UndefinedPrimal(jax.core.ShapedArray((2,), "float32"))
    UndefinedPrimal(float32[2])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({_long_text(self.aval)})"


tree_util.register_pytree_node(Zero, lambda z: ((), z.aval), lambda aval, _: Zero(aval))
tree_util.register_pytree_node(UndefinedPrimal, lambda z: ((), z.aval), lambda aval, _: UndefinedPrimal(aval))


def _long_text(aval: Any) -> str:
    return aval.str_short() if hasattr(aval, "str_short") else str(aval)


def zeros_of(aval: Any) -> Any:
    """Zeros of a type."""
    from ferrax.lax import full

    return full(aval.shape, 0, aval.dtype)


primitive_jvps: dict[Any, Callable[..., Any]] = {}
#: Asked where there is no rule of `primitive_jvps`: functions `(False, which operands have tangents, *operands,
#: **params) -> (results, which of these have tangents, what is kept, function of what is kept and the tangents)`; the
#: first argument is whether the function of the tangents is only to be transposed, which is not known here.
primitive_linearizations: dict[Any, Callable[..., Any]] = {}
primitive_transposes: dict[Any, Callable[..., Any]] = {}
primitive_batchers: dict[Any, Callable[..., Any]] = {}
axis_primitive_batchers: dict[Any, Callable[..., Any]] = {}
fancy_primitive_batchers: dict[Any, Callable[..., Any]] = {}
#: Rules by primitive, then by platform; `None` for every platform.
primitive_lowerings: dict[Any, dict[str | None, Callable[..., Any]]] = {}


class Lowering:
    """A lowering given as a function that can be traced: what `ferrax.interpreters.mlir.lower_fun` makes.

    Args:
      fun: function of the operands and the parameters.
      multiple_results: whether it returns a sequence of results.
    """

    def __init__(self, fun: Callable[..., Any], multiple_results: bool = True):
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        return _on_values(lambda *arrays: self._ferrax_listed(ctx, *arrays, **params), args)

    def _ferrax_listed(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        out = self.fun(*args, **params)
        return list(out) if self.multiple_results else [out]


class TypedLowering(Lowering):
    """A lowering that gets a `ferrax.extend.lowering.LoweringRuleContext` before the operands.

    Args:
      fun: function of the context, the operands and the parameters that returns a sequence of results.
    """

    def _ferrax_listed(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        return list(self.fun(ctx, *args, **params))


def _on_values(function: Callable[..., list[Any]], args: Sequence[Any]) -> list[Any]:
    """Results of a function of arrays: values, where a lowering for MLIR calls it with values."""
    from ferrax._src.lib.mlir._values import OpResult, OpView, Value, arrays_of

    results = function(*map(arrays_of, args))
    return [OpResult(x) for x in results] if any(isinstance(a, (Value, OpView)) for a in args) else results


class AxisData:
    """What a batching rule is told of the mapped axis.

    Args:
      name: the axis name of `vmap`, or None.
      size: number of rows.
      spmd_name: kept as an attribute.
      explicit_mesh_axis: likewise.

    >>> import ferrax as jax
    >>> jax.interpreters.batching.AxisData("i", 3).size
    3
    """

    def __init__(self, name: Any, size: int, spmd_name: Any = None, explicit_mesh_axis: Any = None):
        self.name = name
        self.size = size
        self.spmd_name = spmd_name
        self.explicit_mesh_axis = explicit_mesh_axis


def missing_rule(what: str, name: str) -> NotImplementedError:
    """The error of a rule that nobody has defined."""
    return NotImplementedError(f"{what} for '{name}' not implemented")


@functools.cache
def _abstract_results() -> Callable[..., Any]:
    """A function from a rule, types and parameters to what the rule says of them; it is asked once for each."""
    from ferrax._api import registered_caches
    from ferrax._src.util import cache

    def results(rule: Callable[..., Any], avals: tuple[Any, ...], key: tuple[Any, ...]) -> Any:
        return rule(*avals, **{name: value for name, _, value in key})

    kept = cache()(results)
    registered_caches.append(kept)
    return kept


def _check_hashes(primitive: Primitive, params: dict[str, Any]) -> None:
    for name, value in params.items():
        try:
            isinstance(value, dict) or hash(value)
        except TypeError as error:
            raise TypeError(
                "As of JAX v0.7, parameters to jaxpr equations must have __hash__ and __eq__ methods. In a call to "
                f"primitive {primitive}, the value of parameter {name} was not hashable: {value}"
            ) from error


class Primitive:
    """An operation that transformations know by its rules.

    Args:
      name: its name, as programs print it.

    Attributes:
      is_effectful: a function that says of parameters whether the operation has effects; None for none.

    Rules are set with `def_impl`, `def_abstract_eval`, `ferrax.interpreters.ad.primitive_jvps`,
    `ferrax.interpreters.ad.primitive_transposes`, `ferrax.interpreters.batching.primitive_batchers` and
    `ferrax.interpreters.mlir.register_lowering`. Set `multiple_results` to True where results are a list.

    >>> import ferrax as jax
    >>> double_p = jax.extend.core.Primitive("double")
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> print(double_p.bind(3.0))
    6.0
    >>> jax.make_jaxpr(double_p.bind)(3.0)
    { lambda ; a:f32[]. let b:f32[] = double a in (b,) }
    """

    multiple_results = False
    call_primitive = False
    map_primitive = False
    ref_primitive = False
    ref_allocating = False
    skip_canonicalization = False
    is_effectful: Callable[..., bool] | None = None
    _ferrax_built_in = False
    _ferrax_effectful = False

    def __init__(self, name: str):
        self.name = name
        self._ferrax_abstract_rule: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the operation: runs it, or hands it to the transformation that the operands belong to."""
        if "bind_with_trace" in vars(self):
            from ferrax.extend.core._traces import find_top_trace

            return self.bind_with_trace(find_top_trace(args), args, [_ferrax.typeof(x) for x in args], params)
        return self._ferrax_bound(*args, **params)

    def _ferrax_bound(self, *args: Any, **params: Any) -> Any:
        outs = _ferrax.bind_primitive(self, args, params)
        return outs if self.multiple_results else outs[0]

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the function that runs the operation on arrays.

        Args:
          impl: function of the operands and the parameters.

        Returns:
          `impl`.
        """
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the function that gives types of results for types of operands.

        Args:
          abstract_eval: function of types (`ShapedArray`) and the parameters.

        Returns:
          `abstract_eval`.
        """
        self._ferrax_abstract_rule = lambda *args, **params: (abstract_eval(*args, **params), _NO_EFFECTS)
        return abstract_eval

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, for a function that returns the types and the set of effects.

        Args:
          effectful_abstract_eval: function of types and the parameters.

        Returns:
          `effectful_abstract_eval`.
        """
        self._ferrax_abstract_rule, self._ferrax_effectful = effectful_abstract_eval, True
        return effectful_abstract_eval

    def def_effectful_abstract_eval2(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, of an operation that has an effect: it is kept, in its place, whoever reads results.

        Args:
          abstract_eval: function of types and the parameters.

        Returns:
          `abstract_eval`.
        """
        self._ferrax_abstract_rule = lambda *args, **params: (abstract_eval(*args, **params), frozenset([self]))
        return abstract_eval

    def def_bind_with_trace(self, bind_with_trace: Callable[..., Any]) -> Callable[..., Any]:
        """Sets what `bind` does instead of handing the operation to the core.

        Args:
          bind_with_trace: function `(trace, args, avals, params)` of the transformation at work, the operands, their
            types and the parameters.

        Returns:
          `bind_with_trace`.
        """
        self.bind_with_trace = bind_with_trace  # type: ignore[method-assign]
        return bind_with_trace

    def bind_with_trace(self, trace: Any, args: Any, avals: Any, params: dict[str, Any]) -> Any:
        """Hands the operation to a transformation.

        Args:
          trace: the transformation.
          args: the operands.
          avals: their types, which do not matter.
          params: the parameters.
        """
        if self.name == "custom_jvp_call" and len(params.get("subfuns", ())) == 2:
            fun, jvp = params["subfuns"]
            return trace.process_custom_jvp_call(self, fun, jvp, args, symbolic_zeros=params["symbolic_zeros"])
        return trace.process_primitive(self, args, params)

    def is_high(self, *avals: Any, **params: Any) -> bool:
        """Whether the operation is one of values that are no arrays: no."""
        return False

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """The operation in terms of arrays, of a primitive of values that are none."""
        raise NotImplementedError(f"Primitive '{self.name}' has is_high=True but no to_lojax lowering rule.")

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an equation as `bind` takes them."""
        return dict(params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """Runs the operation on arrays, when `def_impl` has set how."""
        raise missing_rule("Evaluation rule", self.name)

    def abstract_eval(self, *args: Any, **params: Any) -> tuple[Any, Any]:
        """Types of the results for types of the operands, and the effects."""
        if self._ferrax_abstract_rule is None:
            raise missing_rule("Abstract evaluation", self.name)
        out: tuple[Any, Any] = self._ferrax_abstract_rule(*args, **params)
        return out

    # what the core asks for

    def _ferrax_key(self, params: dict[str, Any]) -> Any:
        """What makes two operations equal, `None` where that cannot be told."""
        key = tuple((k, type(v), v) for k, v in sorted(params.items()))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def _ferrax_listed(self, out: Any) -> list[Any]:
        return list(out) if self.multiple_results else [out]

    def _ferrax_abstract(self, avals: list[Any], params: dict[str, Any]) -> tuple[list[Any], bool]:
        key = self._ferrax_key(params)
        if key is None:
            _check_hashes(self, params)
            out, effects = self.abstract_eval(*avals, **params)
        else:
            out, effects = _abstract_results()(self.abstract_eval, tuple(avals), key)
        if isinstance(out, (tuple, list)) != self.multiple_results:
            raise ValueError(
                f"{self.name}.abstract_eval() method should return a tuple or a list iff {self.name}.multiple_results."
            )
        return self._ferrax_listed(out), bool(effects)

    def _ferrax_run(self, args: list[Any], params: dict[str, Any]) -> list[Any]:
        return self._ferrax_listed(self.impl(*args, **params))

    def _ferrax_jvp(
        self, primals: list[Any], tangents: list[Any], params: dict[str, Any]
    ) -> tuple[list[Any], list[Any]]:
        rule, linearization = primitive_jvps.get(self), primitive_linearizations.get(self)
        dots = [_zero_for(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        if rule is not None:
            outs, out_dots = rule(tuple(primals), tuple(dots), **params)
        elif linearization is not None:
            outs, _, kept, linear = linearization(False, [t is not None for t in tangents], *primals, **params)
            out_dots = linear(kept, *dots)
        else:
            raise missing_rule("Differentiation rule", self.name)
        values = self._ferrax_listed(outs)
        inexact = [issubdtype(_ferrax.typeof(v).dtype, np.inexact) for v in values]
        listed = [none_for_zero(t) for t in self._ferrax_listed(out_dots)]
        return values, [t if on else None for t, on in zip(listed, inexact, strict=True)]

    def _ferrax_transpose(
        self, cts: list[Any], args: list[Any], linear: list[bool], params: dict[str, Any]
    ) -> list[Any]:
        rule = primitive_transposes.get(self)
        if rule is None:
            raise missing_rule("Transpose rule (for reverse-mode differentiation)", self.name)
        operands = [UndefinedPrimal(a) if on else a for a, on in zip(args, linear, strict=True)]
        if any(ct is None for ct in cts):
            types = [_ferrax.typeof(a) if not on else a for a, on in zip(args, linear, strict=True)]
            outs = self._ferrax_abstract(types, params)[0]
            cts = [Zero(a.to_tangent_aval()) if ct is None else ct for ct, a in zip(cts, outs, strict=True)]
        given = rule(cts if self.multiple_results else cts[0], *operands, **params)
        if given is None or given is Zero or type(given) is Zero:  # the class, too, says that all are zero
            return [None] * len(args)
        pulled = [none_for_zero(ct) for ct in given]
        if len(pulled) != len(args):
            raise ValueError(
                f"the transpose rule of {self.name} gave {len(pulled)} cotangents for {len(args)} operands"
            )
        return [ct if on else None for ct, on in zip(pulled, linear, strict=True)]

    def _ferrax_batch(
        self, size: int, name: Any, args: list[Any], dims: list[int | None], params: dict[str, Any]
    ) -> tuple[list[Any], list[int | None]]:
        if self in fancy_primitive_batchers:
            rule = functools.partial(fancy_primitive_batchers[self], AxisData(name, size))
        elif self in axis_primitive_batchers:
            rule = functools.partial(axis_primitive_batchers[self], size, name, None)
        elif self in primitive_batchers:
            rule = functools.partial(primitive_batchers[self])
        else:
            raise missing_rule("Batching rule", self.name)
        outs, out_dims = rule(tuple(args), tuple(dims), **params)
        listed = self._ferrax_listed(outs)
        places = list(out_dims) if self.multiple_results else [out_dims]
        return listed, [
            d if d is None else d % max(len(_ferrax.shape(v)), 1) for v, d in zip(listed, places, strict=True)
        ]

    def _ferrax_lower(self, args: list[Any], params: dict[str, Any]) -> list[Any]:
        if self._ferrax_effectful and self._ferrax_abstract_rule is not None:
            from ferrax._src.effects import Effect, lowerable_effects

            effects = self._ferrax_abstract_rule(*map(_ferrax.typeof, args), **params)[1]
            refused = lowerable_effects.filter_not_in(e for e in effects if isinstance(e, Effect))
            if refused:
                raise ValueError(f"Cannot lower jaxpr with effects: {refused}")
        rules = primitive_lowerings.get(self, {})
        rule = rules.get("cpu", rules.get(None))
        if isinstance(rule, TypedLowering):
            from ferrax.extend.lowering import LoweringRuleContext

            avals = [_ferrax.typeof(a) for a in args]
            outs = self._ferrax_abstract(avals, params)[0]
            context = LoweringRuleContext(None, None, None, self, avals, outs, None, None, None, platforms=("cpu",))
            return rule(context, *args, **params)
        if isinstance(rule, Lowering):
            return rule(None, *args, **params)
        if rule is None:
            raise NotImplementedError(f"MLIR translation rule for primitive '{self.name}' not found for platform cpu")
        from ferrax.interpreters.xla import apply_primitive

        built = self._ferrax_built(rule, args, params)
        if built is not None:
            return built
        if "impl" not in vars(self) or getattr(self.impl, "func", None) is apply_primitive:
            raise NotImplementedError(
                f"the lowering of the primitive '{self.name}' is written for MLIR, which ferrax does not use: give it "
                "as a function with ferrax.interpreters.mlir.lower_fun, or define the primitive's implementation "
                "(def_impl), one that does not compile the primitive"
            )
        return self._ferrax_called_back(args, params)

    def _ferrax_built(self, rule: Any, args: list[Any], params: dict[str, Any]) -> list[Any] | None:
        """What a lowering for MLIR gives: operands, and results of the operations of StableHLO that there are; None
        where it builds something else."""
        from ferrax._src.lib.mlir._values import BlockArgument, arrays_of
        from ferrax.extend.lowering import LoweringRuleContext

        avals = [_ferrax.typeof(a) for a in args]
        outs = self._ferrax_abstract(avals, params)[0]
        context = LoweringRuleContext(None, None, None, self, avals, outs, None, None, None, platforms=("cpu",))
        try:
            given = rule(context, *(BlockArgument(a, place) for place, a in enumerate(args)), **params)
            arrays = [x[0] if isinstance(x, list) and len(x) == 1 else x for x in arrays_of(list(given))]
            types = [_ferrax.typeof(x) for x in arrays]
        except Exception:  # whatever a rule raises that asks values for more than they have
            return None
        if [(a.shape, a.dtype) for a in types] != [(a.shape, a.dtype) for a in outs]:
            return None
        return arrays

    def _ferrax_called_back(self, args: list[Any], params: dict[str, Any]) -> list[Any]:
        """The implementation called from the program, where the lowering is none that can be traced."""
        from ferrax._callbacks import pure_callback
        from ferrax._shape_dtype import ShapeDtypeStruct

        avals = self._ferrax_abstract([_ferrax.typeof(a) for a in args], params)[0]
        structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        return list(pure_callback(lambda *values: self._ferrax_run(list(values), params), structs, *args))


_NO_EFFECTS: frozenset[Any] = frozenset()


def _zero_for(primal: Any) -> Zero:
    return Zero(_ferrax.typeof(primal).to_tangent_aval())


def none_for_zero(value: Any) -> Any:
    """A tangent or cotangent as the core takes it: `None` for zeros."""
    return None if type(value) is Zero or value is None else value


class BuiltIn(Primitive):
    """A primitive of ferrax's own, by name.

    Args:
      name: its name.
      multiple_results: whether its results are a list.
    """

    _ferrax_built_in = True

    def __init__(self, name: str, multiple_results: bool):
        super().__init__(name)
        self.multiple_results = multiple_results

    def _ferrax_bound(self, *args: Any, **params: Any) -> Any:
        """Applies the operation, with its parameters as equations show them or as JAX has them."""
        if self.name in _TRANSLATED:
            from ferrax._jax_parameters import TRANSLATED

            return TRANSLATED[self.name](super()._ferrax_bound, *args, **params)
        return super()._ferrax_bound(*args, **params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an equation as `bind` takes them; programs with derivatives of their own are `subfuns`."""
        if self.name == "custom_jvp_call":
            from ferrax._jax_parameters import with_subfuns
            from ferrax._parameters import own

            return with_subfuns(**own(params))
        return super().get_bind_params(params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """Runs the operation on arrays."""
        return self.bind(*args, **params)

    def abstract_eval(self, *args: Any, **params: Any) -> tuple[Any, Any]:
        """Types of the results for types of the operands, and the effects."""
        program = _ferrax.trace_to_jaxpr(functools.partial(self.bind, **params), args, None, "eval_shape")
        outs = [ShapedArray(a.shape, a.dtype, a.weak_type) for a in program.out_avals]
        return outs if self.multiple_results else outs[0], _NO_EFFECTS


#: The keys of `ferrax._jax_parameters.TRANSLATED`.
_TRANSLATED = frozenset(
    [
        "approx_top_k",
        "call",
        "closed_call",
        "conj",
        "custom_jvp_call",
        "device_put",
        "dot_general",
        "fft",
        "jit",
        "mul",
        "sharding_constraint",
    ]
)

_MULTIPLE = frozenset(
    [
        "approx_top_k",
        "call",
        "closed_call",
        "cond",
        "custom_jvp_call",
        "custom_lin",
        "custom_linear_solve",
        "custom_vjp_call",
        "custom_vjp_linear",
        "custom_vmap_call",
        "dce_sink",
        "debug_callback",
        "debug_print",
        "device_put",
        "eig",
        "eigh",
        "ffi_call",
        "hessenberg",
        "io_callback",
        "jit",
        "lu",
        "optimization_barrier",
        "pure_callback",
        "qr",
        "reduce",
        "reduce_window",
        "remat2",
        "rng_bit_generator",
        "scan",
        "schur",
        "sort",
        "split",
        "svd",
        "threefry2x32",
        "top_k",
        "tridiagonal",
        "unstack",
        "while",
        "while_linear",
    ]
)

_table: dict[str, BuiltIn] = {}


def built_in(name: str) -> BuiltIn:
    """The primitive of this name."""
    known = _table.get(name)
    if known is None:
        known = _table.setdefault(name, BuiltIn(name, name in _MULTIPLE))
    return known


def sequence_of(value: Any) -> Sequence[Any]:
    """A list or tuple itself, anything else as the one element of a list."""
    return value if isinstance(value, (list, tuple)) else [value]
