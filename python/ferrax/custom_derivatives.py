"""Functions with derivative rules of their own: `custom_jvp` and `custom_vjp`.

The decorated function and its rules are turned into functions of flat values and handed to one primitive; static
(non-differentiated) arguments are closed over. Read next: `crates/ferrax-ops/src/control/custom_jvp.rs`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, cast

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._api import closure_convert
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray, is_tracer
from ferrax._mapped_rules import in_axes_of_call
from ferrax._named_functions import name_function, name_of
from ferrax._primitives import built_in as _built_in, zeros_of as _zeros_of
from ferrax._texts import differences, short
from ferrax._typed import P, R
from ferrax.config import enable_x64

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]


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

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value.

        Args:
          val: an array or a number.

        Returns:
          A `SymbolicZero`.

        >>> from ferrax.custom_derivatives import SymbolicZero
        >>> SymbolicZero.from_primal_value(1).dtype
        dtype([('float0', 'V')])
        """
        return SymbolicZero(_ferrax.typeof(val).to_tangent_aval())

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


_float0 = _ferrax.dtype_object("float0")
_PLAIN_NUMBERS = (bool, int, float, complex)


class CustomVJPPrimal:
    """An argument as the forward function of a rule with `symbolic_zeros=True` gets it.

    Args:
      value: the argument.
      perturbed: whether the function is being differentiated with respect to it.

    >>> import ferrax
    >>> ferrax.custom_derivatives.CustomVJPPrimal(1.0, True).perturbed
    True
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A tree with the values of the `CustomVJPPrimal`s in it.

    Args:
      tree: a pytree whose leaves are `CustomVJPPrimal`.

    Returns:
      A pytree of the same structure.

    >>> import ferrax
    >>> primal = ferrax.custom_derivatives.CustomVJPPrimal(1.0, True)
    >>> ferrax.custom_derivatives.custom_vjp_primal_tree_values([primal])
    [1.0]
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf of type {type(leaf)}")
        return leaf.value

    return tree_util.tree_map(value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of values.

    Args:
      val: a pytree of arrays and numbers.
      symbolic_zeros: give `SymbolicZero`s in place of arrays.

    Returns:
      A pytree of the same structure; the zeros of integers have the dtype `float0`.

    >>> import ferrax
    >>> print(ferrax.custom_derivatives.zero_from_primal(2.0))
    0.0
    """

    def zero(leaf: Any) -> Any:
        aval = _ferrax.typeof(leaf).to_tangent_aval()
        if symbolic_zeros:
            return SymbolicZero(aval)
        return np.zeros(aval.shape, aval.dtype) if aval.dtype == _float0 else _zeros_of(aval)

    return tree_util.tree_map(zero, val)


