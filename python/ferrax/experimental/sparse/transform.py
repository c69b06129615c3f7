"""JAX's module of `sparsify`: the function itself, and arrays as references into a list of buffers.

`sparsify` here passes sparse arrays through programs as they are; environments and values are for callers that have
them already. Read next: `_transform.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray, asarray, typeof
from ferrax._ferrax import ClosedJaxpr, Jaxpr
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._bcoo import BCOO
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.experimental.sparse._transform import (
    evaluate_sparse,
    fill_tables as _fill_tables,
    sparse_rules_bcoo,
    sparse_rules_bcsr,
    sparsify,
    sparsify_flat,
)

__all__ = [
    "SparsifyEnv",
    "SparsifyValue",
    "arrays_to_spvalues",
    "eval_sparse",
    "sparse_rules_bcoo",
    "sparse_rules_bcsr",
    "sparsify",
    "sparsify_fun",
    "sparsify_raw",
    "spvalues_to_arrays",
    "spvalues_to_avals",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "typing": "Array=Any ArrayOrSparse=Any",
        "ferrax._src.custom_derivatives": "lift_jvp",
        "ferrax.experimental.sparse._tracers": "SparseTrace SparseTracer sparsify_subtrace",
        "ferrax.api_util": "flatten_fun_nokwargs",
        "ferrax.experimental.sparse._bcoo_dot": "bcoo_multiply_dense bcoo_multiply_sparse",
        "ferrax.experimental.sparse._bcoo_layout": "bcoo_impl=bcoo_squeeze",
        "ferrax.extend.core.primitives": "prim=concatenate_p",
        "ferrax.tree_util": "tree_flatten tree_map tree_unflatten",
        "ferrax._src.util": "safe_map safe_zip split_list",
    },
)


class SparsifyValue(NamedTuple):
    """An array whose parts are in a `SparsifyEnv`.

    Args:
      shape: the sizes of the axes.
      data_ref: where the data are.
      indices_ref: where the indices are; None for a dense array.
      indptr_ref: where the starts of rows are; None for a dense array and for BCOO.
      indices_sorted: whether the indices are known to be sorted.
      unique_indices: whether no index is known to be there twice.

    >>> from ferrax.experimental.sparse import transform
    >>> transform.SparsifyValue((3,), 0).is_dense()
    True
    """

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Whether there are indices.

        Returns:
          A bool.

        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyValue((3,), 0, 1).is_sparse()
        True
        """
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Whether there are no indices.

        Returns:
          A bool.

        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyValue((3,), 0, 1).is_dense()
        False
        """
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """Whether it is a BCOO array.

        Returns:
          A bool.

        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyValue((3,), 0, 1).is_bcoo()
        True
        """
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Whether it is a BCSR array.

        Returns:
          A bool.

        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyValue((3, 3), 0, 1, 2).is_bcsr()
        True
        """
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """A list of buffers, which values refer to.

    Args:
      bufs: the first buffers.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.sparse import transform
    >>> env = transform.SparsifyEnv()
    >>> print(env.data(env.dense(jnp.arange(3))))
    [0 1 2]
    """

    def __init__(self, bufs: Sequence[Any] = ()):
        self._buffers = list(bufs)

    def _push(self, arr: Any) -> int:
        """The place of a buffer, which is new where it is not there yet."""
        for i, old in enumerate(self._buffers):
            if old is arr:
                return i
        self._buffers.append(asarray(arr))
        return len(self._buffers) - 1

    def _get(self, ref: int | None, what: str) -> Any:
        if ref is None:
            raise RuntimeError(f"the value has no {what}")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Any:
        """The data of a value.

        Args:
          spvalue: the value.

        Returns:
          An array.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental.sparse import transform
        >>> env = transform.SparsifyEnv()
        >>> print(env.data(env.dense(jnp.arange(2))))
        [0 1]
        """
        return self._get(spvalue.data_ref, "data")

    def indices(self, spvalue: SparsifyValue) -> Any:
        """The indices of a sparse value.

        Args:
          spvalue: the value.

        Returns:
          An array.

        Raises:
          RuntimeError: the value is dense.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental.sparse import transform
        >>> env = transform.SparsifyEnv()
        >>> print(env.indices(env.sparse((3,), jnp.ones(1), jnp.array([[2]]))))
        [[2]]
        """
        return self._get(spvalue.indices_ref, "indices")

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """Where rows start, for a BCSR value.

        Args:
          spvalue: the value.

        Returns:
          An array.

        Raises:
          RuntimeError: the value is no BCSR array.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental.sparse import transform
        >>> env = transform.SparsifyEnv()
        >>> print(env.indptr(env.sparse((1, 3), jnp.ones(1), jnp.array([2]), jnp.array([0, 1]))))
        [0 1]
        """
        return self._get(spvalue.indptr_ref, "indptr")

    def dense(self, data: Any) -> SparsifyValue:
        """A dense value.

        Args:
          data: the array.

        Returns:
          A value.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyEnv().dense(jnp.arange(2)).shape
        (2,)
        """
        ref = self._push(data)
        return SparsifyValue(tuple(self._buffers[ref].shape), ref)

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """A sparse value.

        Args:
          shape: the sizes of the axes.
          data: the data, unless `data_ref` is given.
          indices: the indices, unless `indices_ref` is given.
          indptr: where rows start, for BCSR, unless `indptr_ref` is given.
          data_ref: where the data are.
          indices_ref: where the indices are.
          indptr_ref: where the starts of rows are.
          indices_sorted: whether the indices are known to be sorted.
          unique_indices: whether no index is known to be there twice.

        Returns:
          A value.

        Raises:
          ValueError: a part is given twice, or not at all.

        >>> import ferrax.numpy as jnp
        >>> from ferrax.experimental.sparse import transform
        >>> transform.SparsifyEnv().sparse((3,), jnp.ones(1), jnp.array([[2]])).is_bcoo()
        True
        """
        refs = []
        for name, array, ref in (
            ("data", data, data_ref),
            ("indices", indices, indices_ref),
            ("indptr", indptr, indptr_ref),
        ):
            if (array is not None and ref is not None) or (array is None and ref is None and name != "indptr"):
                raise ValueError(f"one of {name} and {name}_ref must be given")
            refs.append(ref if array is None else self._push(array))
        return SparsifyValue(tuple(shape), refs[0], refs[1], refs[2], indices_sorted, unique_indices)


