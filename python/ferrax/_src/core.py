"""Whether a transformation is at work, and what `ferrax.core` and `ferrax.extend.core` have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from ferrax import _ferrax, core as _core, dtypes
from ferrax._api import typeof as typeof
from ferrax._avals import AbstractValue
from ferrax._high_types import AvalMutableQDD as AvalMutableQDD, AvalQDD as AvalQDD
from ferrax._pretty import JaxprPpContext as JaxprPpContext, JaxprPpSettings as JaxprPpSettings
from ferrax._shapes import is_symbolic_dim as is_symbolic_dim, max_dim as max_dim, static_size
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.util import safe_map as safe_map, safe_zip as safe_zip
from ferrax.core import Tracer
from ferrax.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from ferrax.extend.core import AbstractToken, Literal
from ferrax.extend.core._programs import JaxprEqnContext as JaxprEqnContext
from ferrax.extend.core._traces import trace_at_work, trace_numbered
from ferrax.ref import Ref as Ref, freeze as freeze, new_ref as new_ref
from ferrax.sharding._entries import ShardingTypeError as ShardingTypeError

AxisName = Any
OutputType = tuple[AbstractValue, ...]
Shape = tuple[int, ...]

#: The type of what orders effects.
abstract_token = AbstractToken()
#: Stands for an axis without a name.
no_axis_name = object()
#: Checks of equations by primitive, besides the core's own: users may add some, and nothing asks them.
custom_typechecks: dict[Any, Any] = {}
#: How types of values that are no arrays are mapped: users may say how for theirs, whose arrays are mapped here.
aval_mapping_handlers: dict[type, Any] = {}
#: Python's and NumPy's numbers: programs hold them as literals.
literalable_types: set[Any] = {bool, int, float, complex, np.bool_, *np.sctypeDict.values()} - {
    np.object_, np.str_, np.bytes_, np.void, np.datetime64, np.timedelta64
}  # fmt: skip


_others = names_of(__name__, "ferrax.extend.core", "ferrax.extend.core.primitives", "ferrax.errors")


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return bool(_ferrax.current_trace() == 0)


def full_lower(val: Any) -> Any:
    """The value itself: none is a tracer without need."""
    return val


def physical_aval(aval: Any) -> Any:
    """The type of the numbers that stand for a value: the words of keys, elsewhere its own type.

    >>> import ferrax as jax
    >>> physical_aval(jax.typeof(jax.random.split(jax.random.key(0))))
    ShapedArray(uint32[2,2])
    """
    if not dtypes.issubdtype(getattr(aval, "dtype", None), dtypes.prng_key):
        return aval
    return _core.ShapedArray((*aval.shape, *aval.dtype._impl.key_shape), np.dtype(np.uint32))


class AxisEnv:
    """The named axes in force.

    Args:
      axis_sizes: their sizes by name.

    >>> AxisEnv({"rows": 2}).axis_size("rows")
    2
    """

    def __init__(self, axis_sizes: Mapping[Any, int] | None = None):
        self.axis_sizes = dict(axis_sizes or {})

    def axis_size(self, axis_name: Any) -> int:
        """The size of an axis; NameError where there is none of the name."""
        if axis_name not in self.axis_sizes:
            raise NameError(f"unbound axis name: {axis_name}")
        return self.axis_sizes[axis_name]

    def axis_exists(self, axis_name: Any) -> bool:
        """Whether there is an axis of the name."""
        return axis_name in self.axis_sizes

    def axis_names(self) -> tuple[Any, ...]:
        """The names."""
        return tuple(self.axis_sizes)


class TracingContext:
    """What is at work: a transformation, and named axes.

    >>> import ferrax as jax
    >>> from ferrax._src.core import trace_ctx
    >>> trace_ctx.is_top_level(), jax.jit(lambda: trace_ctx.is_top_level() or 1)().item()
    (True, 1)
    """

    __slots__ = ()

    @property
    def trace(self) -> Any:
        """The transformation."""
        return trace_at_work()

    @property
    def axis_env(self) -> AxisEnv:
        """The named axes."""
        return AxisEnv(dict(_ferrax.named_axes()))

    def is_top_level(self) -> bool:
        """Whether there are neither a transformation nor named axes."""
        return trace_state_clean() and not _ferrax.named_axes()


#: The one of no transformation.
eval_trace = trace_numbered(0)
trace_ctx = TracingContext()


def get_axis_env() -> AxisEnv:
    """The named axes in force."""
    return trace_ctx.axis_env


def last_used(jaxpr: Any) -> dict[Any, Any]:
    """For each variable of a program the equation that reads it last; None for results of the program."""
    last = {v: None for v in jaxpr.outvars if not isinstance(v, Literal)}
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.invars:
            if not isinstance(v, Literal):
                last.setdefault(v, eqn)
    return last


def clean_up_dead_vars(eqn: Any, env: dict[Any, Any], last_used: dict[Any, Any]) -> None:
    """Takes values out of an environment that no equation behind this one reads."""
    for v in {v for v in eqn.invars if not isinstance(v, Literal)}:
        last = last_used[v]  # a program's equations are new objects each time
        if last is not None and (last.invars, last.outvars) == (eqn.invars, eqn.outvars):
            env.pop(v, None)


def is_concrete(x: Any) -> bool:
    """Whether a value is known: an array or number, or a traced one that carries its value."""
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    """The value of what is known; None of what is traced without one."""
    if not isinstance(x, Tracer):
        return x
    try:
        return _ferrax.concrete_or_error(None, x)
    except ConcretizationTypeError:
        return None


def concretization_function_error(
    fun: Callable[..., Any], suggest_astype: bool = False
) -> Callable[[Any, Any], NoReturn]:
    """A function `(self, arg)` that raises the error of a traced value where `fun` needs a known one."""
    name = getattr(fun, "__name__", str(fun))
    advice = ""
    if suggest_astype:
        advice = (
            " If trying to convert the data type of a value, try using "
            f"`x.astype({name})` or `jnp.array(x, {name})` instead."
        )

    def error(self: Any, arg: Any) -> NoReturn:
        raise ConcretizationTypeError(arg, f"The problem arose with the `{name}` function.{advice}")

    return error


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, and no symbolic size."""
    return isinstance(d, (int, np.integer))


