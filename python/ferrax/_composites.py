"""Primitives that are functions of other operations: each rule is what the transformation makes of the function.

They are equations of their own in programs until they are compiled, differentiated or mapped, and can be bound with
JAX's parameters. Where an operation is linear in an operand, its tangent is the operation again. Read next:
`_primitives.py`, whose tables get the rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._core import ShapedArray
from ferrax._primitives import (
    Lowering,
    Primitive,
    UndefinedPrimal,
    Zero,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_lowerings,
    primitive_transposes,
)
from ferrax.dtypes import issubdtype

__all__ = ["Composite", "closed_program", "types_of_program"]


class Composite(Primitive):
    """A primitive that is a function of other operations.

    Args:
      name: its name, as programs print it.
      fun: function of the operands and, by name, of the parameters; can be traced.
      multiple_results: whether it gives a sequence of results.
      linear: positions of operands in each of which the operation is linear when the others stay.
      types: gives for types and parameters those of the results and the effects, where these are known without a trace.

    >>> import ferrax as jax
    >>> twice_p = Composite("twice", lambda x, *, by: by * x, linear=(0,))
    >>> jax.make_jaxpr(lambda x: twice_p.bind(x, by=2.0))(1.0)
    { lambda ; a:f32[]. let b:f32[] = twice[by=2.0] a in (b,) }
    >>> print(jax.grad(lambda x: twice_p.bind(x, by=2.0))(1.0))
    2.0
    """

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        *,
        multiple_results: bool = False,
        linear: Sequence[int] = (),
        types: Callable[..., tuple[Any, Any]] | None = None,
    ):
        super().__init__(name)
        self.multiple_results = multiple_results
        self.fun = fun
        self.linear = frozenset(linear)
        self.def_impl(fun)
        self.def_effectful_abstract_eval(types or self._types)
        primitive_jvps[self] = self._derivative
        primitive_transposes[self] = self._transposed
        fancy_primitive_batchers[self] = self._mapped
        primitive_lowerings.setdefault(self, {})[None] = Lowering(fun, multiple_results)

    def _types(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        program = self.program(avals, params)
        outs = [ShapedArray(a.shape, a.dtype, a.weak_type) for a in program.out_avals]
        return outs if self.multiple_results else outs[0], program.effects

    def program(self, avals: Sequence[Any], params: dict[str, Any]) -> Any:
        """The program of the function, for operands of these types."""
        return _ferrax.trace_to_jaxpr(functools.partial(self._list, params), tuple(avals), None, "eval_shape")

    def _list(self, params: dict[str, Any], *args: Any) -> list[Any]:
        return self._ferrax_listed(self.fun(*args, **params))

    def _given(self, listed: Sequence[Any]) -> Any:
        return list(listed) if self.multiple_results else listed[0]

    def _derivative(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        if not self.linear.issuperset(moving):
            return self._general_derivative(primals, tangents, moving, params)
        outs = self._ferrax_listed(self.bind(*primals, **params))
        dots: list[Any] = [Zero.from_primal_value(x) for x in outs]
        for i in moving:
            terms = self._ferrax_listed(self.bind(*primals[:i], tangents[i], *primals[i + 1 :], **params))
            for k, (x, term) in enumerate(zip(outs, terms, strict=True)):
                if issubdtype(_ferrax.typeof(x).dtype, np.inexact):
                    dots[k] = term if type(dots[k]) is Zero else dots[k] + term
        return self._given(outs), self._given(dots)

    def _general_derivative(
        self, primals: Sequence[Any], tangents: Sequence[Any], moving: Sequence[int], params: dict[str, Any]
    ) -> tuple[Any, Any]:
        from ferrax._derivatives import jvp

        def call(*values: Any) -> list[Any]:
            args = list(primals)
            for i, value in zip(moving, values, strict=True):
                args[i] = value
            return self._list(params, *args)

        outs, dots = jvp(call, [primals[i] for i in moving], [tangents[i] for i in moving])
        return self._given(outs), self._given(dots)

    def _transposed(self, cts: Any, *args: Any, **params: Any) -> list[Any]:
        from ferrax._derivatives import linear_transpose
        from ferrax._shape_dtype import ShapeDtypeStruct

        cts = cts if self.multiple_results else [cts]
        wanted = [k for k, ct in enumerate(cts) if type(ct) is not Zero]
        places = [i for i, a in enumerate(args) if type(a) is UndefinedPrimal]
        if not wanted:
            return [Zero(a.aval) if type(a) is UndefinedPrimal else None for a in args]

        def call(*values: Any) -> list[Any]:
            full = list(args)
            for i, value in zip(places, values, strict=True):
                full[i] = value
            outs = self._list(params, *full)
            return [outs[k] for k in wanted]

        structs = [ShapeDtypeStruct(args[i].aval.shape, args[i].aval.dtype) for i in places]
        pulled = linear_transpose(call, *structs)([cts[k] for k in wanted])
        out: list[Any] = [None] * len(args)
        for i, ct in zip(places, pulled, strict=True):
            out[i] = ct
        return out

    def _mapped(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        from ferrax._api import vmap

        named = {} if axis.name is None else {"axis_name": axis.name}
        function = functools.partial(self._list, params)
        outs = vmap(function, in_axes=tuple(dims), axis_size=axis.size, **named)(*args)
        return self._given(outs), self._given([0] * len(outs))


def types_of_program(*avals: Any, jaxpr: Any, **params: Any) -> tuple[Any, Any]:
    """The types of the results, and the effects, of a primitive that calls the program `jaxpr`.

    >>> import ferrax as jax
    >>> types_of_program(jaxpr=jax.make_jaxpr(lambda x: x + 1)(1.0))
    ([ShapedArray(float32[], weak_type=True)], [])
    """
    return list(jaxpr.out_avals), jaxpr.effects


def closed_program(function: Callable[..., Any], avals: Sequence[Any], asker: str) -> tuple[Any, list[Any]]:
    """The program of a function of flat values, with what the function captured as its first arguments.

    Args:
      function: gets one value for each type, and returns a sequence of values.
      avals: the types.
      asker: which function needs the program, for errors.

    Returns:
      `(program, captured)`: the program captures nothing; the captured values are the first it is given.

    >>> import ferrax as jax
    >>> program, captured = closed_program(lambda x: [x + 1], [jax.typeof(1.0)], "jit")
    >>> len(program.in_avals), captured
    (1, [])
    """
    from ferrax._evaluate import evaluate, traced

    program = traced(function, avals, asker)
    captured = list(program.captured)
    if not captured:
        return program, captured
    types = [*(_ferrax.typeof(x) for x in captured), *program.in_avals]
    return traced(lambda *args: evaluate(program, args), types, asker), captured
