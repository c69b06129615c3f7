"""Binding primitives with JAX's parameters where ferrax's operations have others, or where a function is the operation.

Read next: `_primitives.py`, which asks here.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, lax
from ferrax._core import Array
from ferrax._devices import device_put
from ferrax._named_functions import named_function
from ferrax.core import eval_jaxpr
from ferrax.extend.core import jaxpr_as_fun
from ferrax.extend.linear_util import wrap_init

__all__ = ["TRANSLATED", "with_subfuns"]

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


def with_subfuns(*, call_jaxpr: Any, jvp: Any, **params: Any) -> dict[str, Any]:
    """Parameters of a call with a derivative of its own as JAX binds them: the function and its rule as `subfuns`."""
    rule = named_function(str(jvp))
    if rule is None:  # a program that was read, or one of Rust
        return {**params, "jvp": jvp, "call_jaxpr": call_jaxpr}
    subfuns = wrap_init(jaxpr_as_fun(call_jaxpr)), wrap_init(lambda *values: rule(list(values), []))
    return {**params, "jvp": jvp, "subfuns": subfuns}


def _custom_jvp_call(bind: _Bind, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> list[Any]:
    if not subfuns:
        return list(bind(*args, **params))
    rule = named_function(str(params["jvp"]))
    count = len(args) - rule.arity  # of constants, which the rule has itself
    fun = functools.partial(subfuns[0].call_wrapped, *args[:count])
    return list(
        _ferrax.bind_custom_jvp(
            str(params["name"]), fun, rule, rule.complaints, params["symbolic_zeros"], list(args[count:])
        )
    )


def _device_put(
    bind: _Bind, *xs: Any, devices: Sequence[Any], srcs: Sequence[Any], copy_semantics: Sequence[Any], **rest: Any
) -> list[Array]:
    return [device_put(x, device) for x, device in zip(xs, devices, strict=True)]


def _fft(bind: _Bind, x: Any, *, fft_type: Any, fft_lengths: Sequence[int]) -> Array:
    kind = fft_type.value if isinstance(fft_type, enum.Enum) else fft_type
    return bind(x, fft_type=kind, fft_lengths=tuple(fft_lengths))


#: By the primitive's name: a function of what binds it with ferrax's parameters, the operands and JAX's parameters.
TRANSLATED: dict[str, Callable[..., Any]] = {
    "approx_top_k": _approx_top_k,
    "call": _call,
    "closed_call": _call,
    "conj": _conj,
    "custom_jvp_call": _custom_jvp_call,
    "device_put": _device_put,
    "fft": _fft,
}
