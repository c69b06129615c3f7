"""Derivatives checked against finite differences: `check_grads`, `check_jvp`, `check_vjp`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._boundary import expose as _expose

__all__ = ["check_grads", "check_jvp", "check_vjp"]

#: Tolerances by dtype where none is given: finite differences lose about half of the digits.
_TOLERANCES = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float64": 1e-5,
    "complex128": 1e-5,
}
_EPS = 1e-4


#: A tolerance for all dtypes, or for each that it names.
Tolerance = float | Mapping[Any, float] | None


def _given(tolerance: Tolerance, *dtypes: np.dtype) -> float | None:
    """What is given for the first of these dtypes that is named; None where nothing is."""
    if not isinstance(tolerance, Mapping):
        return tolerance
    named = {np.dtype(k): v for k, v in tolerance.items()}
    return next((named[d] for d in dtypes if d in named), None)


def _of_dtype(dtype: np.dtype, tolerance: Tolerance) -> float:
    """The tolerance of a dtype: what is given, or what suits finite differences."""
    given = _given(tolerance, dtype)
    return _TOLERANCES.get(dtype.name, 0.0) if given is None else given


def _tolerance(leaves: Sequence[Any], given: Tolerance) -> float:
    return max((_of_dtype(np.asarray(x).dtype, given) for x in leaves), default=0.0)


def _random_like(rng: np.random.RandomState, x: Any) -> Any:
    """A random tangent of a value: of its dtype, or `float0` for integers."""
    x = np.asarray(x)
    if x.dtype.kind in "iub":
        from ferrax.dtypes import float0

        return np.zeros(x.shape, float0)
    draw = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        draw = draw + 1j * rng.standard_normal(x.shape)
    return np.asarray(draw, dtype=x.dtype)


def _wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _moved(x: Any, tangent: Any, step: float) -> Any:
    x = np.asarray(x)
    if x.dtype.kind in "iub":
        return x
    return (_wide(x) + step * _wide(tangent)).astype(x.dtype)


def _numerical_jvp(f: Callable[..., Any], primals: Any, tangents: Any, eps: float) -> Any:
    """The central difference of `f` along `tangents`."""

    def at(step: float) -> Any:
        return f(*tree_util.tree_map(lambda x, t: _moved(x, t, step), primals, tangents))

    def difference(a: Any, b: Any) -> np.ndarray:
        found = (_wide(a) - _wide(b)) / (2 * eps)
        return found if np.asarray(a).dtype.kind in "iub" else found.astype(np.asarray(a).dtype)

    return tree_util.tree_map(difference, at(eps), at(-eps))


def _assert_close(
    got: Any,
    wanted: Any,
    atol: Tolerance,
    rtol: Tolerance,
    message: str,
    tolerance: Callable[[np.dtype, Any], float] = _of_dtype,
) -> None:
    """Compares a tree leaf by leaf with one that may be deeper (lists of numbers, say, where it has arrays).

    Tolerances grow with the number of elements, over which errors add up.
    """
    got_leaves, treedef = tree_util.tree_flatten(got)
    for a, b in zip(got_leaves, treedef.flatten_up_to(wanted), strict=True):
        if np.asarray(a).dtype.kind == "V" and np.asarray(a).dtype.names == ("float0",):
            continue
        assert np.shape(a) == np.shape(b), f"{message}: shapes {np.shape(a)} and {np.shape(b)}"
        absolute, relative = (max(tolerance(np.asarray(x).dtype, t) for x in (a, b)) * np.size(a) for t in (atol, rtol))
        np.testing.assert_allclose(_wide(a), _wide(b), rtol=relative, atol=absolute, err_msg=message)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _EPS,
    err_msg: str = "",
) -> None:
    """Asserts that a forward derivative agrees with finite differences along a random direction.

    Args:
      f: the function.
      f_jvp: `(primals, tangents) -> (value, tangent)`.
      args: where to check.
      atol: absolute tolerance, a number or one for each dtype that it names; by default one that suits the dtypes.
      rtol: relative tolerance, likewise.
      eps: half the distance of the two points of a difference.
      err_msg: text in front of an assertion's message.

    Raises:
      AssertionError: the two differ.

    >>> import functools, ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.test_util import check_jvp
    >>> check_jvp(jnp.sin, functools.partial(jax.jvp, jnp.sin), (0.5,), eps=1e-2)
    """
    args = tuple(args)
    rng = np.random.RandomState(0)
    tangents = tree_util.tree_map(functools.partial(_random_like, rng), args)
    value, tangent = f_jvp(args, tangents)
    prefix = f"{err_msg} " if err_msg else ""
    _assert_close(value, f(*args), atol, rtol, f"{prefix}JVP primal")
    _assert_close(tangent, _numerical_jvp(f, args, tangents, eps), atol, rtol, f"{prefix}JVP tangent")


def _inner(a: Any, b: Any) -> Any:
    """The real inner product of two trees of vectors, `float0` leaves aside."""
    total = 0.0
    for x, y in zip(tree_util.tree_leaves(a), tree_util.tree_leaves(b), strict=True):
        if np.asarray(x).dtype.kind != "V" and np.asarray(y).dtype.kind != "V":
            total = total + np.sum(_wide(x) * _wide(y)).real
    return total


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _EPS,
    err_msg: str = "",
) -> None:
    """Asserts that a reverse derivative agrees with finite differences for a random direction and cotangent.

    Args:
      f: the function.
      f_vjp: `(*args) -> (value, pullback)`.
      args, atol, rtol, eps, err_msg: as in `check_jvp`.

    Raises: as in `check_jvp`.

    >>> import functools, ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.test_util import check_vjp
    >>> check_vjp(jnp.sin, functools.partial(jax.vjp, jnp.sin), (0.5,), eps=1e-2)
    """
    args = tuple(args)
    rng = np.random.RandomState(0)
    value, pullback = f_vjp(*args)
    prefix = f"{err_msg} " if err_msg else ""
    _assert_close(value, f(*args), atol, rtol, f"{prefix}VJP primal")
    tangents = tree_util.tree_map(functools.partial(_random_like, rng), args)
    tangent = _numerical_jvp(f, args, tangents, eps)
    cotangent = tree_util.tree_map(functools.partial(_random_like, rng), value)
    pulled = pullback(cotangent)
    leaves = [x for x in tree_util.tree_leaves((value, args)) if np.asarray(x).dtype.kind in "fcV"]
    absolute, relative = _tolerance(leaves, atol), _tolerance(leaves, rtol)
    message = f"{prefix}VJP cotangent projected"
    got, wanted = _inner(tangents, pulled), _inner(tangent, cotangent)
    np.testing.assert_allclose(got, wanted, rtol=relative, atol=absolute, err_msg=message)


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Asserts that derivatives up to an order agree with finite differences.

    Args:
      f, args: as in `check_jvp`.
      order: the highest derivative.
      modes: `"fwd"`, `"rev"` or both.
      atol, rtol, eps: as in `check_jvp`.

    Raises:
      AssertionError: a derivative differs.
      ValueError: a mode is unknown.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.test_util import check_grads
    >>> check_grads(lambda x: jnp.sin(x) * x, (0.5,), order=2, eps=1e-2)
    """
    from ferrax._derivatives import jvp, vjp

    modes = [modes] if isinstance(modes, str) else list(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads modes are 'fwd' and 'rev', got {sorted(unknown)}")
    limits: dict[str, Any] = {"atol": atol, "rtol": rtol, "eps": _EPS if eps is None else eps}

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, name: str) -> None:
        if "fwd" in modes:
            push = functools.partial(jvp, f)
            check_jvp(f, push, args, **limits, err_msg=f"{name} fwd")
            if order > 1:
                check(lambda *xs: push(xs, args)[1], args, order - 1, f"{name} fwd of")
        if "rev" in modes:
            pull = functools.partial(vjp, f)
            check_vjp(f, pull, args, **limits, err_msg=f"{name} rev")
            if order > 1:
                value = pull(*args)[0]
                check(lambda *xs: pull(*xs)[1](value), args, order - 1, f"{name} rev of")

    check(f, tuple(args), order, getattr(f, "__name__", "function"))


_expose(globals())