def _is_array(x: Any) -> bool:
    return isinstance(x, (BCOO, BCSR))


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def _to_value(spenv: SparsifyEnv, x: Any) -> SparsifyValue:
    if not _is_array(x):
        return spenv.dense(x)
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return spenv.sparse(x.shape, x.data, x.indices, getattr(x, "indptr", None), **flags)


def _to_array(spenv: SparsifyEnv, value: SparsifyValue) -> Any:
    if value.is_dense():
        return spenv.data(value)
    flags = {"indices_sorted": bool(value.indices_sorted), "unique_indices": bool(value.unique_indices)}
    if value.is_bcoo():
        return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **flags)
    return BCSR((spenv.data(value), spenv.indices(value), spenv.indptr(value)), shape=value.shape, **flags)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """The values of a pytree of dense and sparse arrays.

    Args:
      spenv: gets the buffers.
      args: the pytree.

    Returns:
      A pytree of values.

    >>> from ferrax.experimental import sparse
    >>> from ferrax.experimental.sparse import transform
    >>> transform.arrays_to_spvalues(transform.SparsifyEnv(), [sparse.eye(3)])[0].indices_ref
    1
    """
    return tree_util.tree_map(lambda x: _to_value(spenv, x), args, is_leaf=_is_array)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The dense and sparse arrays of a pytree of values.

    Args:
      spenv: has the buffers.
      spvalues: the pytree.

    Returns:
      A pytree of arrays.

    >>> from ferrax.experimental import sparse
    >>> from ferrax.experimental.sparse import transform
    >>> env = transform.SparsifyEnv()
    >>> transform.spvalues_to_arrays(env, transform.arrays_to_spvalues(env, [sparse.eye(3)]))
    [BCOO(float32[3, 3], nse=3)]
    """
    return tree_util.tree_map(lambda x: _to_array(spenv, x), spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The types of the dense arrays that values stand for.

    Args:
      spenv: has the buffers.
      spvalues: a pytree of values.

    Returns:
      A pytree of types.

    >>> from ferrax.experimental import sparse
    >>> from ferrax.experimental.sparse import transform
    >>> env = transform.SparsifyEnv()
    >>> transform.spvalues_to_avals(env, transform.arrays_to_spvalues(env, sparse.eye(3))).shape
    (3, 3)
    """

    def aval(value: SparsifyValue) -> Any:
        data = typeof(spenv.data(value))
        return data if value.is_dense() else ShapedArray(value.shape, data.dtype, data.weak_type)

    return tree_util.tree_map(aval, spvalues, is_leaf=_is_value)


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., Any]:
    """`sparsify` of functions of values.

    Args:
      f: a function of pytrees of arrays.

    Returns:
      A function of an environment and of pytrees of values, which gives the list of values that `f`'s result has, and
      its structure. Keyword arguments go to `f`.

    >>> from ferrax.experimental import sparse
    >>> from ferrax.experimental.sparse import transform
    >>> env = transform.SparsifyEnv()
    >>> values, tree = transform.sparsify_raw(lambda x: 2 * x)(env, transform.arrays_to_spvalues(env, sparse.eye(3)))
    >>> transform.spvalues_to_arrays(env, values)
    [BCOO(float32[3, 3], nse=3)]
    """

    def wrapped(spenv: SparsifyEnv, *spvalues: SparsifyValue, **params: Any) -> tuple[Any, Any]:
        arrays = spvalues_to_arrays(spenv, spvalues)
        outs, tree = sparsify_flat(lambda *args: f(*args, **params), arrays, {})
        return [_to_value(spenv, x) for x in outs], tree

    return wrapped


