"""Operations on arrays."""

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._core import asarray as asarray
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.typing import DTypeLike as DTypeLike

__getattr__ = unprovided_names(
    __name__,
    "naryop naryop_dtype_rule standard_primitive unop unop_dtype_rule broadcasting_shape_rule "
    "ragged_dot_general_p tie_p to_edtype_p from_edtype_p accuracy_attr",
    "primitives of users are made by ferrax.extend.core.Primitive",
    names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives", "ferrax.lax._composite"),
)


def ranges_like(*xs: Sized) -> Iterator[range]:
    """Ranges that follow one another, of the lengths of containers."""
    start = 0
    for x in xs:
        yield range(start, start + len(x))
        start += len(x)


def remaining(original: Sequence[Any], *removed_lists: Iterable[Any]) -> list[Any]:
    """The items of a sequence that are in none of others."""
    removed = set().union(*removed_lists)
    return [x for x in original if x not in removed]


def _convert_element_type(operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None) -> Any:
    """The values with a dtype, their own for None, which may be weak; on the devices of a sharding."""
    from ferrax import device_put

    dtype = _ferrax.typeof(operand).dtype if new_dtype is None else new_dtype
    out = _ferrax.lax.convert(operand, dtype, bool(weak_type))
    return out if sharding is None else device_put(out, sharding)


def _complex_basetype(dtype: Any, **_: Any) -> np.dtype[Any]:
    """The dtype of the absolute values of numbers of a dtype."""
    return np.abs(np.zeros((), dtype)).dtype


def _const(example: Any, val: Any) -> Any:
    """A number with the dtype of an example: one of Python's where the example is a weak number."""
    from ferrax._src import dtypes

    dtype = dtypes.dtype(example)
    if type(example) is bool:
        return bool(val)
    if dtypes.is_weakly_typed_scalar(example):
        kind: Any = dtypes._jax_type(dtype, True)
        if dtype == dtypes.dtype(kind):
            return kind(val)
    return np.array(val, dtype)


def _eye(dtype: Any, shape: Sequence[int], offset: int = 0) -> Any:
    """A matrix with ones on a diagonal."""
    import ferrax.numpy as jnp

    rows, columns = shape
    return jnp.eye(rows, columns, k=offset, dtype=dtype)


def _tri(dtype: Any, shape: Sequence[int], offset: int) -> Any:
    """A matrix with ones on a diagonal and below it."""
    import ferrax.numpy as jnp

    rows, columns = shape
    return jnp.tri(rows, columns, k=offset, dtype=dtype)


def _delta(dtype: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """An array with ones where the indices of some axes are the same, and zeros elsewhere."""
    import ferrax.numpy as jnp
    from ferrax import lax

    sizes = tuple(shape[axis] for axis in axes)
    step = sum(math.prod(sizes[k + 1 :]) for k in range(len(sizes)))
    flat = jnp.zeros(math.prod(sizes), dtype).at[step * np.arange(min(sizes))].set(1)
    return lax.broadcast_in_dim(flat.reshape(sizes), shape, axes)