def _bound_arguments(
    kind: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
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
    except TypeError as e:
        raise _unresolved(kind, fun, str(e)) from None
    bound.apply_defaults()
    # those that have a value in the function, by default or by `functools.partial`, keep it
    if given := [name for name in bound.kwargs if name in kwargs]:
        named = ", ".join(given)
        raise _unresolved(kind, fun, f"The following keyword arguments could not be resolved to positions: {named}")
    return bound.args


def _unresolved(kind: str, fun: Callable[..., Any], why: str) -> TypeError:
    return TypeError(
        f"The input arguments to the {kind}-decorated function {_name(fun)} could not be resolved to "
        f"positional-only arguments. Binding failed with the error:\n{why}"
    )


class _Split:
    """Arguments with the static ones taken out."""

    def __init__(self, nondiff: frozenset[int], args: tuple[Any, ...]):
        for n in nondiff:
            if not -len(args) <= n < len(args):
                error = ValueError if n < 0 else IndexError
                raise error(f"nondiff_argnums {n} is not an argument of a call with {len(args)}")
        self.nondiff = sorted(n % len(args) for n in nondiff)
        self.static = [args[i] for i in self.nondiff]
        dynamic = tuple(a for i, a in enumerate(args) if i not in self.nondiff)
        self.leaves, self.tree = tree_util.tree_flatten(dynamic)
        self.types: list[Any] = []

    def taken(self) -> list[Any]:
        """The leaves, which are given up but for their types: rules, which programs keep, hold no values of a call."""
        leaves, self.leaves = self.leaves, []
        self.types = list(map(_type, leaves))
        return leaves

    def call(self, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """`fun` on all arguments, the dynamic ones made of `leaves`."""
        dynamic = list(self.tree.unflatten(leaves))
        for i, value in zip(self.nondiff, self.static, strict=True):
            dynamic.insert(i, value)
        return fun(*dynamic)

    def names(self, fun: Callable[..., Any]) -> list[str]:
        """The names of the leaves, as the function's author calls them."""
        from ferrax.api_util import debug_info

        args = list(self.tree.unflatten(range(self.tree.num_leaves)))
        for i in self.nondiff:
            args.insert(i, None)
        return list(debug_info("", fun, args, {}, static_argnums=self.nondiff).arg_names or ())


def _static_positions(fun: Callable[..., Any], nums: int | Sequence[int], names: Sequence[str]) -> frozenset[int]:
    positions = [nums] if isinstance(nums, int) else list(nums)
    if names:
        parameters = list(inspect.signature(fun).parameters)
        unknown = [n for n in names if n not in parameters]
        if unknown:
            raise ValueError(f"nondiff_argnames {unknown} are no arguments of {_name(fun)}, which takes {parameters}")
        positions += [parameters.index(n) for n in names]
    return frozenset(positions)


def _arity(fun: Callable[..., Any]) -> int:
    """How many arguments a function takes by position, where it takes no others; -1 elsewhere."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return -1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) if all(p.kind in positional for p in parameters) else -1


class custom_jvp(Generic[P, R]):
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
        self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _static_positions(fun, nondiff_argnums, nondiff_argnames)
        self._arity = -1 if self.nondiff_argnums else _arity(fun)
        self._rule: Callable[..., Any] | None = None
        self._symbolic_zeros = False

    def __getattr__(self, name: str) -> Any:
        # what the function itself has, `def_vmap` of a `custom_vmap` say
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.__dict__["__wrapped__"], name)

    jvp = property(lambda self: self._rule, doc="The rule; `None` until `defjvp` sets it.")
    symbolic_zeros = property(lambda self: self._symbolic_zeros, doc="Whether the rule takes `SymbolicZero`s.")

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: `(*static, primals, tangents) -> (value, tangent)`; returns it."""
        self._rule = jvp
        self._symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule an argument: `(tangent, value, *args) -> tangent`, or `None` for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            import ferrax.numpy as jnp

            if len(jvps) != len(tangents):
                raise ValueError(
                    f"defjvps of {_name(self.fun)} got {len(jvps)} rules, but {_name(self.fun)} is called with "
                    f"{len(tangents)} arguments; give one rule an argument, or None for an argument without one"
                )
            value = self(*primals)  # type: ignore[call-arg]
            parts = [
                _part(self.fun, rule, rule(t, value, *primals), value)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            if not parts:
                return value, tree_util.tree_map(jnp.zeros_like, value)
            return value, functools.reduce(lambda a, b: tree_util.tree_map(jnp.add, a, b), parts)

        self.defjvp(jvp)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) == self._arity and not kwargs and self._rule is not None:
            out = _ferrax.called_plainly(self.fun, args)
            if out is not NotImplemented:
                return cast(R, out)
        name = _name(self.fun)
        rule = self.jvp
        if rule is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name} using defjvp: call "
                f"{name}.defjvp(rule) before it is differentiated."
            )
        split = _Split(self.nondiff_argnums, _bound_arguments("custom_jvp", self.fun, args, kwargs))
        split.static = [_constant(value) for value in split.static]
        trees = _Trees("custom_jvp", rule, name)

        def flat_fun(*leaves: Any) -> list[Any]:
            return trees.ran(split.call(self.fun, leaves))

        flat_fun.argument_names = lambda: split.names(self.fun)  # type: ignore[attr-defined]
        wide = _ferrax.flag("x64")

        def flat_jvp(both: Sequence[Any], zero: list[bool]) -> list[Any]:
            n = len(both) // 2
            primals, tangents = split.tree.unflatten(both[:n]), split.tree.unflatten(symbolic(both[n:], zero))
            if _ferrax.flag("x64") == wide:
                pair = rule(*split.static, primals, tangents)
            else:
                # a derivative is asked for where float64 is not allowed any more, as it was at the call
                with enable_x64(wide):
                    pair = rule(*split.static, primals, tangents)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"Custom JVP rule {_name(rule)} for function {name} must produce a pair (list "
                    f"or tuple of length two) representing primal and tangent outputs, but got {pair}."
                )
            return _paired(name, rule, trees, *pair)

        def wrong_tangent(i: int, got: str, wanted: str, primal: str) -> TypeError:
            return TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
                f"Expected {wanted} (tangent type of {primal}) but got {got}. The rule is {_name(rule)}, for function "
                f"{name}{_place(trees.out, i)}."
            )

        complaints = trees.wrong_value, wrong_tangent
        flat = in_axes_of_call(flat_jvp)
        name_function(flat, _name(rule), complaints=complaints, arity=split.tree.num_leaves)
        outs = _ferrax.bind_custom_jvp(name, flat_fun, flat, complaints, self.symbolic_zeros, split.taken())
        return trees.out.unflatten(outs)


