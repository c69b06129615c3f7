"""Derivatives with respect to sparse arrays: those of their data, as sparse arrays of the same indices.

Read next: `ferrax/_derivatives.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _derivatives, lax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._base import is_sparse as _is_sparse

__all__ = ["flatten_fun_for_sparse_ad", "grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax.experimental.sparse._base": "JAXSparse is_sparse",
        "ferrax._src.traceback_util": "api_boundary",
        "ferrax._src.util": "safe_zip split_list wraps",
    },
)


class _Split:
    """A function of the data of its differentiated arguments' sparse arrays, and the way back."""

    def __init__(self, fun: Callable[..., Any], argnums: int | Sequence[int], args: tuple[Any, ...], kwargs: Any):
        self.one = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        try:
            self.numbers = tuple(range(len(args))[n] for n in numbers)
        except IndexError:
            raise ValueError(
                f"differentiating with respect to argnums={argnums} requires more positional arguments to be passed "
                f"by the caller; got {len(args)}."
            ) from None
        chosen = [args[n] for n in self.numbers]
        self.leaves, self.tree = tree_util.tree_flatten(chosen, is_leaf=_is_sparse)
        self.data = [x.data if _is_sparse(x) else x for x in self.leaves]
        self.fun, self.args, self.kwargs = fun, args, kwargs

    def call(self, data: Sequence[Any]) -> Any:
        """The function's value for other data."""
        args = list(self.args)
        for n, x in zip(self.numbers, self._chosen([_with_data(x, d) for x, d in zip(self.leaves, data)])):
            args[n] = x
        return self.fun(*args, **self.kwargs)

    def _chosen(self, leaves: Sequence[Any]) -> Any:
        return tree_util.tree_unflatten(self.tree, leaves)

    def back(self, derivatives: Sequence[Any]) -> Any:
        """Derivatives of the data in the arguments' structure."""
        out = self._chosen([_derivative(x, d) for x, d in zip(self.leaves, derivatives)])
        return out[0] if self.one else tuple(out)


def _with_data(x: Any, data: Any) -> Any:
    if not _is_sparse(x):
        return data
    new = object.__new__(type(x))
    vars(new).update(vars(x))
    new.data = data
    return new


def _derivative(x: Any, data: Any) -> Any:
    """The sparse array of derivatives of an array's elements; axes of the function's value come first."""
    new = _with_data(x, data)
    if not _is_sparse(x) or data.ndim == x.data.ndim:
        return new
    lead = data.shape[: data.ndim - x.data.ndim]
    if not hasattr(x, "n_batch"):
        raise NotImplementedError(f"Jacobians with respect to {type(x).__name__} arrays")
    for name in ("indices", "indptr"):
        if hasattr(x, name):
            old = getattr(x, name)
            dims = tuple(range(len(lead), len(lead) + old.ndim))
            setattr(new, name, lax.broadcast_in_dim(old, (*lead, *old.shape), dims))
    new.shape = (*lead, *x.shape)
    return new


