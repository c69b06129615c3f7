"""Taylor-mode differentiation: derivatives of any order along a curve in one pass, without nesting `jvp`.

A function is traced, and its program is run on truncated Taylor series. Read next: `_jet_rules.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import lax, numpy as jnp, tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import typeof
from ferrax._evaluate import traced
from ferrax._lazy import lend as _lend
from ferrax.core import Trace, Tracer
from ferrax.experimental._jet_rules import Jet, OwnRule, jet_rules, run
from ferrax.experimental._series import factorial, from_derivative
from ferrax.extend.core import TraceTag, set_current_trace
from ferrax.extend.linear_util import transformation2, transformation_with_aux2

__all__ = [
    "JetTrace",
    "JetTracer",
    "ZeroSeries",
    "ZeroTerm",
    "call_param_updaters",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet2",
    "jet_fun",
    "jet_rules",
    "jet_subtrace",
    "linear_prop",
    "traceable",
    "zero_prop",
    "zero_series",
    "zero_term",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax._src.util": "safe_zip unzip2 weakref_lru_cache",
        "ferrax.tree_util": "register_pytree_node tree_flatten tree_structure tree_unflatten treedef_is_leaf",
    },
)


class ZeroTerm:
    """Stands for a term of a series that is zero.

    >>> from ferrax.experimental.jet import ZeroTerm, zero_term
    >>> isinstance(zero_term, ZeroTerm)
    True
    """

    def __repr__(self) -> str:
        return "zero_term"


class ZeroSeries:
    """Stands for a series of zeros.

    >>> from ferrax.experimental.jet import ZeroSeries, zero_series
    >>> isinstance(zero_series, ZeroSeries)
    True
    """

    def __repr__(self) -> str:
        return "zero_series"


#: A term that is zero, and the series of an argument that does not move.
zero_term = ZeroTerm()
zero_series = ZeroSeries()
tree_util.register_pytree_node(ZeroTerm, lambda _: ((), None), lambda _, __: zero_term)
tree_util.register_pytree_node(ZeroSeries, lambda _: ((), None), lambda _, __: zero_series)


def fact(n: Any) -> Any:
    """n! as a float.

    Args:
      n: array of numbers that are not negative.

    Returns:
      Array of a float dtype.

    >>> from ferrax.experimental.jet import fact
    >>> print(fact(4).round(3))
    24.0
    """
    return lax.exp(lax.lgamma(jnp.asarray(n) + 1.0))


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """The Taylor series of a function along a curve, from the curve's Taylor series.

    Args:
      fun: function of arrays that gives a pytree of arrays.
      primals: its arguments: where the curve is at first.
      series: for each argument a sequence of arrays like it: the curve's derivatives, from the first on, all sequences
        of one length; or `zero_series`.
      factorial_scaled: whether series are derivatives; otherwise coefficients, which are the k-th derivatives over k!.

    Returns:
      `(values, series)`: the function's value, and for each leaf of it the list of derivatives.

    Raises:
      ValueError: the sequences have several lengths, or an argument is not an array.
      NotImplementedError: the function uses an operation that has no derivative.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.jet import jet
    >>> value, (first, second) = jet(jnp.exp, (0.0,), ((1.0, 0.0),))
    >>> print(value, first, second)
    1.0 1.0 1.0
    """
    lengths = {len(terms) for terms in series if terms is not zero_series}
    if len(lengths) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    if len(primals) != len(series):
        raise ValueError(f"jet got {len(primals)} primals and {len(series)} series")
    order = lengths.pop() if lengths else 0
    leaf = tree_util.tree_structure(0)
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if tree_util.tree_structure(x) != leaf:
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(() if terms is zero_series else terms):
            if term is not zero_term and tree_util.tree_structure(term) != leaf:
                raise ValueError(f"term {j} for argument {i} is not an array")
    trees: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        leaves, tree = tree_util.tree_flatten(fun(*args))
        trees.append(tree)
        return leaves

    scales = [factorial(k) if factorial_scaled else 1.0 for k in range(1, order + 1)]
    firsts, rest = _propagated(flat, order, primals, series, scales)
    rest = [[_zero(v) for _ in scales] if terms is zero_series else terms for v, terms in zip(firsts, rest)]
    return trees[-1].unflatten(firsts), trees[-1].unflatten(rest)


def _propagated(
    fun: Callable[..., Any], order: int, primals: Sequence[Any], series: Sequence[Any], scales: Sequence[float]
) -> tuple[list[Any], list[Any]]:
    """The values and the series of a function of flat arrays; terms over `scales` are the coefficients."""
    values = [jnp.asarray(x) for x in primals]
    jets = []
    for x, terms in zip(values, series, strict=True):
        terms = [zero_term] * order if terms is zero_series else terms
        jets.append(Jet([x, *(_scaled(t, x, 1 / s) for t, s in zip(terms, scales, strict=True))]))
    program = traced(lambda *args: [jnp.asarray(x) for x in fun(*args)], [typeof(x) for x in values], "jet")
    outs = run(program, [*program.captured, *jets], order)
    firsts = [v.terms[0] if isinstance(v, Jet) else v for v in outs]
    rest = [
        [t if s == 1.0 else t * s for t, s in zip(v.terms[1:], scales, strict=True)]
        if isinstance(v, Jet)
        else zero_series
        for v in outs
    ]
    return firsts, rest


#: `jet` whose series are coefficients.
jet2 = functools.partial(jet, factorial_scaled=False)


@transformation2
def jet_fun(f: Callable[..., Any], order: int, primals: Sequence[Any], series: Sequence[Any]) -> tuple[Any, Any]:
    """Runs a function that `jet_subtrace` made, with zeros for the series of results that do not move.

    Args:
      f: the wrapped function.
      order: the length of series.
      primals: arrays.
      series: for each a sequence of coefficients, or `zero_series`.

    Returns:
      `(values, series)`: sequences of arrays, and of lists of coefficients.

    >>> from ferrax.experimental import jet
    >>> from ferrax.extend import linear_util as lu
    >>> f = jet.jet_fun(jet.jet_subtrace(lu.wrap_init(lambda x: [x * x])), 1)
    >>> values, series = f.call_wrapped([3.0], [[1.0]])
    >>> print(values[0], series[0][0])
    9.0 6.0
    """
    values, terms = f(TraceTag(), order, primals, series)
    return values, [[jnp.zeros_like(x)] * order if ts is zero_series else ts for x, ts in zip(values, terms)]


@transformation2
def jet_subtrace(
    f: Callable[..., Any], tag: Any, order: int, primals: Sequence[Any], series: Sequence[Any]
) -> tuple[Any, Any]:
    """Makes of a function of arrays one of arrays and their coefficients.

    Args:
      f: wrapped function of flat arrays that returns a sequence.
      tag: accepted for compatibility.
      order: the length of series.
      primals: arrays.
      series: for each a sequence of coefficients, or `zero_series`.

    Returns:
      `(values, series)`, as `jet_fun`, with `zero_series` for results that do not move.

    >>> from ferrax.experimental import jet
    >>> from ferrax.extend import linear_util as lu
    >>> values, series = jet.jet_subtrace(lu.wrap_init(lambda x: [x * x, 2.0])).call_wrapped(None, 1, [3.0], [[1.0]])
    >>> print(values[0], series[0][0], series[1])
    9.0 6.0 zero_series
    """
    values, terms = _propagated(f, order, primals, series, [1.0] * order)
    return tuple(values), tuple(terms)


@transformation_with_aux2
def traceable(f: Callable[..., Any], store: Any, in_tree_def: Any, *primals_and_series: Any) -> list[Any]:
    """Makes of a function of arrays and their series one of flat values; the second value gives the results' structure.

    Args:
      f: function wrapped by `linear_util.wrap_init`, of primals and series.
      store: given by the wrapper.
      in_tree_def: structure of `(primals, series)`.
      *primals_and_series: the leaves.

    Returns:
      The leaves of `(values, series)`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> from ferrax.extend import linear_util as lu
    >>> leaves, tree = jax.tree.flatten(([3.0], [[1.0]]))
    >>> f, out_tree = jet.traceable(jet.jet_fun(jet.jet_subtrace(lu.wrap_init(lambda x: [x * x])), 1), tree)
    >>> [print(x) for x in f.call_wrapped(*leaves)], out_tree()
    9.0
    6.0
    ([None, None], PyTreeDef(((*,), [[*]])))
    """
    primals, series = tree_util.tree_unflatten(in_tree_def, primals_and_series)
    leaves, tree = tree_util.tree_flatten(f(primals, series))
    store.store(tree)
    return leaves


# --- values with series, for libraries that run functions on them


class JetTracer(Tracer):
    """A value with its series, in a function that runs under a `JetTrace`. `jet` itself makes none.

    Args:
      trace: the trace that it belongs to.
      primal: the value.
      terms: the list of its coefficients, some of which may be `zero_term`; or `zero_series`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> with jax.extend.core.take_current_trace() as parent:
    ...     trace = jet.JetTrace(jax.extend.core.TraceTag(), parent, 2)
    ...     with jax.extend.core.set_current_trace(trace):
    ...         out = jet.JetTracer(trace, 3.0, [1.0, 0.0]) ** 2
    >>> print(out.primal, *out.terms)
    9.0 6.0 1.0
    """

    __slots__ = ("primal", "terms")

    def __init__(self, trace: Any, primal: Any, terms: Any):
        super().__init__(trace, typeof(primal))
        self.primal, self.terms = primal, terms

    def full_lower(self) -> Any:
        """The value alone where it does not move, else the tracer itself."""
        still = self.terms is zero_series or all(t is zero_term for t in self.terms)
        return self.primal if still else self


class JetTrace(Trace):
    """The run of a function on values with series; operations follow the rules of `jet_rules`.

    Args:
      tag: marks its values.
      parent_trace: the trace at work before.
      order: the length of series.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> with jax.extend.core.take_current_trace() as parent:
    ...     print(jet.JetTrace(jax.extend.core.TraceTag(), parent, 2).to_primal_terms_pair(1.0))
    (1.0, zero_series)
    """

    __slots__ = ("order", "parent_trace", "tag")

    def __init__(self, tag: Any, parent_trace: Any, order: int):
        super().__init__()
        self.tag, self.parent_trace, self.order = tag, parent_trace, order

    def to_primal_terms_pair(self, val: Any) -> tuple[Any, Any]:
        """A value and its series: `zero_series` of one that is not this trace's.

        Args:
          val: the value.

        Returns:
          `(value, series)`.
        """
        if isinstance(val, JetTracer) and val._trace.tag is self.tag:
            return val.primal, val.terms
        return val, zero_series

    def stage_value(self, val: Any) -> Any:
        """A value as one of this trace's, what it has of another one's too."""
        primal, terms = self.to_primal_terms_pair(val)
        stage = self.parent_trace.stage_value
        staged = terms if terms is zero_series else [t if t is zero_term else stage(t) for t in terms]
        return JetTracer(self, stage(primal), staged)

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        """Applies an operation, by its rule where an operand moves."""
        primals, series = zip(*map(self.to_primal_terms_pair, tracers)) if tracers else ((), ())
        with set_current_trace(self.parent_trace):
            if all(terms is zero_series for terms in series):
                out = primitive.bind(*primals, **primitive.get_bind_params(params))
                outs = list(out) if primitive.multiple_results else [out]
                rest: Any = [zero_series] * len(outs)
            else:
                rule = jet_rules.get(primitive, OwnRule(primitive))
                filled = [self._terms(x, terms) for x, terms in zip(primals, series)]
                outs, rest = rule(list(primals), filled, **params)
                if not primitive.multiple_results:
                    outs, rest = [outs], [rest]
                elif rest is zero_series:
                    rest = [zero_series] * len(outs)
        results = [JetTracer(self, x, terms) for x, terms in zip(outs, rest, strict=True)]
        return results if primitive.multiple_results else results[0]

    def _terms(self, x: Any, terms: Any) -> list[Any]:
        """The coefficients of an operand, all of them arrays."""
        terms = [zero_term] * self.order if terms is zero_series else terms
        return [_scaled(t, jnp.asarray(x), 1.0) for t in terms]

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: bool
    ) -> Any:
        """Applies the function of a `custom_jvp` itself, whose rules are not asked for."""
        with set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, *, out_trees: Any, symbolic_zeros: bool
    ) -> Any:
        """Applies the function of a `custom_vjp` itself, whose rules are not asked for."""
        with set_current_trace(self):
            return fun.call_wrapped(*tracers)


#: How parameters of operations that call a function change when it gets series, too: nobody asks.
call_param_updaters: dict[Any, Any] = {}


# --- rules of users, who give and get coefficients


def zero_prop(prim: Any, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """The rule of an operation that has no slope.

    Args:
      prim: the primitive.
      primals_in: its operands.
      series_in: their series, which do not matter.
      **params: its parameters.

    Returns:
      `(value, zero_series)`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> print(*jet.zero_prop(jax.lax.floor_p, [1.5], [[1.0]]))
    1.0 zero_series
    """
    return prim.bind(*primals_in, **params), zero_series


def linear_prop(prim: Any, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """The rule of an operation that is linear in its operands together.

    Args:
      prim: the primitive.
      primals_in: its operands.
      series_in: for each the list of its coefficients.
      **params: its parameters.

    Returns:
      `(value, series)`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> value, (first,) = jet.linear_prop(jax.lax.neg_p, [1.5], [[2.0]])
    >>> print(value, first)
    -1.5 -2.0
    """
    value = prim.bind(*primals_in, **params)
    terms = [prim.bind(*ts, **params) for ts in zip(*series_in, strict=True)]
    return value, [list(ts) for ts in zip(*terms, strict=True)] if prim.multiple_results else terms


def deriv_prop(
    prim: Any, deriv: Callable[[Any], Any], primals_in: Sequence[Any], series_in: Sequence[Any]
) -> tuple[Any, Any]:
    """The rule of an elementwise operation of one operand by its derivative: v' = u' g(u).

    Args:
      prim: the primitive.
      deriv: the function g.
      primals_in: the one operand.
      series_in: the list of its coefficients, in a sequence.

    Returns:
      `(value, series)`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import jet
    >>> value, (first,) = jet.deriv_prop(jax.lax.sin_p, jnp.cos, [0.0], [[2.0]])
    >>> print(value, first)
    0.0 2.0
    """
    (x,), (terms,) = primals_in, series_in
    value = prim.bind(x)
    slope, slopes = jet2(deriv, primals_in, series_in)
    return value, from_derivative([x, *terms], value, [slope, *slopes])[1:]


def defzero(prim: Any) -> None:
    """Says that an operation has no slope.

    Args:
      prim: the primitive.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> steps_p = jax.extend.core.Primitive("steps")
    >>> jet.defzero(steps_p)
    >>> steps_p in jet.jet_rules
    True
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def deflinear(prim: Any) -> None:
    """Says that an operation is linear in its operands together.

    Args:
      prim: the primitive.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> halves_p = jax.extend.core.Primitive("halves")
    >>> jet.deflinear(halves_p)
    >>> halves_p in jet.jet_rules
    True
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def def_deriv(prim: Any, deriv: Callable[[Any], Any]) -> None:
    """Gives the derivative of an elementwise operation of one operand.

    Args:
      prim: the primitive, without parameters.
      deriv: function of the operand.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import jet
    >>> wave_p = jax.extend.core.Primitive("wave")
    >>> jet.def_deriv(wave_p, jnp.cos)
    >>> wave_p in jet.jet_rules
    True
    """
    jet_rules[prim] = functools.partial(deriv_prop, prim, deriv)


def def_comp(prim: Any, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Gives an operation as a function of others.

    Args:
      prim: the primitive, without parameters.
      comp: function of the operands.
      **kwargs: arguments of `jet`.

    >>> import ferrax as jax
    >>> from ferrax.experimental import jet
    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> jet.def_comp(cube_p, lambda x: x**3)
    >>> cube_p in jet.jet_rules
    True
    """
    jet_rules[prim] = functools.partial(jet2, comp, **kwargs)


def _scaled(term: Any, like: Any, by: float) -> Any:
    """A term of an argument's series as a coefficient, in the argument's shape and dtype."""
    term = jnp.zeros_like(like) if term is zero_term or (isinstance(term, float) and term == 0.0) else jnp.asarray(term)
    if term.shape != like.shape:
        raise ValueError(f"jet terms must have their argument's shape {like.shape}, got {term.shape}")
    term = term.astype(like.dtype) if term.dtype != like.dtype else term
    return term if by == 1.0 else term * by


def _zero(x: Any) -> Any:
    """The slope of a result that has none."""
    return jnp.zeros(x.shape, x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.result_type(float))


_expose(globals())
