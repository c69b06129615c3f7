"""A test case that compares functions of sparse arrays with those of dense ones. Read next: `test_util.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _derivatives, numpy as jnp, tree_util
from ferrax._api import jit, vmap
from ferrax._src.test_util import JaxTestCase
from ferrax.experimental.sparse import ad
from ferrax.experimental.sparse._base import is_sparse
from ferrax.experimental.sparse._bcoo_core import bcoo_extract
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.experimental.sparse.api import todense

__all__ = ["MATMUL_TOL", "SparseTestCase"]

#: Tolerances of products, by dtype.
MATMUL_TOL = {
    np.float32: 1e-5,
    np.float64: 1e-10,
    np.complex64: 1e-5,
    np.complex128: 1e-10,
}


def _dense(tree: Any) -> Any:
    return tree_util.tree_map(lambda x: todense(x) if is_sparse(x) else x, tree, is_leaf=is_sparse)


class SparseTestCase(JaxTestCase):
    """A test case for functions of sparse arrays.

    >>> from ferrax.experimental import sparse
    >>> case = sparse.test_util.SparseTestCase()
    >>> case.assertSparseArraysEquivalent(sparse.eye(3), sparse.eye(3).sort_indices())
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def assertSparseArraysEquivalent(
        self,
        x: Any,
        y: Any,
        *,
        check_dtypes: bool = True,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
        err_msg: str = "",
    ) -> None:
        """Asserts that two arrays of one format and layout stand for nearly equal dense arrays.

        Args:
          x: a sparse array.
          y: a sparse array.
          check_dtypes: whether dtypes have to be equal.
          atol: absolute tolerance.
          rtol: relative tolerance.
          canonicalize_dtypes: as of `assertAllClose`.
          err_msg: what to say in addition.

        Raises:
          AssertionError: they do not.

        >>> from ferrax.experimental import sparse
        >>> sparse.test_util.SparseTestCase().assertSparseArraysEquivalent(sparse.eye(2), sparse.eye(2))
        """
        self.assertTrue(is_sparse(x) and is_sparse(y), err_msg)
        self.assertIs(type(x), type(y), err_msg)
        for name in ("shape", "n_batch", "n_dense"):
            self.assertEqual(getattr(x, name, None), getattr(y, name, None), err_msg)
        options = {"check_dtypes": check_dtypes, "canonicalize_dtypes": canonicalize_dtypes}
        self.assertAllClose(todense(x), todense(y), atol=atol, rtol=rtol, err_msg=err_msg, **options)

    def _CheckAgainstDense(
        self,
        dense_op: Callable[..., Any],
        sparse_op: Callable[..., Any],
        args_maker: Callable[[], Sequence[Any]],
        check_jit: bool = True,
        check_dtypes: bool = True,
        tol: Any = None,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
    ) -> None:
        """Asserts that a function of sparse arrays gives what one of the dense arrays does, under `jit` as well."""
        args = args_maker()
        expected = dense_op(*_dense(args))
        for function in (sparse_op, jit(sparse_op)) if check_jit else (sparse_op,):
            self.assertAllClose(
                _dense(function(*args)),
                expected,
                check_dtypes=check_dtypes,
                atol=tol if atol is None else atol,
                rtol=tol if rtol is None else rtol,
                canonicalize_dtypes=canonicalize_dtypes,
            )

    def _CheckGradsSparse(
        self,
        dense_fun: Callable[..., Any],
        sparse_fun: Callable[..., Any],
        args_maker: Callable[[], Sequence[Any]],
        *,
        argnums: int | Sequence[int] | None = None,
        modes: Sequence[str] = ("fwd", "rev"),
        atol: Any = None,
        rtol: Any = None,
    ) -> None:
        """Asserts that Jacobians are the dense function's, at the indices of sparse arguments."""
        self.assertLessEqual(set(modes), {"fwd", "rev"})
        args = args_maker()
        argnums = tuple(range(len(args))) if argnums is None else argnums
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for mode in modes:
            ours, theirs = (getattr(module, f"jac{mode}") for module in (ad, _derivatives))
            got = ours(lambda *a: _dense(sparse_fun(*a)), numbers)(*args)
            expected = theirs(dense_fun, numbers)(*_dense(args))
            for jac, dense in zip(tree_util.tree_leaves(got, is_leaf=is_sparse), tree_util.tree_leaves(expected)):
                if is_sparse(jac):
                    jac = jac.to_bcoo() if isinstance(jac, BCSR) else jac
                    jac, dense = jac.data, bcoo_extract(jac, dense, assume_unique=True).data
                self.assertAllClose(jac, dense, atol=atol, rtol=rtol)

    def _CheckBatchingSparse(
        self,
        dense_fun: Callable[..., Any],
        sparse_fun: Callable[..., Any],
        args_maker: Callable[[], Sequence[Any]],
        *,
        batch_size: int = 3,
        bdims: Any = None,
        check_jit: bool = False,
        check_dtypes: bool = True,
        tol: Any = None,
        atol: Any = None,
        rtol: Any = None,
        canonicalize_dtypes: bool = True,
    ) -> None:
        """Asserts that the mapped function of sparse arrays gives what the mapped one of the dense arrays does."""
        examples = [tuple(args_maker()) for _ in range(batch_size)]
        count = len(examples[0])
        for axes in (bdims,) if bdims is not None else ((0,) * count, (0,) + (None,) * (count - 1)):
            stacked = [
                tree_util.tree_map(lambda *xs: jnp.stack(xs), *(e[i] for e in examples))
                if axis == 0
                else examples[0][i]
                for i, axis in enumerate(axes)
            ]
            self._CheckAgainstDense(
                vmap(dense_fun, tuple(axes)),
                vmap(sparse_fun, tuple(axes)),
                lambda: stacked,
                check_jit=check_jit,
                check_dtypes=check_dtypes,
                tol=tol,
                atol=atol,
                rtol=rtol,
                canonicalize_dtypes=canonicalize_dtypes,
            )