class _Trees:
    """Structures of a function's result (once it has run) and of the result that its rule gave last, with types.

    Args:
      decorator: `"custom_jvp"` or `"custom_vjp"`.
      rule: the rule.
      name: the function's name.
    """

    fun: Any = None
    out: Any = None
    fun_types: Sequence[Any] = ()
    out_types: Sequence[Any] = ()

    def __init__(self, decorator: str, rule: Any, name: str) -> None:
        self.decorator, self.rule, self.name = decorator, rule, name

    def ran(self, out: Any) -> list[Any]:
        """Flat results of the function, whose structure and types are noted."""
        leaves, self.fun = tree_util.tree_flatten(out)
        self.out, self.fun_types = self.fun, list(map(_type, leaves))
        return leaves

    def check(self, tree: Any, leaves: Sequence[Any]) -> None:
        """Notes the structure of a rule's value, which must be that of the function's."""
        types = list(map(_type, leaves))
        if self.fun is not None and tree != self.fun:
            lines = differences(tree, self.fun, "what the rule gives", f"what {self.name} gives", "output")
            given, wanted = _written(tree, types), _written(self.fun, self.fun_types)
            raise self._error("of the same", "container/pytree structure", given, f"{wanted}.{lines}")
        self.out, self.out_types = tree, types

    def wrong_value(self, i: int, got: str, wanted: str) -> TypeError:
        """The error of a rule's value whose i-th leaf is not of the function's type."""
        given = _written(self.out, self.out_types)
        end = f"{_written(self.fun, self.fun_types)}{_place(self.out, i)}"
        return self._error("with leaves of the same", "shapes/dtypes of", given, end)

    def _error(self, same: str, what: str, given: str, wanted: str) -> TypeError:
        name, kind = self.name, "JVP" if self.decorator == "custom_jvp" else "fwd"
        of = f"the output of the {self.decorator}-decorated function {name}"
        part = "shape/dtype" if "shapes" in what else what
        first = (
            f"(equal in value to {of}, and in particular {same} {part})"
            if kind == "JVP"
            else f"(equal to {of}) and the second element represents residuals (i.e. values stored from the forward "
            "pass for use on the backward pass)"
        )
        return TypeError(
            f"Custom {'VJP ' * (kind == 'fwd')}{kind} rule {_name(self.rule)} for function {name} must produce a pair "
            f"(list or tuple of length two) where the first element represents the primal output {first}, but instead "
            f"the {kind} rule output's first element had {what}:\n    {given}\nwhile the {self.decorator}-decorated "
            f"function {name} had output {what}:\n    {wanted}"
        )


def _type(x: Any) -> Any:
    """The type of a leaf, or the leaf itself where it has none."""
    try:
        return _ferrax.typeof(x)
    except TypeError:
        return x


def _written(tree: Any, types: Sequence[Any]) -> str:
    texts = [t.str_short() if isinstance(t, ShapedArray) else short(t) for t in types]
    return str(tree.unflatten(texts)).replace("'", "")


def _name(fun: Any) -> str:
    return name_of(fun, type(fun).__name__)


def _place(tree: Any, i: int) -> str:
    """ " at output['a']" for a leaf of a tree; nothing for a single leaf."""
    path = _ferrax.tree_leaf_path(tree, i)
    return f" at output{path}" if path else ""


def _constant(value: Any) -> Any:
    """A static argument; traced values in it count as constants of the derivative."""
    leaves = tree_util.tree_leaves(value)
    if not any(is_tracer(leaf) for leaf in leaves):
        return value
    return tree_util.tree_map(lambda leaf: _ferrax.lax.stop_gradient(leaf) if is_tracer(leaf) else leaf, value)