def flatten_fun_for_sparse_ad(
    fun: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[int, ...], list[Any], Callable[[Sequence[Any]], Any]]:
    """A function of sparse arrays as one of the arrays that they are made of, for derivatives of their data.

    Args:
      fun: the function.
      argnums: position, or positions, of the arguments to differentiate.
      args: its arguments.

    Returns:
      `(function, positions, arrays, back)`: the function of flat arrays, which of these to differentiate, the arrays,
      and what makes a sparse array for each sparse argument of derivatives of its data; one argument's comes alone.

    >>> import ferrax as jax
    >>> from ferrax.experimental import sparse
    >>> f, which, arrays, back = sparse.ad.flatten_fun_for_sparse_ad(lambda x: x.sum(), 0, (sparse.eye(3),))
    >>> back(jax.grad(f, which)(*arrays))
    BCOO(float32[3, 3], nse=3)
    """
    chosen = {argnums} if isinstance(argnums, int) else set(argnums)
    assert all(0 <= n < len(args) for n in chosen), f"argnums={argnums} of {len(args)} arguments"
    trees = [tree_util.tree_flatten(arg, is_leaf=_is_sparse) for arg in args]
    bufs: list[list[Any]] = []
    differentiated: list[list[int]] = []
    start = 0
    for n, (leaves, _) in enumerate(trees):
        places = []
        for x in leaves:
            flat = tree_util.tree_leaves(x)
            # of a sparse array, the data are its first buffer
            places += list(range(start, start + (1 if _is_sparse(x) else len(flat))))
            bufs.append(flat)
            start += len(flat)
        differentiated.append(places if n in chosen else [])

    def whole(flat: Sequence[Any]) -> list[Any]:
        rest = iter(flat)
        out = []
        for leaves, tree in trees:
            made = [
                tree_util.tree_unflatten(structure, [next(rest) for _ in range(structure.num_leaves)])
                for structure in map(tree_util.tree_structure, leaves)
            ]
            out.append(tree.unflatten(made))
        return out

    def fun_flat(*flat: Any, **kwargs: Any) -> Any:
        return fun(*whole(flat), **kwargs)

    def back(derivatives: Sequence[Any]) -> Any:
        rest = iter(derivatives)
        out = [
            tree.unflatten([_derivative(x, next(rest)) for x in leaves])
            for n, (leaves, tree) in enumerate(trees)
            if n in chosen and leaves
        ]
        return out[0] if len(out) == 1 else tuple(out)

    return fun_flat, tuple(i for places in differentiated for i in places), [x for flat in bufs for x in flat], back


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """`ferrax.value_and_grad`, of functions of sparse arrays as well.

    Args:
      fun: function whose value is a scalar.
      argnums: position, or positions, of the arguments to differentiate.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      **kwargs: other arguments of `ferrax.value_and_grad`.

    Returns:
      A function that gives the value and the gradient; that of a sparse array is one with the same indices.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> sparse.value_and_grad(lambda mat, v: (mat @ v).sum())(sparse.eye(3), jnp.ones(3))
    (Array(3., dtype=float32), BCOO(float32[3, 3], nse=3))
    """

    @functools.wraps(fun)
    def wrapped(*args: Any, **named: Any) -> tuple[Any, Any]:
        split = _Split(fun, argnums, args, named)
        value, derivatives = _derivatives.value_and_grad(split.call, has_aux=has_aux, **kwargs)(split.data)
        return value, split.back(derivatives)

    return wrapped


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`ferrax.grad`, of functions of sparse arrays as well.

    Args:
      fun, argnums, has_aux: as in `value_and_grad`.
      **kwargs: other arguments of `ferrax.grad`.

    Returns:
      A function that gives the gradient; that of a sparse array is one with the same indices.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> sparse.grad(lambda mat, v: (mat @ v).sum())(sparse.eye(3), jnp.ones(3))
    BCOO(float32[3, 3], nse=3)
    """

    @functools.wraps(fun)
    def wrapped(*args: Any, **named: Any) -> Any:
        split = _Split(fun, argnums, args, named)
        out = _derivatives.grad(split.call, has_aux=has_aux, **kwargs)(split.data)
        return (split.back(out[0]), out[1]) if has_aux else split.back(out)

    return wrapped


def _jacobian(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums: Any, has_aux: bool, kwargs: Any
) -> Callable[..., Any]:
    @functools.wraps(fun)
    def wrapped(*args: Any, **named: Any) -> Any:
        split = _Split(fun, argnums, args, named)
        tree: Any = None

        def call(data: Sequence[Any]) -> Any:
            nonlocal tree
            out = split.call(data)
            tree = tree_util.tree_structure(out[0] if has_aux else out)
            return out

        out = transform(call, has_aux=has_aux, **kwargs)(split.data)
        leaves = tree_util.tree_leaves(out[0] if has_aux else out)
        n = len(split.data)
        parts = [split.back(leaves[i : i + n]) for i in range(0, len(leaves), n)] if n else []
        jac = tree_util.tree_unflatten(tree, parts)
        return (jac, out[1]) if has_aux else jac

    return wrapped


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`ferrax.jacfwd`, of functions of sparse arrays as well, whose value is dense.

    Args:
      fun: function of arrays.
      argnums: position, or positions, of the arguments to differentiate.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      **kwargs: other arguments of `ferrax.jacfwd`.

    Returns:
      A function that gives the Jacobian; that of a sparse array has the value's axes as batch axes.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> sparse.jacfwd(lambda mat: mat @ jnp.ones(3))(sparse.eye(3))
    BCOO(float32[3, 3, 3], nse=3, n_batch=1)
    """
    return _jacobian(_derivatives.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`ferrax.jacrev`, of functions of sparse arrays as well, whose value is dense.

    Args:
      fun, argnums, has_aux: as in `jacfwd`.
      **kwargs: other arguments of `ferrax.jacrev`.

    Returns: as in `jacfwd`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> sparse.jacrev(lambda mat: mat @ jnp.ones(3))(sparse.eye(3))
    BCOO(float32[3, 3, 3], nse=3, n_batch=1)
    """
    return _jacobian(_derivatives.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
_expose(globals())
