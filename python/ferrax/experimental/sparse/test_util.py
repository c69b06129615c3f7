"""What tests of sparse functions need: layouts of a shape, and random sparse arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ferrax import numpy as jnp
from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._base import is_sparse
from ferrax.experimental.sparse._bcoo import BCOO
from ferrax.experimental.sparse._bcoo_core import bcoo_fromdense
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.experimental.sparse._bcsr_functions import bcsr_fromdense
from ferrax.experimental.sparse._test_case import MATMUL_TOL, SparseTestCase

__all__ = [
    "MATMUL_TOL",
    "BatchedDotGeneralProperties",
    "SparseLayout",
    "SparseTestCase",
    "is_sparse",
    "iter_bcsr_layouts",
    "iter_sparse_layouts",
    "iter_subsets",
    "rand_bcoo",
    "rand_bcsr",
    "rand_sparse",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax.typing": "DTypeLike",
        "ferrax.experimental.sparse._bcoo_dot": "DotDimensionNumbers",
        "ferrax._src.util": "safe_zip split_list",
    },
)


class SparseLayout(NamedTuple):
    """How the axes of a sparse array divide.

    Args:
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      n_sparse: number of sparse axes.

    >>> from ferrax.experimental.sparse import test_util
    >>> test_util.SparseLayout(n_batch=1, n_dense=0, n_sparse=2)
    SparseLayout(n_batch=1, n_dense=0, n_sparse=2)
    """

    n_batch: int
    n_dense: int
    n_sparse: int


class BatchedDotGeneralProperties(NamedTuple):
    """Shapes and layout for a test of a contraction.

    Args:
      lhs_shape: shape of the first operand.
      rhs_shape: shape of the second operand.
      n_batch: number of batch axes.
      n_dense: number of dense axes.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.

    >>> from ferrax.experimental.sparse import test_util
    >>> test_util.BatchedDotGeneralProperties((2,), (2,), 0, 0, (((0,), (0,)), ((), ()))).n_batch
    0
    """

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


def iter_subsets(s: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """The subsets of a sequence, as tuples, short ones first.

    Args:
      s: the sequence.

    Returns:
      An iterator.

    >>> from ferrax.experimental.sparse import test_util
    >>> list(test_util.iter_subsets("ab"))
    [(), ('a',), ('b',), ('a', 'b')]
    """
    return itertools.chain.from_iterable(itertools.combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """The layouts that a BCOO array of a shape can have.

    Args:
      shape: the shape.
      min_n_batch: the fewest batch axes.

    Yields:
      The layouts.

    >>> from ferrax.experimental.sparse import test_util
    >>> len(list(test_util.iter_sparse_layouts((2, 3))))
    6
    """
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch=n_batch, n_dense=n_dense, n_sparse=len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """The layouts that a BCSR array of a shape can have.

    Args: as in `iter_sparse_layouts`.

    Yields:
      The layouts.

    >>> from ferrax.experimental.sparse import test_util
    >>> len(list(test_util.iter_bcsr_layouts((2, 3, 4))))
    2
    """
    for layout in iter_sparse_layouts(shape, min_n_batch):
        if layout.n_sparse == 2:
            yield layout


def _normal(shape: Sequence[int], dtype: Any) -> Any:
    """Numbers of a global generator of NumPy's."""
    return np.asarray(3 * np.random.randn(*shape)).astype(dtype)


def _zeros_among(
    rng: Any, rand_method: Callable[..., Any] | None, nse: int | float, n_batch: int, n_dense: int
) -> Callable[..., Any]:
    """A function that makes dense arrays with a number of places that are not zero in each batch."""

    def make(shape: Sequence[int], dtype: Any) -> tuple[np.ndarray, int]:
        shape = tuple(shape)
        inner = shape[n_batch : len(shape) - n_dense]
        count = math.prod(inner)
        places = int(nse * count) if 0 < nse < 1 else int(nse)
        places = min(places, count)
        method = (rand_method or (lambda _: _normal))(rng)
        values = np.asarray(method(shape, dtype))
        batch = math.prod(shape[:n_batch])
        mask = np.zeros((batch, count), bool)
        for row in mask:
            row[rng.permutation(count)[:places]] = True
        mask = mask.reshape((*shape[:n_batch], *inner, *(1,) * n_dense))
        return np.where(mask, values, np.zeros((), values.dtype)), places

    return make


def rand_bcoo(
    rng: Any,
    rand_method: Callable[..., Any] | None = None,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., BCOO]:
    """A function that makes random BCOO arrays.

    Args:
      rng: a `numpy.random.RandomState`.
      rand_method: gives for `rng` a function that gives arrays for a shape and a dtype; normal ones where it is None.
      nse: number of elements of each batch, or, below 1, the fraction of the sparse axes' positions.
      n_batch: number of batch axes.
      n_dense: number of dense axes.

    Returns:
      A function of a shape and a dtype.

    >>> import numpy as np
    >>> from ferrax.experimental.sparse import test_util
    >>> test_util.rand_bcoo(np.random.RandomState(0))((4, 5), np.float32)
    BCOO(float32[4, 5], nse=10)
    """
    make = _zeros_among(rng, rand_method, nse, n_batch, n_dense)

    def rand(shape: Sequence[int], dtype: Any) -> BCOO:
        values, places = make(shape, dtype)
        return bcoo_fromdense(jnp.asarray(values), nse=places, n_batch=n_batch, n_dense=n_dense)

    return rand


def rand_bcsr(
    rng: Any,
    rand_method: Callable[..., Any] | None = None,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., BCSR]:
    """A function that makes random BCSR arrays.

    Args:
      rng: a `numpy.random.RandomState`.
      rand_method: as of `rand_bcoo`.
      nse, n_batch, n_dense: as in `rand_bcoo`.

    Returns: as in `rand_bcoo`.

    >>> import numpy as np
    >>> from ferrax.experimental.sparse import test_util
    >>> test_util.rand_bcsr(np.random.RandomState(0))((4, 5), np.float32)
    BCSR(float32[4, 5], nse=10)
    """
    make = _zeros_among(rng, rand_method, nse, n_batch, n_dense)

    def rand(shape: Sequence[int], dtype: Any) -> BCSR:
        values, places = make(shape, dtype)
        return bcsr_fromdense(jnp.asarray(values), nse=places, n_batch=n_batch, n_dense=n_dense)

    return rand


def rand_sparse(
    rng: Any,
    nse: int | float = 0.5,
    post: Callable[[Any], Any] = lambda x: x,
    rand_method: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function that makes random arrays with zeros among their elements.

    Args:
      rng: a `numpy.random.RandomState`.
      nse: number of elements that are not made zero, or, below 1, the fraction of them.
      post: is applied to the array.
      rand_method: as of `rand_bcoo`.

    Returns:
      A function of a shape and a dtype, and of `nse`, that gives a NumPy array.

    >>> import numpy as np
    >>> from ferrax.experimental.sparse import test_util
    >>> make = test_util.rand_sparse(np.random.RandomState(0), nse=3)
    >>> print(np.count_nonzero(make((4, 5), np.float32)))
    3
    """

    def rand(shape: Sequence[int], dtype: Any, nse: int | float = nse) -> Any:
        return post(_zeros_among(rng, rand_method, nse, 0, 0)(shape, dtype)[0])

    return rand


_expose(globals())