def _part(fun: Any, rule: Any, tangent: Any, value: Any) -> Any:
    """What one rule of `defjvps` returned, of the structure and types of the function's result."""
    import ferrax.numpy as jnp

    tangents, got = tree_util.tree_flatten(tangent)
    values, tree = tree_util.tree_flatten(value)
    head = f"The rule {_name(rule)} given to defjvps of {_name(fun)} must produce a tangent of {_name(fun)}'s output"
    if got != tree:
        lines = differences(tree, got, "the output", "the tangent", "output")
        raise TypeError(f"{head}, of the structure {short(tree)}, but its structure is {short(got)}:{lines}")
    for i, (t, v) in enumerate(zip(tangents, values, strict=True)):
        dtype = jnp.result_type(v)
        if np.shape(t) != np.shape(v) or (jnp.issubdtype(dtype, np.inexact) and jnp.result_type(t) != dtype):
            types = (ShapedArray(np.shape(x), jnp.result_type(x)).str_short() for x in (v, t))
            raise TypeError("{}. Expected{} {} but got {}.".format(head, _place(tree, i), *types))
    return tangent


def symbolic(derivatives: Sequence[Any], zero: list[bool]) -> list[Any]:
    """Tangents or cotangents, `SymbolicZero`s where they are zero."""
    pairs = itertools.zip_longest(derivatives, zero, fillvalue=False)
    return [SymbolicZero(_ferrax.typeof(x)) if none else x for x, none in pairs]


def as_tangent(x: Any) -> Any:
    """A leaf of a tangent, zeros for a symbolic one."""
    if not isinstance(x, SymbolicZero):
        return x
    import ferrax.numpy as jnp

    return jnp.zeros(x.shape, x.dtype)


def _paired(name: str, rule: Any, trees: _Trees, value: Any, tangent: Any) -> list[Any]:
    """Flat results and tangents of a rule; their structures are checked here, their types where they are bound."""
    values, tree = tree_util.tree_flatten(value)
    tangents, tangent_tree = tree_util.tree_flatten(tangent)
    if tree != tangent_tree:
        raise TypeError(
            f"Custom JVP rule {_name(rule)} for function {name} must produce primal and tangent outputs with equal "
            f"container (pytree) structures, but got {short(tree)} and {short(tangent_tree)} respectively."
            f"{differences(tree, tangent_tree, 'the primal output', 'the tangent output', 'output')}"
        )
    trees.check(tree, values)
    return [*values, *map(as_tangent, tangents)]


