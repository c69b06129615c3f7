"""Functions with derivative rules of their own: `custom_jvp` and `custom_vjp`.

The decorated function and its rules are turned into functions of flat values and handed to one primitive; static
(non-differentiated) arguments are closed over. Read next: `crates/ferrax-ops/src/control/custom_jvp.rs`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._api import closure_convert
from ferrax._boundary import expose as _expose

__all__ = ["SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp", "linear_call"]


class SymbolicZero:
    """A cotangent or tangent that is zero, given to rules defined with `symbolic_zeros=True`.

    Args:
      aval: the shape and dtype of the zero.

    >>> import ferrax
    >>> from ferrax.custom_derivatives import SymbolicZero
    >>> SymbolicZero(ferrax.typeof(1.0)).shape
    ()
    """

    def __init__(self, aval: Any):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def _bound_arguments(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Keyword arguments and defaults put at their positions."""
    if not kwargs:
        try:
            parameters = inspect.signature(fun).parameters.values()
        except (TypeError, ValueError):
            return args
        if len(args) >= sum(1 for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL):
            return args
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except ValueError:
        return args
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"keyword arguments of the function {getattr(fun, '__name__', fun)} could not be resolved to positions"
        )
    return bound.args


class _Split:
    """Arguments with the static ones taken out."""

    def __init__(self, nondiff: frozenset[int], args: tuple[Any, ...]):
        self.nondiff = sorted(n % len(args) for n in nondiff) if args else []
        self.static = [args[i] for i in self.nondiff]
        dynamic = tuple(a for i, a in enumerate(args) if i not in self.nondiff)
        self.leaves, self.tree = tree_util.tree_flatten(dynamic)

    def call(self, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """`fun` on all arguments, the dynamic ones made of `leaves`."""
        dynamic = list(self.tree.unflatten(leaves))
        for i, value in zip(self.nondiff, self.static, strict=True):
            dynamic.insert(i, value)
        return fun(*dynamic)


def _static_positions(fun: Callable[..., Any], nums: Sequence[int], names: Sequence[str]) -> frozenset[int]:
    positions = list(nums)
    if names:
        parameters = list(inspect.signature(fun).parameters)
        positions += [parameters.index(n) for n in names]
    return frozenset(positions)


class custom_jvp:
    """A function whose forward derivative is given by a rule.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated; the rule gets them first.
      nondiff_argnames: names of such arguments.

    The rule, set with `defjvp`, takes `(primals, tangents)`, both tuples, and returns `(value, tangent)`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(primals[0]), 10.0 * tangents[0]
    >>> print(jax.grad(f)(1.0))
    10.0
    """

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _static_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: `(*static, primals, tangents) -> (value, tangent)`; returns it."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule an argument: `(tangent, value, *args) -> tangent`, or `None` for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            import ferrax.numpy as jnp

            value = self(*primals)
            zeros = tree_util.tree_map(jnp.zeros_like, value)
            parts = [
                zeros if rule is None else rule(t, value, *primals) for rule, t in zip(jvps, tangents, strict=True)
            ]
            return value, functools.reduce(lambda a, b: tree_util.tree_map(jnp.add, a, b), parts, zeros)

        self.defjvp(jvp)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.fun, "__name__", str(self.fun))
        rule = self.jvp
        if rule is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name} using defjvp: call "
                f"{name}.defjvp(rule) before it is differentiated."
            )
        split = _Split(self.nondiff_argnums, _bound_arguments(self.fun, args, kwargs))
        trees: list[Any] = []

        def flat_fun(*leaves: Any) -> list[Any]:
            out, tree = tree_util.tree_flatten(split.call(self.fun, leaves))
            trees.append(tree)
            return out

        def flat_jvp(*both: Any) -> list[Any]:
            n = len(both) // 2
            primals, tangents = split.tree.unflatten(both[:n]), split.tree.unflatten(both[n:])
            pair = rule(*split.static, primals, tangents)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"Custom JVP rule {getattr(rule, '__name__', rule)} for function {name} must produce a pair (list "
                    f"or tuple of length two) representing primal and tangent outputs, but got {pair}."
                )
            return _paired(name, rule, trees, *pair)

        flat_jvp.__name__ = getattr(rule, "__name__", str(rule))
        outs = _ferrax.bind_custom_jvp(name, flat_fun, flat_jvp, self.symbolic_zeros, split.leaves)
        return trees[-1].unflatten(outs)


