"""Functions of values some of which are known: what can be computed is, the rest becomes a program.

Read next: `ferrax/extend/core/_programs.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._ferrax import DynamicJaxprTracer as DynamicJaxprTracer, Jaxpr, JaxprEqn, Literal
from ferrax._lazy import lend as _lend
from ferrax._primitives import built_in
from ferrax._refs import AbstractRef
from ferrax._src._unprovided import lacking as _lacking, unprovided_names as _unprovided_names
from ferrax.extend.core._hosted import Tracer as _Tracer
from ferrax.interpreters._dce_rules import closed as _closed, dce_cond, dce_custom_jvp, dce_custom_vjp, dce_scan

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "dce_jaxpr",
    "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule",
    "dce_jaxpr_consts",
    "dce_rules",
    "trace_to_jaxpr",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]


class PartialVal(tuple[Any, Any]):
    """A value that is known, or the type of one that is not: `(None, value)` or `(type, None)`.

    Args:
      xs: the pair.

    >>> import ferrax as jax
    >>> PartialVal = jax.interpreters.partial_eval.PartialVal
    >>> PartialVal.known(3).is_known(), PartialVal.unknown(jax.typeof(3)).is_known()
    (True, False)
    """

    def __new__(cls, xs: tuple[Any, Any]) -> PartialVal:
        return tuple.__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return PartialVal((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """A value of which only the type is known."""
        return PartialVal((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value; None where it is not known."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> Any:
        """The type of the value."""
        return _ferrax.typeof(self[1]) if self[0] is None else self[0]


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Traces a function of values some of which are known.

    Args:
      fun: function of flat values, wrapped by `ferrax.extend.linear_util.wrap_init`, that returns a sequence.
      pvals: its arguments.
      instantiate: whether results that are known become results of the program too; one for all, or one each.

    Returns:
      `(jaxpr, results, consts)`: a program of the unknown arguments for the unknown results, all results as
      `PartialVal`, and the program's constants.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> pe = jax.interpreters.partial_eval
    >>> f = lu.wrap_init(lambda x, y: [x + 1, x * y])
    >>> args = [pe.PartialVal.known(2), pe.PartialVal.unknown(jax.typeof(1))]
    >>> _, (first, second), _ = pe.trace_to_jaxpr_nounits(f, args)
    >>> print(first.get_known(), second.get_aval())
    3 ~int32[]
    """
    unknown = [p.get_aval() for p in pvals if not p.is_known()]

    def call(*values: Any) -> Any:
        rest = iter(values)
        return list(fun.call_wrapped(*[p.get_known() if p.is_known() else next(rest) for p in pvals]))

    closed = _ferrax.trace_to_jaxpr(call, tuple(unknown), None, "jit")
    jaxpr, consts = closed.jaxpr, closed.consts
    known = _known_values(jaxpr, consts)
    wanted = [instantiate] * len(jaxpr.outvars) if isinstance(instantiate, bool) else list(instantiate)
    results, rest = [], []
    for v, aval, force in zip(jaxpr.outvars, jaxpr.out_avals, wanted, strict=True):
        value = _read(known, v)
        if value is _UNKNOWN or force:
            rest.append(v)
            results.append(PartialVal.unknown(aval))
        else:
            results.append(PartialVal.known(value))
    return jaxpr.replace(outvars=rest), results, consts


_UNKNOWN = object()

DynamicJaxprTracer.__doc__ = """A value in a program being recorded (`jit`, `make_jaxpr`, control flow).

>>> import ferrax as jax
>>> _ = jax.make_jaxpr(lambda x: print(isinstance(x, jax.interpreters.partial_eval.DynamicJaxprTracer)) or x)(1.0)
True
"""


