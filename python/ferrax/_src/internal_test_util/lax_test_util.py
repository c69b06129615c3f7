"""Which operations of `lax` tests take through their cases: their operands, dtypes, draws and tolerances.

One line of a table is one operation, so that a test may ask for all of them (`lax_ops()`). Positions of batched axes
are enumerated here too. Read next: `ferrax/_src/test_util.py`, whose groups of dtypes and draws these are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import dtypes as _dtypes, lax
from ferrax._src import test_util as jtu

float_dtypes = jtu.dtypes.all_floating
complex_elem_dtypes = jtu.dtypes.floating
complex_dtypes = jtu.dtypes.complex
inexact_dtypes = jtu.dtypes.all_inexact
int_dtypes = jtu.dtypes.all_integer
uint_dtypes = jtu.dtypes.all_unsigned
bool_dtypes = jtu.dtypes.boolean
default_dtypes = float_dtypes + int_dtypes
number_dtypes = float_dtypes + complex_dtypes + int_dtypes + uint_dtypes
all_dtypes = number_dtypes + bool_dtypes
python_scalar_types = [bool, int, float, complex]

#: Shapes that operands of one operation may have together.
compatible_shapes = [[(3,)], [(3, 4), (3, 1), (1, 4)], [(2, 3, 4), (2, 1, 4)]]

_NO_HALVES = [d for d in float_dtypes if d not in (_dtypes.bfloat16, np.float16)]
_GROUPS = {
    "f": float_dtypes,
    "c": complex_dtypes,
    "e": complex_elem_dtypes,
    "i": int_dtypes,
    "u": uint_dtypes,
    "b": bool_dtypes,
    "n": [d for d in float_dtypes if d != _dtypes.bfloat16],  # NumPy's own
    "w": _NO_HALVES,
}
_DOUBLE = {"float64": 1e-14}
#: Operands, groups of dtypes, the draw of `test_util`, names.
_OPERATIONS = (
    (1, "fic", "small", "neg"),
    (1, "fiu", "small", "sign"),
    (1, "f", "small", "floor ceil is_finite erf erfc erf_inv"),
    (1, "f", "default", "round cbrt bessel_i0e bessel_i1e"),
    (2, "n", "default", "nextafter"),
    (1, "fc", "small", "exp exp2 expm1 tanh asin acos atan atanh"),
    (1, "fc", "positive", "log log1p reciprocal acosh"),
    (1, "fc", "default", "logistic sin cos square tan asinh sinh cosh"),
    (2, "f", "default", "atan2"),
    (1, "f", "positive", "sqrt rsqrt lgamma digamma"),
    (1, "c", "default", "sqrt rsqrt real imag"),
    (3, "f", "uniform", "betainc"),
    (2, "w", "positive", "igamma igammac"),
    (2, "e", "default", "complex"),
    (1, "ec", "default", "conj"),
    (1, "fic", "default", "abs"),
    (2, "fc", "positive", "pow"),
    (2, "b", "small", "bitwise_and bitwise_or bitwise_xor"),
    (1, "b", "small", "bitwise_not"),
    (1, "iu", "int", "population_count clz"),
    (2, "fic", "small", "add sub mul"),
    (2, "iu", "fullrange", "mulhi"),
    (2, "fic", "nonzero", "div"),
    (2, "fi", "nonzero", "rem"),
    (2, "fciub", "small", "max min ne"),
    (2, "fciub", "some_equal", "eq"),
    (2, "fi", "small", "ge gt le lt"),
)
#: By name, where results are to be less close, or closer, than results of a dtype are in general.
_TOLERANCES: dict[str, Any] = {
    "nextafter": 0,
    "expm1": {"float64": 1e-8},
    "tanh": {"float64": 1e-9, "complex128": 1e-7},
    "tan": {"float32": 3e-5},
    "asin": {"complex128": 5e-12},
    "asinh": {"complex64": 1e-4, "complex128": 1e-5},
    "atanh": {"float64": 1e-9},
    "lgamma": {"float32": 1e-5, "float64": 1e-14},
    "digamma": _DOUBLE,
    "betainc": {"float32": 2e-5, "float64": 1e-12},
    "igamma": _DOUBLE,
    "igammac": _DOUBLE,
    "erf_inv": {"float64": 1e-9},
}


class OpRecord(NamedTuple):
    """An operation: its name, number of operands, dtypes, draw, and tolerances by dtype or None."""

    op: str
    nargs: int
    dtypes: Sequence[Any]
    rng_factory: Callable[..., Any]
    tol: Any


class ReducerOpRecord(NamedTuple):
    """A reduction by a function: NumPy's of the same, the value it starts from, dtypes, and the primitive it is."""

    op: Callable[..., Any]
    reference_op: Callable[..., Any]
    init_val: Any
    dtypes: Sequence[Any]
    primitive: Any