class custom_vjp(Generic[P, R]):
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
        self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _static_positions(fun, nondiff_argnums, nondiff_argnames)
        self._arity = -1 if self.nondiff_argnums else _arity(fun)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __getattr__(self, name: str) -> Any:
        # what the function itself has, `def_vmap` of a `custom_vmap` say
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.__dict__["__wrapped__"], name)

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

    def _like(self, fun: Callable[..., Any], fwd: Callable[..., Any], bwd: Callable[..., Any]) -> custom_vjp[Any, Any]:
        """Another function with a rule, and with this one's settings."""
        other: custom_vjp[Any, Any] = custom_vjp(fun)
        other.nondiff_argnums = self.nondiff_argnums
        other.defvjp(fwd, bwd, self.symbolic_zeros)
        return other

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) == self._arity and not kwargs and self.bwd is not None:
            out = _ferrax.called_plainly(self.fun, args)
            if out is not NotImplemented:
                return cast(R, out)
        name = _name(self.fun)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name} using defvjp: call "
                f"{name}.defvjp(fwd, bwd) before it is differentiated."
            )
        arguments = _bound_arguments("custom_vjp", self.fun, args, kwargs)
        split = _Split(self.nondiff_argnums, arguments)
        if any(map(_ferrax.is_reference, split.leaves)):
            from ferrax._refs_calls import with_rule

            return with_rule(self._like, self.fun, fwd, bwd, arguments)
        if any(is_tracer(leaf) for leaf in tree_util.tree_leaves(split.static)):
            raise _ferrax.UnexpectedTracerError(_static_tracer(self.fun, name, split))
        trees = _Trees("custom_vjp", fwd, name)
        residual_trees: list[Any] = []

        def flat_fun(*leaves: Any) -> list[Any]:
            return trees.ran(split.call(self.fun, leaves))

        def flat_fwd(perturbed: list[bool], *leaves: Any) -> tuple[list[Any], list[Any]]:
            given: Sequence[Any] = leaves
            if self.symbolic_zeros:
                given = [CustomVJPPrimal(x, on) for x, on in zip(leaves, perturbed, strict=True)]
            pair = split.call(fwd, given)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {_name(fwd)} for function {name} must produce a pair (list or tuple of "
                    "length two) where the first element represents the primal output (equal to those of the "
                    f"custom_vjp-decorated function {name}) and the second element represents residuals (i.e. values "
                    "stored from the forward pass for use on the backward pass), but instead of a pair the fwd rule "
                    f"{_name(fwd)} produced {short(pair)}."
                )
            out, tree = tree_util.tree_flatten(pair[0])
            trees.check(tree, out)
            residuals, residual_tree = tree_util.tree_flatten(pair[1])
            # Python's numbers reach the backward function as they are
            residual_trees.append((residual_tree, [x if type(x) in _PLAIN_NUMBERS else None for x in residuals]))
            return out, [x for x in residuals if type(x) not in _PLAIN_NUMBERS]

        def flat_bwd(residuals: list[Any], cts: list[Any], zero: list[bool]) -> list[Any]:
            residual_tree, numbers = residual_trees[-1]
            arrays = iter(residuals)
            kept = residual_tree.unflatten([next(arrays) if x is None else x for x in numbers])
            given = symbolic(cts, zero if self.symbolic_zeros else [])
            pulled = bwd(*split.static, kept, trees.out.unflatten(given))
            return _cotangents(self.fun, bwd, pulled, split)

        def wrong_cotangent(i: int, got: str, wanted: str, primal: str) -> ValueError:
            shapes = got[got.index("[") :] != wanted[wanted.index("[") :]
            return ValueError(
                "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
                f"function, but{_place(split.tree, i)} the bwd rule produced an output of type {got} corresponding to "
                f"an input of type {primal}, so the {'shapes' if shapes else 'dtypes'} do not match. The bwd rule is "
                f"{_name(bwd)}, the input argument {_argument(self.fun, split, i)} of {name}."
            )

        complaints = trees.wrong_value, wrong_cotangent
        rules = in_axes_of_call(flat_fwd), in_axes_of_call(flat_bwd)
        name_function(rules[0], _name(fwd), complaints=complaints, arity=split.tree.num_leaves)
        name_function(rules[1], _name(bwd))
        outs = _ferrax.bind_custom_vjp(name, flat_fun, *rules, complaints, self.symbolic_zeros, split.taken())
        return trees.out.unflatten(outs)