@_lacking("is_known parents pval recipe", "programs are traced and split by the core")
class JaxprTracer(_Tracer):
    """A value of which parts are known, as a class that JAX's tracers belong to: the core's has no objects of it.

    Args:
      trace: the transformation.
      pval: what is known of the value.
      recipe: what computes it.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> issubclass(jax.interpreters.partial_eval.JaxprTracer, jax.core.Tracer)
    True
    """

    def __init__(self, trace: Any, pval: PartialVal, recipe: Any):
        raise NotImplementedError(
            "ferrax.interpreters.partial_eval.JaxprTracer: programs are traced and split by the core"
        )


def _read(known: dict[Any, Any], v: Any) -> Any:
    return _ferrax.asarray(v.val) if isinstance(v, Literal) else known.get(v, _UNKNOWN)


def _known_values(jaxpr: Jaxpr, consts: Sequence[Any]) -> dict[Any, Any]:
    """The values of the variables that depend on constants alone."""
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    for eqn in jaxpr.eqns:
        args = [_read(known, v) for v in eqn.invars]
        if eqn.effects or any(a is _UNKNOWN for a in args):
            continue
        outs = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
        listed = outs if eqn.primitive.multiple_results else [outs]
        known.update(zip(eqn.outvars, listed, strict=True))
    return known