def definitely_equal_one_of_dim(d1: Any, dlist: Iterable[Any]) -> bool:
    """Whether a size is one of several, whatever symbols are."""
    return any(definitely_equal(d1, d) for d in dlist)


def canonicalize_dim(d: Any, context: str = "") -> int:
    """A size as Python's integer, or a symbolic size.

    Raises:
      TypeError: it is none.
    """
    (size,) = canonicalize_shape((d,), context)
    return size


def dimension_as_value(d: Any) -> Any:
    """A size as a value: a symbolic one as a scalar array."""
    return d.dimension_as_value() if is_symbolic_dim(d) else d


def call(*args: Any, subfuns: Any = None, **params: Any) -> Any:
    """Calls a function wrapped by `linear_util.wrap_init`, the first argument or the one of `subfuns`; gives a list."""
    if subfuns is None:
        subfuns, args = args[:1], args[1:]
    return _others("call_p").bind(*args, subfuns=tuple(subfuns), **params)


def identity(x: Any) -> Any:
    """The argument."""
    return x


def is_constant_shape(s: Iterable[Any]) -> bool:
    """Whether all sizes of a shape are numbers."""
    return all(map(is_constant_dim, s))


def is_empty_shape(s: Iterable[Any]) -> bool:
    """Whether arrays of a shape have no elements."""
    return 0 in tuple(s)


def canonicalize_shape(shape: Any, context: str = "") -> tuple[int, ...]:
    """A shape as a tuple of Python's integers and symbolic sizes.

    Raises:
      TypeError: a size is no integer.
    """
    try:
        return tuple(map(static_size, shape))
    except TypeError:
        where = f" {context}" if context else ""
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.{where}"
        ) from None


def typematch(t1: Any, t2: Any, no_dtype_check: bool = False) -> bool:
    """Whether two types are the same, weak or not."""
    return t1.shape == t2.shape and (no_dtype_check or t1.dtype == t2.dtype)


def typecompat(aval_ref: Any, aval: Any) -> bool:
    """Whether a type conforms to another one, weak or not."""
    return typematch(aval_ref, aval)


def definitely_equal(d1: Any, d2: Any) -> bool:
    """Whether two sizes are the same."""
    return d1 is d2 or bool(d1 == d2)


def definitely_equal_shape(s1: Iterable[Any], s2: Iterable[Any]) -> bool:
    """Whether two shapes are the same."""
    first, second = tuple(s1), tuple(s2)
    return len(first) == len(second) and all(map(definitely_equal, first, second))


def is_dim(v: Any) -> bool:
    """Whether a value may be a size."""
    return is_constant_dim(v) or is_symbolic_dim(v)


def divide_shape_sizes(s1: Iterable[int], s2: Iterable[int]) -> int:
    """How many arrays of the second shape have the elements of one of the first.

    Raises:
      InconclusiveDimensionOperation: no whole number of them has.
    """
    size1, size2 = math.prod(s1), math.prod(s2)
    if size1 == size2:
        return 1
    if size2 == 0 or size1 % size2:
        raise InconclusiveDimensionOperation(f"Cannot divide evenly the sizes of shapes {tuple(s1)} and {tuple(s2)}")
    return size1 // size2


def dilate_dim(d: int, dilation: int) -> int:
    """A size where `dilation - 1` places come between two elements."""
    return max_dim(1 + dilation * (d - 1), 0)


def stride_dim(d: int, window_size: int, window_stride: int) -> int:
    """How many windows a size holds."""
    return max_dim((d - window_size) // window_stride + 1, 0)


def shaped_abstractify(x: Any) -> Any:
    """The type of a value."""
    return typeof(x)


def get_token_aval() -> AbstractToken:
    """The type of what orders effects."""
    return abstract_token


def reduced_vary_cast(x: Any, axes: Any) -> Any:
    """What is the same over manual axes, which counts as varying over them; its gradient is due."""
    from ferrax.lax import pcast

    return pcast(x, axes, to="varying")


def vary_unreduced_cast(x: Any, axes: Any) -> Any:
    """What varies over manual axes, as terms of a sum that is due over them."""
    from ferrax.lax import pcast

    return pcast(x, axes, to="unreduced")


def _public(name: str) -> Any:
    if name == "pytype_aval_mappings":
        from ferrax._registered_types import pytype_aval_mappings

        return pytype_aval_mappings
    return getattr(_core, name) if name in _core.__all__ else _others(name)


__getattr__ = unprovided_names(
    __name__,
    "ClosedCallPrimitive EvalTrace InputType "
    "ManualAxisType MemorySpace MutableTypecheckVal NamedAxisEffect QuasiDynamicData "
    "array_ref_effect cur_aval_qdd cur_qdd freeze_p internal_mutable_array_effect "
    "pp_eqn_rules pp_jaxpr ref_p reset_trace_state",
    "it is part of how JAX traces, and ferrax's core traces",
    _public,
)
