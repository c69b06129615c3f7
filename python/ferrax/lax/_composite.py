"""`composite`: a function that is one named operation in programs, and what it is made of beside it.

Read next: `_stablehlo_notes.py`, which writes its calls in lowered programs.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._composites import closed_program
from ferrax._primitives import Primitive
from ferrax._src.hashable_array import HashableArray
from ferrax._stablehlo_notes import composite
from ferrax.core import Tracer, eval_jaxpr
from ferrax.errors import UnexpectedTracerError
from ferrax.interpreters import ad, mlir

__all__ = ["called", "composite_p"]

_PASSED = (
    "This means that the decomposition function closes over a value that is involved in a JAX transformation. "
    "Any values that aren't explicitly known at compile time must be explicitly passed as arguments to the composite."
)


def called(decomposition: Callable[..., Any], name: str, version: int) -> Callable[..., Any]:
    """The function that records a composite; see `ferrax.lax.composite`."""

    @functools.wraps(decomposition)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(v, Tracer) for v in kwargs.values()):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer as an attribute in the decomposition for the composite op '{name}'. {_PASSED}\n\n"
                "Note: If you are passing jax arrays as attributes, use numpy arrays instead."
            )
        leaves, tree = tree_util.tree_flatten(args)
        out_tree: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            outs, out_tree = tree_util.tree_flatten(decomposition(*tree.unflatten(values), **kwargs))
            return outs

        program, captured = closed_program(flat, [_ferrax.typeof(x) for x in leaves], "composite")
        if any(isinstance(c, Tracer) for c in captured):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer as a constant in the decomposition for the composite op '{name}'. {_PASSED}"
            )
        if program.consts:
            captured, program = [*program.consts, *captured], _without_constants(program)
        outs = composite_p.bind(
            *captured,
            *leaves,
            name=name,
            attributes=tuple(map(_listed, kwargs.items())),
            version=version,
            jaxpr=program,
        )
        return tree_util.tree_unflatten(out_tree, outs)

    return call


def _without_constants(program: Any) -> Any:
    """A program whose constants are its first arguments."""
    constants = list(program.consts)
    types = [_ferrax.typeof(x) for x in constants]

    def call(*values: Any) -> list[Any]:
        return list(eval_jaxpr(program.jaxpr, values[: len(types)], *values[len(types) :]))

    return closed_program(call, [*types, *program.in_avals], "composite")[0]


def _listed(item: tuple[str, Any]) -> tuple[str, tuple[Any, ...], Any]:
    """An attribute as something that can be hashed."""
    leaves, tree = tree_util.tree_flatten(item[1])
    return item[0], tuple(HashableArray(v) if isinstance(v, np.ndarray) else v for v in leaves), tree


def _said(*, name: str, attributes: Any, version: int, **_: Any) -> str:
    """The composite in lowered programs; an error where it cannot be there."""
    if not re.fullmatch(r"[a-zA-Z]\w*(\.[\w$]+)+", name, re.ASCII):
        raise ValueError(
            "Cannot lower jaxpr with verifier errors:\n\tname must be a valid namespaced op name, i.e. it must match "
            'the following regular expression: ^[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+$ e.g. "my_namespace.my_op"'
        )
    values = {k: tree.unflatten([getattr(v, "val", v) for v in leaves]) for k, leaves, tree in attributes}
    return composite(name, {k: v for k, v in values.items() if v is not None}, version)


def _lowered(*args: Any, jaxpr: Any, **params: Any) -> list[Any]:
    _said(**params)
    return list(jaxpr.eval(*args))


class _Composite(Primitive):
    def bind(self, *args: Any, **params: Any) -> Any:
        """Records the operation, as the composite that lowered programs have."""
        said = ""
        with contextlib.suppress(TypeError, ValueError):  # lowering raises it
            said = _said(**params)
        outer = _ferrax.enter_composite(said)
        try:
            return super().bind(*args, **params)
        finally:
            if outer:
                _ferrax.set_scope(outer)


def _no_rule(what: str, *_: Any, **__: Any) -> Any:
    raise ValueError(
        f"{what} rule for composite not implemented. You can use `jax.custom_jvp` to add support. See "
        "https://docs.jax.dev/en/latest/_autosummary/jax.custom_jvp.html"
    )


composite_p = _Composite("composite")
composite_p.multiple_results = True
composite_p.def_impl(lambda *args, jaxpr, **_: list(jaxpr.eval(*args)))
composite_p.def_abstract_eval(lambda *_, jaxpr, **__: list(jaxpr.out_avals))
ad.primitive_jvps[composite_p] = functools.partial(_no_rule, "JVP")
ad.primitive_transposes[composite_p] = functools.partial(_no_rule, "Transpose")
mlir.register_lowering(composite_p, mlir.lower_fun(_lowered))