def trace_to_jaxpr_dynamic(
    fun: Any,
    in_avals: Sequence[Any],
    *,
    keep_inputs: list[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Any, list[Any], list[Any]]:
    """Traces a function of flat values.

    Args:
      fun: function wrapped by `ferrax.extend.linear_util.wrap_init` that returns a sequence.
      in_avals: types of its arguments; those of references are `AbstractRef`.
      keep_inputs: not supported.
      lower: accepted for compatibility.
      auto_dce: accepted for compatibility.

    Returns:
      `(jaxpr, types of the results, constants)`.

    Raises:
      NotImplementedError: some inputs are not to be kept.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> jax.interpreters.partial_eval.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [2 * x]), [jax.typeof(1.0)])[0]
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    if keep_inputs is not None and not all(keep_inputs):
        raise NotImplementedError("the keep_inputs argument of trace_to_jaxpr_dynamic is not implemented")
    if any(isinstance(aval, AbstractRef) for aval in in_avals):
        from ferrax._ref_programs import program_of

        program = program_of(lambda *args: list(fun.call_wrapped(*args)), in_avals)
        return program.jaxpr, list(program.out_avals), list(program.consts)
    closed = _ferrax.trace_to_jaxpr(lambda *args: list(fun.call_wrapped(*args)), tuple(in_avals), None, "jit")
    return closed.jaxpr, list(closed.out_avals), list(closed.consts)


def trace_to_jaxpr(
    fun: Callable[..., Any],
    in_avals: Any,
    debug_info: Any,
    *context_for_cache_key: Any,
    fun_takes_flat_tree_arg: bool = False,
    fun_returns_flat_tree: bool = False,
    requires_low: bool = False,
) -> tuple[Any, Any]:
    """Traces a function of trees.

    Args:
      fun: the function.
      in_avals: the `FlatTree` of its arguments and keyword arguments: types; those of references are `AbstractRef`.
      debug_info: accepted for compatibility: programs name the function that they are of.
      *context_for_cache_key: accepted for compatibility.
      fun_takes_flat_tree_arg: whether the function takes the `FlatTree` of each argument in its place.
      fun_returns_flat_tree: whether it returns a `FlatTree`.
      requires_low: accepted for compatibility.

    Returns:
      `(closed program, FlatTree of the results' types)`.

    >>> import ferrax as jax
    >>> from ferrax._src.tree_util import FlatTree
    >>> args = FlatTree.flatten_args({"a": jax.typeof(1.0)})
    >>> program, out = jax.interpreters.partial_eval.trace_to_jaxpr(lambda tree: [2 * tree["a"]], args, None)
    >>> print(program, out.unflatten())
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) } [ShapedArray(float32[], weak_type=True)]
    """
    from ferrax._src._flat_tree import FlatTree

    found: list[Any] = []

    def flat(*values: Any) -> Any:
        given = in_avals.update(values)
        if fun_takes_flat_tree_arg:
            results = fun(*given.unpack()[0].unpack())
        else:
            args, kwargs = given.unflatten()
            results = fun(*args, **kwargs)
        tree = results if fun_returns_flat_tree else FlatTree.flatten(results)
        found.append(tree)
        return list(tree)

    flat = functools.update_wrapper(flat, fun, assigned=("__name__", "__qualname__"), updated=())
    types = list(in_avals)
    if any(isinstance(aval, AbstractRef) for aval in types):
        from ferrax._ref_programs import program_of

        program = program_of(flat, types)
    else:
        program = _ferrax.trace_to_jaxpr(flat, tuple(types), None, "jit", fun)
    return program, found[-1].update(program.out_avals)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """A program without what some of its results do not need.

    Args:
      jaxpr: the program.
      used_outputs: which results are wanted; one for all, or one each.
      instantiate: which arguments stay though nothing needs them; one for all, or one each.

    Returns:
      `(jaxpr, which arguments it takes)`.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 1).jaxpr
    >>> jax.interpreters.partial_eval.dce_jaxpr(program, [True, False])
    ({ lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }, [True, False])
    """
    wanted = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else list(used_outputs)
    outvars = [v for v, on in zip(jaxpr.outvars, wanted, strict=True) if on]
    needed = {v for v in outvars if not isinstance(v, Literal)}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        rule = dce_rules.get(eqn.primitive, _whole)
        _, kept = rule([v in needed for v in eqn.outvars], eqn)
        if kept is not None:
            eqns.append(kept)
            needed.update(v for v in kept.invars if not isinstance(v, Literal))
    forced = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    used = [v in needed or force for v, force in zip(jaxpr.invars, forced, strict=True)]
    invars = [v for v, on in zip(jaxpr.invars, used, strict=True) if on]
    return Jaxpr(jaxpr.constvars, invars, outvars, eqns[::-1]), used


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, which takes out constants, too.

    Args:
      jaxpr: the program.
      used_outputs: which results are wanted; one for all, or one each.
      instantiate: which constants and arguments stay though nothing needs them; one for all, or one each.

    Returns:
      `(jaxpr, which constants it has, which arguments it takes)`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> a, b = jnp.ones(2), jnp.zeros(3)
    >>> program = jax.make_jaxpr(lambda x: (x + a, x + b))(1.0)
    >>> less, consts, used = jax.interpreters.partial_eval.dce_jaxpr_consts(program.jaxpr, [True, False])
    >>> len(program.jaxpr.constvars), len(less.constvars), used
    (2, 1, [True])
    """
    count = len(jaxpr.constvars)
    forced = [instantiate] * (count + len(jaxpr.invars)) if isinstance(instantiate, bool) else list(instantiate)
    less, used = dce_jaxpr(jaxpr, used_outputs, forced[count:])
    read = {v for eqn in less.eqns for v in eqn.invars if not isinstance(v, Literal)}
    read.update(v for v in less.outvars if not isinstance(v, Literal))
    consts = [v in read or force for v, force in zip(less.constvars, forced)]
    constvars = [v for v, on in zip(less.constvars, consts, strict=True) if on]
    return Jaxpr(constvars, less.invars, less.outvars, less.eqns), consts, used


