"""Random sparse arrays. Read next: `_bcoo.py`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp, random as _random
from ferrax._api import vmap
from ferrax._boundary import expose as _expose
from ferrax._core import Array, canonicalize_dtype
from ferrax._lazy import lend as _lend
from ferrax._shapes import static_shape
from ferrax.experimental.sparse._base import user_index_dtype
from ferrax.experimental.sparse._bcoo import BCOO, split_shape
from ferrax.experimental.sparse._bcoo_core import bcoo_sort_indices
from ferrax.typing import DTypeLike

__all__ = ["random_bcoo"]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax._src.util": "split_list",
    },
)


def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = jnp.float64,
    indices_dtype: DTypeLike | None = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = _random.uniform,
    **kwds: Any,
) -> BCOO:
    """A random BCOO array.

    Args:
      key: a random key.
      shape: the sizes of the axes.
      dtype: type of the elements.
      indices_dtype: type of the indices; int, as wide as enabled, where none is given.
      nse: number of elements of each batch, or, below 1, the fraction of the sparse axes' positions.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      unique_indices: whether no index comes twice.
      sorted_indices: whether the indices are sorted.
      generator: gives the elements for a key, a shape and a dtype.
      **kwds: other arguments of `generator`.

    Returns:
      A BCOO array.

    Raises:
      ValueError: there are not so many axes or positions.

    >>> import ferrax as jax
    >>> from ferrax.experimental import sparse
    >>> sparse.random_bcoo(jax.random.key(0), (4, 5), nse=3, dtype="float32")
    BCOO(float32[4, 5], nse=3)
    """
    shape = static_shape(shape)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    batch, inner, dense = split_shape(shape, n_batch, n_dense)
    count = math.prod(inner)
    if not 0 <= nse < 1:
        nse = operator.index(nse)
    else:
        nse = math.ceil(nse * count)
    if not 0 <= nse <= count:
        raise ValueError(f"got {nse=}, expected to be between 0 and {count}")
    index_dtype = user_index_dtype(canonicalize_dtype(np.int64) if indices_dtype is None else indices_dtype, inner)
    # the keys of the batches follow that of the data
    keys = _random.split(key, 1 + math.prod(batch))
    data = generator(keys[0], shape=(*batch, nse, *dense), dtype=canonicalize_dtype(dtype, "random_bcoo"), **kwds)
    if inner and math.prod(batch):

        def draw(key: Any) -> Any:
            return _random.choice(key, count, shape=(nse,), replace=not unique_indices)

        places = lax.reshape(vmap(draw)(keys[1:]), (*batch, nse)) if nse else jnp.zeros((*batch, nse), np.int32)
        parts = []
        for i in range(len(inner)):
            step = max(math.prod(inner[i + 1 :]), 1)
            part = lax.div(places, lax.full_like(places, step))
            parts.append(lax.rem(part, lax.full_like(part, max(inner[i], 1))))
        indices = lax.convert_element_type(jnp.stack(parts, axis=-1), index_dtype)
    else:
        indices = jnp.zeros((*batch, nse, len(inner)), index_dtype)
    out = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return bcoo_sort_indices(out) if sorted_indices else out


_expose(globals())