class NamedReducerOpRecord(NamedTuple):
    """A reduction with a name of its own, NumPy's, and dtypes."""

    op: Callable[..., Any]
    reference_op: Callable[..., Any]
    dtypes: Sequence[Any]


def op_record(op: str, nargs: int, dtypes: Sequence[Any], rng_factory: Callable[..., Any], tol: Any = None) -> OpRecord:
    """An operation, with tolerances or without."""
    return OpRecord(op, nargs, dtypes, rng_factory, tol)


def _members(groups: str) -> list[Any]:
    return [dtype for group in groups for dtype in _GROUPS[group]]


def _tolerance_of(name: str) -> Any:
    given = _TOLERANCES.get(name)
    return {np.dtype(k).type: v for k, v in given.items()} if isinstance(given, dict) else given


def lax_ops() -> list[OpRecord]:
    """The operations on elements."""
    return [
        op_record(name, nargs, _members(groups), getattr(jtu, f"rand_{draw}"), _tolerance_of(name))
        for nargs, groups, draw, names in _OPERATIONS
        for name in names.split()
    ]


def lax_out_dtype_ops() -> list[OpRecord]:
    """The operations that take the dtype of their result."""
    return [op_record("mul", 2, _members("fic"), jtu.rand_small)]


def lax_reduce_ops() -> list[ReducerOpRecord]:
    """Reductions by functions of `lax`."""
    bits = _members("iub")

    def extremes(op: Any, reference: Any, end: str, primitive: Any, wide: Iterable[Any]) -> Iterator[ReducerOpRecord]:
        for dtype in wide:
            yield ReducerOpRecord(op, reference, getattr(_dtypes.iinfo(dtype), end), [dtype], primitive)

    signed, unsigned = (np.int32, np.int64), (np.uint32, np.uint64)
    return [
        ReducerOpRecord(lax.add, np.add, 0, default_dtypes, lax.reduce_sum_p),
        ReducerOpRecord(lax.mul, np.multiply, 1, default_dtypes, lax.reduce_prod_p),
        ReducerOpRecord(lax.max, np.maximum, 0, _members("ub"), lax.reduce_max_p),
        ReducerOpRecord(lax.max, np.maximum, -np.inf, float_dtypes, lax.reduce_max_p),
        *extremes(lax.max, np.maximum, "min", lax.reduce_max_p, signed),
        ReducerOpRecord(lax.min, np.minimum, np.inf, float_dtypes, lax.reduce_min_p),
        *extremes(lax.min, np.minimum, "max", lax.reduce_min_p, signed + unsigned),
        ReducerOpRecord(lax.bitwise_and, np.bitwise_and, -1, bits, lax.reduce_and_p),
        ReducerOpRecord(lax.bitwise_or, np.bitwise_or, 0, bits, lax.reduce_or_p),
        ReducerOpRecord(lax.bitwise_xor, np.bitwise_xor, 0, bits, lax.reduce_xor_p),
    ]


def lax_named_reduce_ops() -> list[NamedReducerOpRecord]:
    """Reductions that are functions of their own."""
    numbers: dict[str, Any] = {"sum": np.sum, "prod": np.prod}
    orders: dict[str, Any] = {"max": np.max, "min": np.min}
    bits: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    return [
        *(NamedReducerOpRecord(getattr(lax, f"reduce_{k}"), f, number_dtypes) for k, f in numbers.items()),
        *(NamedReducerOpRecord(getattr(lax, f"reduce_{k}"), f, all_dtypes) for k, f in orders.items()),
        *(NamedReducerOpRecord(getattr(lax, f"reduce_{k}"), f.reduce, _members("biu")) for k, f in bits.items()),
    ]


def all_bdims(*shapes: Sequence[int]) -> Iterator[tuple[int | None, ...]]:
    """All choices of an axis for each shape, None for no axis, but not none for all of them."""
    choices = ([None, *range(len(shape) + 1)] for shape in shapes)
    return (dims for dims in itertools.product(*choices) if any(dim is not None for dim in dims))


def add_bdim(bdim_size: int, bdim: int | None, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with an axis more, or as it is for None."""
    if bdim is None:
        return tuple(shape)
    return (*shape[:bdim], bdim_size, *shape[bdim:])


def slicer(x: Any, bdim: int | None) -> Callable[[int], Any]:
    """A function from a position on an axis to what there is; for None, always the whole."""
    if bdim is None:
        return lambda _: x
    return lambda i: lax.index_in_dim(x, i, bdim, keepdims=False)


def args_slicer(args: Sequence[Any], bdims: Sequence[int | None]) -> Callable[[int], list[Any]]:
    """A function from a position to what all arguments have there."""
    slicers = [slicer(x, bdim) for x, bdim in zip(args, bdims, strict=True)]
    return lambda i: [at(i) for at in slicers]