def _whole(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """An equation that stays as it is where it has effects, or a result of it is wanted."""
    if not (eqn.effects or any(used_outputs)):
        return [False] * len(eqn.invars), None
    return [True] * len(eqn.invars), eqn


def _dce_call(
    key: str, has_consts: bool, used_outputs: list[bool], eqn: JaxprEqn
) -> tuple[list[bool], JaxprEqn | None]:
    from ferrax.extend.core import new_jaxpr_eqn

    if not (eqn.effects or any(used_outputs)):
        return [False] * len(eqn.invars), None
    program = eqn.params[key]
    inner, used = dce_jaxpr(program.jaxpr if has_consts else program, used_outputs)
    if not (any(used) or any(used_outputs) or inner.effects):
        return used, None
    less = _closed(inner, program.consts) if has_consts else inner
    invars = [v for v, on in zip(eqn.invars, used, strict=True) if on]
    outvars = [v for v, on in zip(eqn.outvars, used_outputs, strict=True) if on]
    return used, new_jaxpr_eqn(invars, outvars, eqn.primitive, {**eqn.params, key: less}, inner.effects)


def dce_closed_call(key: str, used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """As `dce_jaxpr_closed_call_rule`, of a primitive whose program is the parameter `key`."""
    return _dce_call(key, True, list(used_outputs), eqn)


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """An equation with a program, the parameter `call_jaxpr`, without what some of its results do not need.

    Args:
      used_outputs: which results are wanted.
      eqn: the equation.

    Returns:
      Which operands stay, and the equation; None where nothing of it stays.

    >>> import ferrax as jax
    >>> both_p = jax.extend.core.Primitive("both")
    >>> both_p.multiple_results = True
    >>> _ = both_p.def_abstract_eval(lambda *avals, call_jaxpr: [v.aval for v in call_jaxpr.outvars])
    >>> inner = jax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 1).jaxpr
    >>> (eqn,) = jax.make_jaxpr(lambda x, y: both_p.bind(x, y, call_jaxpr=inner))(1, 1).eqns
    >>> used, less = jax.interpreters.partial_eval.dce_jaxpr_call_rule([True, False], eqn)
    >>> used, len(less.params["call_jaxpr"].eqns)
    ([True, False], 1)
    """
    return _dce_call("call_jaxpr", False, list(used_outputs), eqn)


def _dce_remat(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    return _dce_call("jaxpr", not isinstance(eqn.params["jaxpr"], Jaxpr), list(used_outputs), eqn)


def dce_jaxpr_closed_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """As `dce_jaxpr_call_rule`, of a program with its constants.

    Args:
      used_outputs: which results are wanted.
      eqn: the equation, whose parameter `call_jaxpr` is a `ClosedJaxpr`.

    Returns:
      Which operands stay, and the equation; None where nothing of it stays.

    >>> import ferrax as jax
    >>> both_p = jax.extend.core.Primitive("both")
    >>> both_p.multiple_results = True
    >>> _ = both_p.def_abstract_eval(lambda *avals, call_jaxpr: call_jaxpr.out_avals)
    >>> inner = jax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1, 1)
    >>> (eqn,) = jax.make_jaxpr(lambda x, y: both_p.bind(x, y, call_jaxpr=inner))(1, 1).eqns
    >>> jax.interpreters.partial_eval.dce_jaxpr_closed_call_rule([False, False], eqn)
    ([False, False], None)
    """
    return dce_closed_call("call_jaxpr", used_outputs, eqn)


#: How `dce_jaxpr` takes out of an equation what is not wanted, by primitive: functions `(which results are wanted,
#: equation) -> (which operands stay, equation or None)`. Others stay whole or not at all.
dce_rules: dict[Any, Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]] = {
    built_in("closed_call"): dce_jaxpr_closed_call_rule,
    built_in("cond"): dce_cond,
    built_in("custom_jvp_call"): dce_custom_jvp,
    built_in("custom_vjp_call"): dce_custom_vjp,
    built_in("jit"): functools.partial(dce_closed_call, "jaxpr"),
    built_in("remat2"): _dce_remat,
    built_in("scan"): dce_scan,
}
# what JAX's module has besides
__getattr__ = _unprovided_names(
    __name__,
    "custom_partial_eval_rules partial_eval_jaxpr_custom_rules",
    "programs are traced and split by the core",
    _lend(__name__, {"typing": "Val=Any"}),
)
_expose(globals())
