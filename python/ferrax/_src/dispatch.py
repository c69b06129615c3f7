"""Waiting for effects, and primitives that are applied."""

import enum
from typing import Any

from ferrax._api import effects_barrier as wait_for_tokens
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.interpreters.xla import apply_primitive as apply_primitive

__all__ = ["ArrayCopySemantics", "RuntimeTokenSet", "apply_primitive", "runtime_tokens", "wait_for_tokens"]

#: Events that `ferrax.monitoring` reports, by JAX's names.
JAXPR_TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
JAXPR_TO_MLIR_MODULE_EVENT = "/jax/core/compile/jaxpr_to_mlir_module_duration"
BACKEND_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"

__getattr__ = unprovided_names(
    __name__,
    "LogElapsedTimeContextManager check_special get_intermediate_shardings jaxpr_has_prim_requiring_devices "
    "log_elapsed_time needs_check_special prim_requires_devices_during_lowering should_tuple_args simple_impl "
    "xla_primitive_callable",
    "operations outside of jit are the core's",
    names_of(__name__, "ferrax.extend.core.primitives"),
)


class ArrayCopySemantics(enum.IntEnum):
    """What a transfer may do with its operand; arrays are immutable, so that none differs in what one sees."""

    ALWAYS_COPY = 0
    REUSE_INPUT = 1
    DONATE_INPUT = 2


class RuntimeTokenSet:
    """What orders effects that run: the core orders them itself, so that there are no tokens to hold."""

    def __init__(self) -> None:
        self.current_tokens: dict[Any, Any] = {}
        self.output_runtime_tokens: dict[Any, Any] = {}

    def clear(self) -> None:
        """Forgets tokens: there are none, and effects under way go on."""

    def block_until_ready(self) -> None:
        """Waits for the effects under way."""
        wait_for_tokens()


runtime_tokens = RuntimeTokenSet()


def jaxpr_has_primitive(jaxpr: Any, prim_name: str) -> bool:
    """Whether a primitive of a name is anywhere in a program."""
    from ferrax.extend.core import jaxprs_in_params

    return any(
        eqn.primitive.name == prim_name or any(jaxpr_has_primitive(j, prim_name) for j in jaxprs_in_params(eqn.params))
        for eqn in jaxpr.eqns
    )
