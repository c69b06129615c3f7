"""Functions that apply functions: along axes, over broadcast arguments.

All of them are `vmap`. Read `_ufunc.py` next.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._boundary import shielded_for
from ferrax._core import asarray
from ferrax.numpy import _shape
from ferrax.numpy._args import Array, ArrayLike, common_shape, entries, normalize_axis, to_array
from ferrax.numpy._ranks import check_batch_ranks

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors applied to all vectors along an axis.

    Args:
      func1d: function of a vector.
      axis: axis of the vectors.
      arr: array.
      *args: further arguments of the function.
      **kwargs: keyword arguments of the function.

    Returns:
      Array in which the axes of the function's result stand in place of `axis`.

    >>> import ferrax.numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    from ferrax import vmap

    x = to_array("apply_along_axis", arr)
    axis = normalize_axis(axis, x.ndim)
    function = lambda v: func1d(v, *args, **kwargs)
    for _ in range(axis + 1, x.ndim):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


def apply_over_axes(func: Callable[[Array, int], Array], a: ArrayLike, axes: Sequence[int] | int) -> Array:
    """A reduction applied over one axis after another.

    Args:
      func: function of an array and an axis; a result without the axis gets it back with length 1.
      a: array.
      axes: the axes, in order.

    Returns:
      Array with as many axes as `a`.

    Raises:
      ValueError: when a result has another number of axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
    Array([[6.]], dtype=float32)
    """
    x = to_array("apply_over_axes", a)
    for axis in entries(axes):
        result = func(x, axis)
        if result.ndim == x.ndim - 1:
            result = _shape.expand_dims(result, axis)
        elif result.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = result
    return x


_NAMES = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^({_NAMES}(?:,{_NAMES})*)?->({_NAMES}(?:,{_NAMES})*)$")

CoreDims = list[tuple[str, ...]]


def _parse_signature(signature: str) -> tuple[CoreDims, CoreDims]:
    match = _SIGNATURE.match(signature)
    if not match:
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = []
    for side in (match.group(1) or "", match.group(2)):
        terms = re.findall(r"\(([^()]*)\)", side)
        sides.append([tuple(n for n in term.split(",") if n) for term in terms])
    return sides[0], sides[1]


def _check_core(shape: tuple[int, ...], names: tuple[str, ...], sizes: dict[str, int], what: str, context: str) -> None:
    """Holds the last axes of `shape` against the sizes known by name."""
    if len(shape) < len(names):
        raise ValueError(
            f"{what} with shape {shape} does not have enough dimensions for all core dimensions {names} {context}"
        )
    core = shape[len(shape) - len(names) :]
    for name, n in zip(names, core):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]} {context}")


def _with_checked_output(function: Callable[..., Any], outputs: CoreDims, sizes: dict[str, int], context: str) -> Any:
    @functools.wraps(function)
    def checked(*args: Any) -> Any:
        result = function(*args)
        if len(outputs) > 1 and not isinstance(result, tuple):
            raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {result!r} {context}")
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(outputs):
            raise TypeError(f"wrong number of output arguments: expected {len(outputs)}, got {len(results)} {context}")
        known = dict(sizes)
        for value, names in zip(results, outputs):
            shape = np.shape(value)
            if len(shape) != len(names):
                raise ValueError(f"output shape {shape} does not match core dimensions {names} {context}")
            _check_core(shape, names, known, "output", context)
        return result

    return checked


def _over_batch(function: Callable[..., Any], arrays: list[Array], cores: CoreDims) -> Any:
    """Applies `function` by one `vmap` for each axis before the core ones."""
    from ferrax import vmap

    batches = [x.shape[: x.ndim - len(core)] for x, core in zip(arrays, cores)]
    full = common_shape(*batches)
    mapped, in_axes = [], []
    for x, batch in zip(arrays, batches):
        padded = (None,) * (len(full) - len(batch)) + batch
        keep = [n is not None and not (n == 1 and size != 1) for n, size in zip(padded, full)]
        drop = tuple(
            i - (len(full) - len(batch)) for i, (n, k) in enumerate(zip(padded, keep)) if n is not None and not k
        )
        mapped.append(lax.squeeze(x, drop))
        in_axes.append([0 if k else None for k in keep])
    for level in reversed(range(len(full))):
        axes = tuple(axis[level] for axis in in_axes)
        function = vmap(function, in_axes=axes, axis_size=full[level])
    return function(*mapped)


def vectorize(pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable[..., Any]:  # fmt: skip
    """A function that broadcasts over its arguments.

    Args:
      pyfunc: function of scalars, or of arrays with the axes that `signature` names.
      excluded: positions or names of arguments that are passed on as they are, as arguments that are None always are.
      signature: such as "(m,n),(n)->(m)": the axes that `pyfunc` itself takes and gives.

    Returns:
      The vectorized function.

    Raises:
      ValueError: when called, for a signature that does not parse, shapes that do not fit it, or None for an array.

    >>> import ferrax.numpy as jnp
    >>> dot = jnp.vectorize(lambda x, y: (x * y).sum(), signature="(n),(n)->()")
    >>> dot(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={set(excluded)}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)} contains negative numbers")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        context = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"
        given = [i for i in range(len(args)) if i not in excluded]
        dynamic = [i for i in given if args[i] is not None]

        def function(*values: Any) -> Any:
            merged = list(args)
            for i, value in zip(dynamic, values):
                merged[i] = value
            return pyfunc(*merged, **kwargs)

        arrays = [asarray(args[i]) for i in dynamic]
        parsed = None if signature is None else _parse_signature(signature)
        if parsed is None:
            cores: CoreDims = [()] * len(arrays)
        else:
            cores = parsed[0]
            if len(cores) != len(given):
                raise TypeError(
                    f"wrong number of positional arguments: expected {len(cores)}, got {len(given)} {context}"
                )
            missing = {n for n, i in enumerate(given) if args[i] is None}
            if any(cores[n] for n in missing):
                raise ValueError(f"Cannot pass None at locations {missing} with {signature=}")
            cores = [core for core, i in zip(cores, given) if args[i] is not None]
            sizes: dict[str, int] = {}
            for x, names in zip(arrays, cores):
                _check_core(x.shape, names, sizes, "input", context)
            function = _with_checked_output(function, parsed[1], sizes, context)
        check_batch_ranks(arrays, cores, signature)
        return _over_batch(function, arrays, cores)

    return shielded_for(wrapped, pyfunc)
