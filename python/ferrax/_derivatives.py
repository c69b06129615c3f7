"""Derivatives: `grad`, `jvp`, `vjp`, `linearize`, Jacobians and the Hessian.

Forward and reverse mode are Rust (`ferrax._ferrax`); Jacobians map them over a basis. Read next: `_api.py` for `jit`
and `vmap`, `custom_derivatives.py` for rules of one's own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, _linearized as _linearized, tree_util  # pullbacks are pytrees from the first one on
from ferrax._api import named_as, vmap
from ferrax._boundary import shielded
from ferrax._high_values import classes as high_classes
from ferrax._texts import differences, short
from ferrax._typed import P, R

__all__ = [
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "value_and_grad",
    "vjp",
]


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[str] = (),
) -> Callable[P, Any]:
    """Gradient of a scalar function, by reverse mode.

    Outside `jit` the function sees concrete values, so Python control flow on them works.

    Args:
      fun: function whose result is a real scalar (a pair of it and auxiliary data with `has_aux`).
      argnums: position, or positions, of the arguments to differentiate: pytrees of floating-point arrays.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are taken; their gradient has dtype `float0`.
      reduce_axes: accepted for compatibility; must be empty.

    Returns:
      A function with `fun`'s arguments that returns the gradient: the structure, shapes and dtypes of the
      differentiated argument (a tuple of such for several), with auxiliary data in a pair.

    Raises:
      TypeError: the result is no scalar, or a dtype has no derivative.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.grad(jnp.sin)(0.0))
    1.0
    """
    if reduce_axes:
        raise NotImplementedError("grad with reduce_axes is not implemented")
    return _ferrax.grad(fun, argnums, has_aux, holomorphic, allow_int)


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[str] = (),
) -> Callable[P, tuple[R, Any]]:
    """Value and gradient of a scalar function in one run.

    Args:
      fun: as for `grad`.
      argnums: as for `grad`.
      has_aux: as for `grad`.
      holomorphic: as for `grad`.
      allow_int: as for `grad`.
      reduce_axes: accepted for compatibility; must be empty.

    Returns:
      A function that returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`.

    >>> import ferrax as jax
    >>> value, slope = jax.value_and_grad(lambda x: x * x)(3.0)
    >>> print(value, slope)
    9.0 6.0
    """
    if reduce_axes:
        raise NotImplementedError("value_and_grad with reduce_axes is not implemented")
    return _ferrax.value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)


def gradient_of_values(transform: str, fun: Any, argnums: Any, options: tuple[bool, ...]) -> Callable[..., Any]:
    """A gradient of a function some of whose arguments are values that are no arrays: what the core calls for these.

    Args:
      transform: ``"grad"`` or ``"value_and_grad"``.
      fun: the function.
      argnums: position or positions.
      options: `has_aux`, `holomorphic` and `allow_int`.

    Returns:
      A function of the same arguments.
    """
    from ferrax._high_tangents import differentiated

    def call(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _active(fun, argnums, args, kwargs)
        of_arrays, arrays = differentiated(of_active, active)
        places = 0 if isinstance(argnums, int) else tuple(range(len(active)))
        return getattr(_ferrax, transform)(of_arrays, places, *options)(*arrays)

    return call


def _of_arrays(fun: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of arrays alone and its arguments, where there are values that are no arrays."""
    if not high_classes:
        return fun, primals
    from ferrax._high_tangents import differentiated, has_values

    return differentiated(fun, primals) if has_values(primals) else (fun, primals)


def _pair(primals: Any, tangents: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The arguments of `jvp` as tuples, which they must be, or lists."""
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    tree, other = (tree_util.tree_structure(x) for x in (primals, tangents))
    if tree != other:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure "
            f"{short(tree)} whereas tangents have tree structure {short(other)}."
            f"{differences(tree, other, 'primals', 'tangents')}"
        )
    return tuple(primals), tuple(tangents)


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of a function and its derivative along a direction, by forward mode.

    Args:
      fun: function to differentiate.
      primals: tuple of arguments.
      tangents: tuple of directions, of the arguments' structure, shapes and dtypes (`float0` for integers).
      has_aux: whether `fun` returns `(value, auxiliary data)`.

    Returns:
      `(value, tangent)`, or `(value, tangent, aux)`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> value, slope = jax.jvp(jnp.sin, (0.0,), (1.0,))
    >>> print(value, slope)
    0.0 1.0
    """
    primals, tangents = _pair(primals, tangents)
    fun, primals = _of_arrays(fun, primals)
    try:
        return _ferrax.jvp(fun, primals, tangents, has_aux)
    except _ferrax.ReferenceUsed:
        from ferrax._refs_loops import jvp_of_references

        return jvp_of_references(fun, primals, tangents, has_aux)


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[str] = ()
) -> tuple[Any, ...]:
    """Value of a function, and a function that pulls cotangents back to its arguments.

    Args:
      fun: function to differentiate.
      *primals: arguments.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      reduce_axes: accepted for compatibility; must be empty.

    Returns:
      `(value, pullback)` or `(value, pullback, aux)`; the pullback takes a cotangent of the value's structure and
      returns a tuple with one cotangent an argument. It can be called many times.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> value, pullback = jax.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> print(*pullback(1.0))
    4.0 3.0
    """
    if reduce_axes:
        raise NotImplementedError("vjp with reduce_axes is not implemented")
    fun, primals = _of_arrays(fun, primals)
    try:
        return _ferrax.vjp(fun, primals, has_aux)
    except _ferrax.ReferenceUsed:
        from ferrax._refs_calls import vjp_of_references

        return vjp_of_references(fun, primals, has_aux)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of a function, and its derivative at that point as a linear function.

    Args:
      fun: function to differentiate.
      *primals: the point.
      has_aux: whether `fun` returns `(value, auxiliary data)`.

    Returns:
      `(value, linear)`, or `(value, linear, aux)`: `linear` takes tangents and costs no second run of `fun`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> value, linear = jax.linearize(jnp.sin, 0.0)
    >>> print(linear(2.0))
    2.0
    """
    return _ferrax.linearize_fun(*_of_arrays(fun, primals), has_aux)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[str] = ()) -> Callable[..., Any]:
    """Transpose of a linear function.

    Args:
      fun: a function that is linear in its arguments.
      *primals: arguments, or anything with their shapes and dtypes (`ShapeDtypeStruct`).
      reduce_axes: accepted for compatibility; must be empty.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> f = jax.linear_transpose(lambda x: 3.0 * x, 1.0)
    >>> print(*f(2.0))
    6.0
    """
    if reduce_axes:
        raise NotImplementedError("linear_transpose with reduce_axes is not implemented")
    program = _ferrax.trace_to_jaxpr(fun, primals, None, "linear_transpose")
    in_tree = tree_util.tree_structure(primals)
    kinds = [{_kind(a.dtype) for a in avals} for avals in (program.in_avals, program.out_avals)]
    if not (all(k <= {"inexact"} for k in kinds) or all(k <= {"integer"} for k in kinds)):
        given, got = ([a.dtype for a in avals] for avals in (program.in_avals, program.out_avals))
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
            f"functions, but got {given} -> {got}."
        )

    # the program goes along as a leafless node, so that jitted functions can take and return what is given back
    return tree_util.Partial(shielded(functools.partial(_transposed, program, in_tree)))


def _transposed(program: Any, in_tree: Any, cotangent: Any) -> Any:
    """The cotangents of a linear program's arguments for one of its result."""
    leaves, tree = tree_util.tree_flatten(cotangent)
    if tree != program.out_tree:
        raise TypeError(
            f"cotangent tree does not match function output, expected {short(program.out_tree)} but got "
            f"{short(tree)}:{differences(program.out_tree, tree, 'the output', 'the cotangent')}"
        )
    types = [_ferrax.typeof(x) for x in leaves]
    if any(not _fits(a, b) for a, b in zip(types, program.out_avals, strict=True)):
        raise TypeError(
            f"cotangent type does not match function output, expected {short(program.out_avals)} but got "
            f"{short(types)}."
        )
    leaves = [
        x if t.dtype == a.dtype else a.dtype.type(x) for x, t, a in zip(leaves, types, program.out_avals, strict=True)
    ]
    return in_tree.unflatten(_ferrax.transpose_jaxpr(program, leaves))


def _kind(dtype: Any) -> str:
    """Which functions of a dtype can be transposed."""
    import ferrax.numpy as jnp

    return (
        "inexact" if jnp.issubdtype(dtype, np.inexact) else "integer" if jnp.issubdtype(dtype, np.integer) else "bool"
    )


def _fits(given: Any, wanted: Any) -> bool:
    """Whether a cotangent is of the type of a result; a number of Python is, if that holds its kind."""
    import ferrax.numpy as jnp

    if given.shape != wanted.shape:
        return False
    floats = all(jnp.issubdtype(a.dtype, np.floating) for a in (given, wanted))
    return bool(given.dtype == wanted.dtype or (given.weak_type and floats))


def _std_basis(tree: Any) -> Any:
    """One-hot rows for every element of a tree, split among its leaves."""
    import ferrax.numpy as jnp

    leaves, structure = tree_util.tree_flatten(tree)
    total = sum(math.prod(np.shape(x)) for x in leaves)
    dtype = jnp.result_type(*leaves)
    return _unravel(jnp.eye(total, dtype=dtype), leaves, structure, axis=1, like=leaves)


def _unravel(matrix: Any, leaves: Sequence[Any], structure: Any, axis: int, like: Sequence[Any]) -> Any:
    """Splits one axis of `matrix` among leaves: each part has the leaf's shape there, and the type of one of `like`."""
    import ferrax.numpy as jnp

    sizes = [math.prod(np.shape(x)) for x in leaves]
    axis = axis % matrix.ndim
    parts = jnp.split(matrix, list(itertools.accumulate(sizes))[:-1], axis) if leaves else []
    shaped = [
        _of_type(part.reshape((*part.shape[:axis], *np.shape(x), *part.shape[axis + 1 :])), example)
        for part, x, example in zip(parts, leaves, like, strict=True)
    ]
    return structure.unflatten(shaped)


def _inexact(x: Any) -> Any:
    """The value if its elements are floats or complex numbers, else None."""
    return x if _kind(_ferrax.typeof(x).dtype) == "inexact" else None


def _of_type(x: Any, example: Any) -> Any:
    """The array with the dtype of another, weak if that is; where that is real, the real part."""
    if example is None:
        return x
    wanted = _ferrax.typeof(example)
    if x.dtype == wanted.dtype and x.weak_type == wanted.weak_type:
        return x
    return _ferrax.lax.convert(x, wanted.dtype, wanted.weak_type)


def _active(
    fun: Callable[..., Any], argnums: int | Sequence[int], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`fun` of the differentiated arguments alone, and those arguments."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to "
                f"-len(args) and less than len(args), but got value {n} for len(args) == {len(args)}."
            )
    numbers = [n % len(args) for n in numbers]
    if len(set(numbers)) < len(numbers):
        raise TypeError(f"argnums={argnums} names an argument more than once")

    def of_active(*active: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, active, strict=True):
            full[n] = value
        return fun(*full, **kwargs)

    return of_active, tuple(args[n] for n in numbers)


def _check_real(tree: Any, what: str, holomorphic: bool) -> None:
    import ferrax.numpy as jnp

    for leaf in tree_util.tree_leaves(tree):
        dtype = jnp.result_type(leaf)
        if holomorphic and not jnp.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}.")
        if holomorphic:
            continue
        if what == "jacrev" and not jnp.issubdtype(dtype, np.inexact):
            raise TypeError(
                f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtype.name}. Pass allow_int=True for arguments whose gradient does not matter."
            )
        if what == "jacfwd" and not jnp.issubdtype(dtype, np.floating):
            other = "pass holomorphic=True" if jnp.issubdtype(dtype, np.complexfloating) else "use ferrax.jvp directly"
            raise TypeError(
                f"{what} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
                f"{dtype.name}; {other}."
            )


def _check_outputs(leaves: Sequence[Any], what: str, holomorphic: bool) -> None:
    import ferrax.numpy as jnp

    for leaf in leaves:
        dtype = jnp.result_type(leaf)
        if holomorphic and not jnp.issubdtype(dtype, np.complexfloating):
            raise TypeError(f"{what} with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.")
        if not holomorphic and not jnp.issubdtype(dtype, np.floating):
            raise TypeError(
                f"{what} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                f"{dtype.name}. "
                + (
                    "For holomorphic differentiation, pass holomorphic=True."
                    if jnp.issubdtype(dtype, np.complexfloating)
                    else "For differentiation of functions with integer outputs, use ferrax.vjp directly."
                )
            )


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Jacobian by forward mode: one pass a column, all at once.

    Args:
      fun: function of arrays or pytrees.
      argnums: position, or positions, of the arguments to differentiate.
      has_aux: whether `fun` returns `(value, auxiliary data)`.
      holomorphic: whether `fun` is a holomorphic function of complex arguments.

    Returns:
      A function that returns the Jacobian: result axes, then argument axes.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _active(fun, argnums, args, kwargs)
        point = active[0] if isinstance(argnums, int) else active
        _check_real(point, "jacfwd", holomorphic)

        def push(*tangents: Any) -> Any:
            return jvp(of_active, active, tangents, has_aux)

        leaves, structure = tree_util.tree_flatten(point)
        basis = _std_basis(point)
        axes = (None, -1, None) if has_aux else (None, -1)
        value, rows, *aux = vmap(push, out_axes=axes)(*((basis,) if isinstance(argnums, int) else basis))
        jac = tree_util.tree_map(
            lambda column, y: _unravel(column, leaves, structure, axis=-1, like=[y] * len(leaves)), rows, value
        )
        return (jac, aux[0]) if has_aux else jac

    return named_as(jacobian_of, fun, "Jacobian")


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Jacobian by reverse mode: one pass a row, all at once.

    Args:
      fun, argnums, has_aux, holomorphic: as in `jacfwd`.
      allow_int: whether integer arguments are taken.

    Returns: as in `jacfwd`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        of_active, active = _active(fun, argnums, args, kwargs)
        if not allow_int:
            _check_real(active, "jacrev", holomorphic)
        value, pullback, *aux = vjp(of_active, *active, has_aux=has_aux)
        leaves, structure = tree_util.tree_flatten(value)
        _check_outputs(leaves, "jacrev", holomorphic)
        rows = vmap(pullback)(_std_basis(value))
        chosen = rows[0] if isinstance(argnums, int) else rows
        example = active[0] if isinstance(argnums, int) else active
        split = tree_util.tree_map(
            lambda row, x: _unravel(row, leaves, structure, axis=0, like=[_inexact(x)] * len(leaves)),
            chosen,
            example,
        )
        jac = tree_util.tree_transpose(tree_util.tree_structure(example), structure, split)
        return (jac, aux[0]) if has_aux else jac

    return named_as(jacobian_of, fun, "Jacobian")


jacobian = jacrev


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Hessian of a function: forward mode over reverse mode.

    Args:
      fun: function whose result is a real array.
      argnums, has_aux, holomorphic: as in `jacfwd`.

    Returns:
      A function that returns the second derivatives: result axes, then argument axes twice.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic)