def _parameters(fun: Any, split: _Split) -> list[str]:
    """Names of a function's dynamic arguments."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    several = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL] or ["args"]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(split.tree.children()) + len(split.nondiff)
    names = [*names[:count], *(f"{several[0]}[{i}]" for i in range(count - len(names)))]
    return [name for i, name in enumerate(names) if i not in split.nondiff]


def _argument(fun: Any, split: _Split, i: int) -> str:
    """The name of a leaf of the dynamic arguments: "params['w']"."""
    paths, _ = tree_util.tree_flatten_with_path(split.tree.unflatten(range(split.tree.num_leaves)))
    position, *rest = paths[i][0]
    return _parameters(fun, split)[position.idx] + tree_util.keystr(tuple(rest))


def _static_tracer(fun: Any, name: str, split: _Split) -> str:
    """The text of the error of a traced value among the static arguments."""
    found = next(
        (position, leaf)
        for position, value in zip(split.nondiff, split.static, strict=True)
        for leaf in tree_util.tree_leaves(value)
        if is_tracer(leaf)
    )
    return (
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated by "
        f"nondiff_argnums as non-differentiable: {name} got the traced value {found[1]} for argument {found[0]}. Such "
        "arguments are functions, settings and other values that are no arrays: take the position out of "
        "nondiff_argnums, and let the bwd rule return None for its cotangent."
    )


def _cotangents(fun: Any, bwd: Any, pulled: Any, split: _Split) -> list[Any]:
    """Flat cotangents of the dynamic arguments, `None` for zero; their types are checked where they are bound."""
    arguments = split.tree.children()
    if not isinstance(pulled, (tuple, list)) or len(pulled) != len(arguments):
        raise _wrong_structure(fun, bwd, pulled, split)
    out: list[Any] = []
    for i, (ct, tree) in enumerate(zip(pulled, arguments, strict=True)):
        if ct is None:
            out += [None] * tree.num_leaves
            continue
        leaves, got = tree_util.tree_flatten(ct)
        if got != tree:
            spread = _spread(ct, tree)
            if spread is None:
                name = _parameters(fun, split)[i]
                lines = differences(got, tree, f"output[{i}]", f"the argument {name}", name)
                raise _wrong_structure(fun, bwd, pulled, split, f", at output[{i}], argument {name}:{lines}")
            leaves = spread
        out += leaves
    for i, x in enumerate(out):
        if isinstance(x, SymbolicZero):
            _check_zero(x, split.types[i], _place(split.tree, i))
            out[i] = None
    return out


def _check_zero(zero: SymbolicZero, primal: Any, place: str) -> None:
    """Errors unless a symbolic zero is a cotangent of an argument."""
    if (zero.shape, zero.dtype) != (primal.shape, primal.to_tangent_aval().dtype):
        raise ValueError(
            "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does not match the corresponding "
            f"input tangent shape/dtype:{place} the SymbolicZero had shape/dtype {zero.aval.str_short()} while the "
            f"corresponding input had shape/dtype {primal.str_short()}. Consider just returning a None here instead of "
            "a SymbolicZero object."
        )


def _spread(ct: Any, tree: Any) -> list[Any] | None:
    """Leaves of a cotangent whose own leaves stand for whole subtrees; `None` when it is no prefix of the structure."""
    given, structure = tree_util.tree_flatten(ct, is_leaf=lambda x: x is None)
    try:
        places = structure.flatten_up_to(tree.unflatten(range(tree.num_leaves)))
    except ValueError:
        return None
    return [x for x, place in zip(given, places, strict=True) for _ in tree_util.tree_leaves(place)]


def _wrong_structure(fun: Any, bwd: Any, pulled: Any, split: _Split, place: str = ".") -> TypeError:
    return TypeError(
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple of "
        "the primal function, and in particular must produce a tuple of length equal to the number of arguments to the "
        f"primal function, but got bwd output structure {short(tree_util.tree_structure(pulled))} for primal input "
        f"structure {short(split.tree)}. The bwd rule is {_name(bwd)}, for function {_name(fun)}: it must give a tuple "
        f"of length {len(split.tree.children())}{place}"
    )


def custom_gradient(fun: Callable[P, Any]) -> Callable[P, Any]:
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

    def value(*args: Any) -> Any:
        return fun(*args)[0]  # type: ignore[call-arg]

    wrapped: custom_vjp[P, Any] = custom_vjp(cast(Any, functools.update_wrapper(value, fun)))

    def fwd(*args: Any) -> Any:
        out, pullback = fun(*args)  # type: ignore[call-arg]
        converted, consts = closure_convert(pullback, out)
        count = len(args)

        def pull(consts: list[Any], ct: Any) -> tuple[Any, ...]:
            pulled = converted(ct, *consts)
            return pulled if isinstance(pulled, tuple) and len(pulled) == count else (pulled,)

        return out, tree_util.Partial(pull, consts)  # each call has a pullback of its own

    def bwd(pull: Callable[[Any], tuple[Any, ...]], ct: Any) -> tuple[Any, ...]:
        return pull(ct)

    bwd.__name__ = f"of {_name(fun)}'s pullback"
    wrapped.defvjp(fwd, bwd)
    return wrapped


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Calls a linear function whose transpose is given.

    Derivatives in both modes are taken of `linear_args` alone; transposing twice gives the function back.

    Args:
      fun: function `(residual_args, linear_args) -> result`, linear in the second.
      fun_transpose: function `(residual_args, cotangent) -> cotangent of linear_args`, which is traced when it is first
        needed.
      residual_args: pytree of known values.
      linear_args: pytree of values that `fun` is linear in.

    Returns:
      `fun(residual_args, linear_args)`.

    Raises:
      NotImplementedError: a derivative with respect to `residual_args`.
      TypeError: the transpose gives a tree of another structure than `linear_args`.

    >>> import ferrax as jax
    >>> f = lambda x: jax.custom_derivatives.linear_call(lambda r, x: r * x, lambda r, t: 7 * r * t, 3.0, x)
    >>> print(f(2.0), jax.grad(f)(2.0))
    6.0 21.0
    """
    from ferrax._linear_call import linear_call

    return linear_call(fun, fun_transpose, residual_args, linear_args)


custom_jvp_call_p = _built_in("custom_jvp_call")
custom_vjp_call_p = _built_in("custom_vjp_call")
# no program has it: what custom rules keep is the core's
remat_opt_p = _built_in("remat_opt")

_expose(globals())
