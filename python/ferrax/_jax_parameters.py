"""Binding primitives with JAX's parameters where ferrax's operations have others, or where a function is the operation.

Read next: `_primitives.py`, which asks here.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, jit, jvp as derivative, lax
from ferrax._core import Array
from ferrax._devices import device_put
from ferrax._named_functions import name_function, named_function
from ferrax._parameters import own
from ferrax._precisions import DotAlgorithmPreset
from ferrax._primitives import Zero
from ferrax.core import eval_jaxpr
from ferrax.extend.core import jaxpr_as_fun
from ferrax.extend.linear_util import wrap_init

__all__ = ["TRANSLATED", "functions_of", "with_subfuns"]

_Bind = Callable[..., Any]


def _approx_top_k(bind: _Bind, operand: Any, *, is_max_k: bool, **params: Any) -> list[Array]:
    return (lax.approx_max_k if is_max_k else lax.approx_min_k)(operand, **params)


def _call(bind: _Bind, *args: Any, subfuns: Sequence[Any] = (), call_jaxpr: Any = None, **params: Any) -> list[Any]:
    """A call of a function, which is what the function does: programs have its operations in the place of the call."""
    if subfuns:
        (fun,) = subfuns
        return list(fun.call_wrapped(*args))
    jaxpr = getattr(call_jaxpr, "jaxpr", call_jaxpr)
    return list(eval_jaxpr(jaxpr, getattr(call_jaxpr, "consts", ()), *args))


def _conj(bind: _Bind, x: Any, **params: Any) -> Array:
    return bind(x, **params) if params else lax.conj(x)


def _sharding_constraint(bind: _Bind, x: Any, *, sharding: Any, **_: Any) -> Array:
    """A placement, whose parameters are a sharding and what follows from it."""
    return lax.with_sharding_constraint(x, sharding) if _ferrax.is_eager() else _placed(x, sharding)


def _placed(x: Any, sharding: Any) -> Any:
    from ferrax.sharding._placement import place

    return _ferrax.sharding_constraint(x if isinstance(x, Array) else _ferrax.asarray(x), place(sharding))


def with_subfuns(call_jaxpr: Any, jvp: Any, **params: Any) -> dict[str, Any]:
    """Parameters of a call with a derivative of its own as JAX binds them: the function and its rule as `subfuns`.

    Args:
      call_jaxpr: the function's program.
      jvp: the rule, as the core shows it.
      **params: the core's other parameters.
    """
    rule = named_function(str(jvp))
    if rule is None:  # a program that was read, or one of Rust
        return {**params, "jvp": jvp, "call_jaxpr": call_jaxpr}
    subfuns = wrap_init(jaxpr_as_fun(call_jaxpr)), wrap_init(lambda *values: rule(list(values), []))
    return {**params, "jvp": jvp, "subfuns": subfuns}


def _custom_jvp_call(bind: _Bind, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> list[Any]:
    if not subfuns:
        return list(bind(*args, **params))
    if "jvp" not in params:
        fun, jvp = subfuns
        return _with_rule(fun, jvp, args, params["symbolic_zeros"])
    rule = named_function(str(params["jvp"]))
    count = len(args) - rule.arity  # of constants, which the rule has itself
    fun = functools.partial(subfuns[0].call_wrapped, *args[:count])
    return list(
        _ferrax.bind_custom_jvp(
            str(params["name"]), fun, rule, rule.complaints, params["symbolic_zeros"], list(args[count:])
        )
    )


def _with_rule(fun: Any, jvp: Any, args: Sequence[Any], symbolic_zeros: bool) -> list[Any]:
    """A function with a rule of flat primals and tangents, applied."""
    from ferrax.custom_derivatives import as_tangent, symbolic

    def rule(both: Sequence[Any], zero: list[bool]) -> list[Any]:
        n = len(both) // 2
        return [as_tangent(x) for x in jvp.call_wrapped(*both[:n], *symbolic(both[n:], zero))]

    def wrong(i: int, got: str, wanted: str, *primal: str) -> TypeError:
        return TypeError(f"the rule of a custom_jvp_call gave {got} for result {i}, expected {wanted}")

    name_function(rule, "jvp", complaints=(wrong, wrong), arity=len(args))
    call = functools.partial(_listed, fun)
    return list(_ferrax.bind_custom_jvp("fun", call, rule, (wrong, wrong), symbolic_zeros, list(args)))


def _listed(fun: Any, *args: Any) -> list[Any]:
    return list(fun.call_wrapped(*args))


def functions_of(equation: Any) -> list[Any]:
    """The function of an operation with derivatives of its own, and its rules, as JAX hands them to a trace.

    Args:
      equation: the operation, with its parameters.

    Returns:
      The function; of a `custom_jvp_call` a rule of primals and tangents that gives results and their tangents, of a
      `custom_vjp_call` one of operands, each followed by whether it is differentiated, that gives residuals and
      results, and one of residuals and cotangents.
    """
    params, count = own(equation.params), len(equation.invars)
    fun = jaxpr_as_fun(params["call_jaxpr"])
    jvp, fwd, bwd = (named_function(str(params.get(key))) for key in ("jvp", "fwd", "bwd"))
    if equation.primitive.name == "custom_vjp_call":
        skipped = 0 if fwd is None else count - fwd.arity  # constants, which rules have themselves

        def forward(*pairs: Any) -> list[Any]:
            outs, residuals = fwd(list(pairs[1 + 2 * skipped :: 2]), *pairs[2 * skipped :: 2])
            return [*residuals, *outs]

        def backward(*values: Any) -> list[Any]:
            n = len(values) - len(params["call_jaxpr"].out_avals)
            return [Zero(v.aval) for v in equation.invars[:skipped]] + bwd(list(values[:n]), list(values[n:]), [])

        return [wrap_init(f) for f in (fun, forward, backward)]

    def rule(*both: Any) -> list[Any]:
        primals, tangents = both[:count], both[count:]
        if jvp is None:  # a program that was read, or one of Rust
            outs, dots = derivative(equation.apply, primals, tangents)
            return [*outs, *dots]
        first = count - jvp.arity
        return list(jvp([*primals[first:], *tangents[first:]], []))

    return [wrap_init(fun), wrap_init(rule)]


def _device_put(
    bind: _Bind, *xs: Any, devices: Sequence[Any], srcs: Sequence[Any], copy_semantics: Sequence[Any], **rest: Any
) -> list[Array]:
    return [device_put(x, device) for x, device in zip(xs, devices, strict=True)]


def _dot_general(bind: _Bind, x: Any, y: Any, *, precision: Any = None, **params: Any) -> Array:
    named = precision.name if isinstance(precision, DotAlgorithmPreset) else precision
    return bind(x, y, precision=named, **params)


def _fft(bind: _Bind, x: Any, *, fft_type: Any, fft_lengths: Sequence[int]) -> Array:
    kind = fft_type.value if isinstance(fft_type, enum.Enum) else fft_type
    return bind(x, fft_type=kind, fft_lengths=tuple(fft_lengths))


def _jit(
    bind: _Bind,
    *args: Any,
    jaxpr: Any,
    name: str,
    inline: bool = False,
    donated_invars: Sequence[bool] = (),
    in_shardings: Sequence[Any] = (),
    out_shardings: Sequence[Any] = (),
    compiler_options_kvs: Sequence[tuple[str, Any]] = (),
    **layouts_and_meshes: Any,
) -> list[Any]:
    """A call of a program; one that places its values or takes its operands' memory is a jitted function's."""
    from ferrax.sharding._jit import UNSPECIFIED

    donated = [i for i, gives in enumerate(donated_invars) if gives]
    placed = any(s is not UNSPECIFIED for s in (*in_shardings, *out_shardings))
    layouts = (*layouts_and_meshes.get("in_layouts", ()), *layouts_and_meshes.get("out_layouts", ()))
    if any(layout is not None for layout in layouts):
        raise NotImplementedError("jit in a program with layouts: arrays lie row by row")
    if not donated and not placed and not compiler_options_kvs:
        return list(bind(*args, name=name, jaxpr=jaxpr, inline=inline))

    def call(*values: Any) -> list[Any]:
        return list(jaxpr_as_fun(jaxpr)(*values))

    call.__name__ = name
    options: dict[str, Any] = {"compiler_options": dict(compiler_options_kvs)} if compiler_options_kvs else {}
    if placed:
        options |= {"in_shardings": tuple(in_shardings), "out_shardings": list(out_shardings)}
    return list(jit(call, donate_argnums=donated, inline=inline, **options)(*args))


def _mul(bind: _Bind, x: Any, y: Any, *, out_dtype: Any = None) -> Array:
    return bind(x, y) if out_dtype is None else lax.mul(x, y, out_dtype=out_dtype)


#: By the primitive's name: a function of what binds it with ferrax's parameters, the operands and JAX's parameters.
TRANSLATED: dict[str, Callable[..., Any]] = {
    "approx_top_k": _approx_top_k,
    "call": _call,
    "closed_call": _call,
    "conj": _conj,
    "custom_jvp_call": _custom_jvp_call,
    "device_put": _device_put,
    "dot_general": _dot_general,
    "fft": _fft,
    "jit": _jit,
    "mul": _mul,
    "sharding_constraint": _sharding_constraint,
}