def _paired(name: str, rule: Any, trees: list[Any], value: Any, tangent: Any) -> list[Any]:
    """Flat results and tangents of a rule, checked against each other."""
    values, tree = tree_util.tree_flatten(value)
    tangents, tangent_tree = tree_util.tree_flatten(tangent)
    rule_name = getattr(rule, "__name__", rule)
    if tree != tangent_tree:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {name} must produce primal and tangent outputs with equal "
            f"container (pytree) structures, but got {tree} and {tangent_tree} respectively."
        )
    trees.append(tree)
    out = []
    for v, t in zip(values, tangents, strict=True):
        if np.shape(v) != np.shape(t):
            raise TypeError(
                f"Custom JVP rule {rule_name} for function {name} must produce primal and tangent outputs with equal "
                f"shapes, but got {np.shape(v)} and {np.shape(t)}."
            )
        out.append(_as_tangent(t, v))
    return [*values, *out]


def _as_tangent(t: Any, v: Any) -> Any:
    """A tangent in its value's dtype; integers have none, a zero stands for it."""
    import ferrax.numpy as jnp

    dtype = jnp.result_type(v)
    if not jnp.issubdtype(dtype, np.inexact):
        return jnp.zeros(np.shape(v))
    return t if jnp.result_type(t) == dtype else jnp.asarray(t, dtype)