def eval_sparse(
    jaxpr: Jaxpr, consts: Sequence[Any], spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv
) -> Sequence[SparsifyValue]:
    """The results of a program of dense arrays for values that may be sparse.

    Args:
      jaxpr: the program.
      consts: an array for each of its constants.
      spvalues: a value for each of its arguments.
      spenv: has the buffers, and gets those of the results.

    Returns:
      A list of values.

    Raises:
      NotImplementedError: the program applies an operation to a sparse array that has no sparse form.

    >>> import ferrax as jax
    >>> from ferrax.experimental import sparse
    >>> from ferrax.experimental.sparse import transform
    >>> program = jax.make_jaxpr(lambda x: 2 * x)(jax.numpy.ones((3, 3)))
    >>> env = transform.SparsifyEnv()
    >>> values = transform.arrays_to_spvalues(env, [sparse.eye(3)])
    >>> out = transform.eval_sparse(program.jaxpr, program.consts, values, env)
    >>> print(transform.spvalues_to_arrays(env, out)[0].data)
    [2. 2. 2.]
    """
    program = ClosedJaxpr(jaxpr, list(consts))
    return arrays_to_spvalues(spenv, evaluate_sparse(program, spvalues_to_arrays(spenv, list(spvalues))))


def sparsify_fun(wrapped_fun: Any, args: list[Any]) -> list[Any]:
    """The results of a function of flat dense arrays for arrays that may be sparse.

    Args:
      wrapped_fun: function wrapped by `ferrax.extend.linear_util.wrap_init` that returns a sequence.
      args: dense and sparse arrays.

    Returns:
      A list of dense and sparse arrays.

    Raises:
      NotImplementedError: the function applies an operation to a sparse array that has no sparse form.

    >>> from ferrax.experimental import sparse
    >>> from ferrax.extend import linear_util as lu
    >>> from ferrax.experimental.sparse import transform
    >>> transform.sparsify_fun(lu.wrap_init(lambda x: [2 * x]), [sparse.eye(3)])
    [BCOO(float32[3, 3], nse=3)]
    """
    return sparsify_flat(lambda *values: list(wrapped_fun.call_wrapped(*values)), tuple(args), {})[0]


# what the last turns of loops have left in JAX's module: a primitive's function of BCSR, a method and its function


def bcsr_impl(*a: Any, **k: Any) -> BCSR:
    """Several BCSR arrays as one along an axis; see `bcsr_concatenate`.

    Args:
      *a: the arrays.
      **k: the axis, `dimension`.

    Returns:
      The array.

    >>> from ferrax.experimental import sparse
    >>> mat = sparse.BCSR.from_bcoo(sparse.eye(2))
    >>> sparse.transform.bcsr_impl(mat, mat, dimension=0).shape
    (4, 2)
    """
    from ferrax.experimental.sparse._bcsr_functions import bcsr_concatenate

    return bcsr_concatenate(a, **k)


def impl(
    arr: Any,
    idx: Any,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """The elements of a sparse array at an index.

    Args:
      arr: the array.
      idx: an index as of `arr[idx]`.
      indices_are_sorted: whether arrays of indices are known to be in order.
      unique_indices: whether none is known to be there twice.
      mode: what is read outside of the array, as of `arr.at[idx].get`.
      fill_value: what stands there for mode `"fill"`.

    Returns:
      A sparse or dense array.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.transform.impl(sparse.eye(2), 1).todense())
    [0. 1.]
    """
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
    if not any(options.values()) and fill_value is None:
        return sparsify(lambda x: x[idx])(arr)
    return sparsify(lambda x: x.at[idx].get(fill_value=fill_value, **options))(arr)


method = "__getitem__"

_fill_tables()
_expose(globals())