class custom_vjp:
    """A function whose reverse derivative is given by a pair of functions.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are not differentiated.
      nondiff_argnames: names of such arguments.

    `defvjp(fwd, bwd)`: `fwd` takes `fun`'s arguments and returns `(value, residuals)`; `bwd` takes the static
    arguments, the residuals and the value's cotangent, and returns a tuple with one cotangent a dynamic argument.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> @jax.custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * ct,))
    >>> print(jax.grad(f)(1.0))
    10.0
    """

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _static_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the forward and the backward function."""
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = symbolic_zeros

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.fun, "__name__", str(self.fun))
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name} using defvjp: call "
                f"{name}.defvjp(fwd, bwd) before it is differentiated."
            )
        split = _Split(self.nondiff_argnums, _bound_arguments(self.fun, args, kwargs))
        trees: list[Any] = []
        residual_trees: list[Any] = []

        def flat_fun(*leaves: Any) -> list[Any]:
            out, tree = tree_util.tree_flatten(split.call(self.fun, leaves))
            trees.append(tree)
            return out

        def flat_fwd(*leaves: Any) -> tuple[list[Any], list[Any]]:
            pair = split.call(fwd, leaves)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {getattr(fwd, '__name__', fwd)} for function {name} must produce a pair "
                    f"(list or tuple of length two) where the first element represents the primal output and the "
                    f"second element represents residuals, but got {pair!r}."
                )
            out, tree = tree_util.tree_flatten(pair[0])
            trees.append(tree)
            residuals, residual_tree = tree_util.tree_flatten(pair[1])
            residual_trees.append(residual_tree)
            return out, residuals

        def flat_bwd(residuals: list[Any], cts: list[Any]) -> list[Any]:
            kept = residual_trees[-1].unflatten(residuals)
            pulled = bwd(*split.static, kept, trees[-1].unflatten(cts))
            return _cotangents(name, bwd, pulled, split)

        flat_fwd.__name__ = getattr(fwd, "__name__", str(fwd))
        flat_bwd.__name__ = getattr(bwd, "__name__", str(bwd))
        outs = _ferrax.bind_custom_vjp(name, flat_fun, flat_fwd, flat_bwd, self.symbolic_zeros, split.leaves)
        return trees[-1].unflatten(outs)


def _cotangents(name: str, bwd: Any, pulled: Any, split: _Split) -> list[Any]:
    """Flat cotangents of the dynamic arguments, `None` for zero."""
    if isinstance(pulled, list):
        pulled = tuple(pulled)
    arguments = split.tree.children()
    if not isinstance(pulled, tuple) or len(pulled) != len(arguments):
        raise TypeError(
            f"Custom VJP bwd rule {getattr(bwd, '__name__', bwd)} for function {name} must produce a tuple of length "
            f"equal to the primal args tuple, but got {pulled!r} for {len(arguments)} arguments."
        )
    out: list[Any] = []
    for ct, tree in zip(pulled, arguments, strict=True):
        if ct is None:
            out += [None] * tree.num_leaves
            continue
        leaves = tree_util.tree_leaves(ct, is_leaf=lambda x: x is None)
        if len(leaves) != tree.num_leaves:
            raise TypeError(
                f"Custom VJP bwd rule {getattr(bwd, '__name__', bwd)} for function {name} must produce cotangents with "
                f"the structure of the arguments: got {tree_util.tree_structure(ct)}, expected {tree}."
            )
        out += [None if x is None or isinstance(x, SymbolicZero) or _is_float0(x) else x for x in leaves]
    return [_fitted(ct, primal) for ct, primal in zip(out, split.leaves, strict=True)]


def _is_float0(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and getattr(dtype, "names", None) == ("float0",)


def _fitted(ct: Any, primal: Any) -> Any:
    import ferrax.numpy as jnp

    if ct is None:
        return None
    dtype = jnp.result_type(primal)
    if not jnp.issubdtype(dtype, np.inexact):
        return None
    return ct if jnp.result_type(ct) == dtype else jnp.asarray(ct, dtype)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its value and its pullback, made differentiable.

    Args:
      fun: function that returns `(value, pullback)`.

    Returns:
      A function that returns the value.

    >>> import ferrax as jax
    >>> @jax.custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: 4.0 * ct
    >>> print(jax.grad(f)(3.0))
    4.0
    """

    kept: list[Any] = []

    @custom_vjp
    def wrapped(*args: Any) -> Any:
        return fun(*args)[0]

    def fwd(*args: Any) -> Any:
        value, pullback = fun(*args)
        converted, consts = closure_convert(pullback, value)
        kept.append(converted)
        return value, (consts, len(args))

    def bwd(residuals: Any, ct: Any) -> Any:
        consts, count = residuals
        pulled = kept[-1](ct, *consts)
        return pulled if isinstance(pulled, tuple) and len(pulled) == count else (pulled,)

    wrapped.defvjp(fwd, bwd)
    functools.update_wrapper(wrapped, fun)
    return wrapped


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Calls a linear function whose transpose is given.

    Args:
      fun: function `(residual_args, linear_args) -> result`, linear in the second.
      fun_transpose: function `(residual_args, cotangent) -> cotangent of linear_args`.
      residual_args: pytree of known values.
      linear_args: pytree of values that `fun` is linear in.

    Returns:
      `fun(residual_args, linear_args)`.

    >>> import ferrax as jax
    >>> print(jax.custom_derivatives.linear_call(lambda r, x: r * x, lambda r, t: r * t, 3.0, 2.0))
    6.0
    """

    @custom_vjp
    def call(residuals: Any, linear: Any) -> Any:
        return fun(residuals, linear)

    def fwd(residuals: Any, linear: Any) -> Any:
        return fun(residuals, linear), residuals

    def bwd(residuals: Any, ct: Any) -> Any:
        return None, fun_transpose(residuals, ct)

    call.defvjp(fwd, bwd)
    return call(residual_args, linear_args)


_expose(globals())
