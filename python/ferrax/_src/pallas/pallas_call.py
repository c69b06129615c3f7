"""Calls of kernels, under JAX's path."""

import functools
from typing import Any

from ferrax._src._unprovided import unprovided_names
from ferrax.experimental.pallas import pallas_call as pallas_call


@functools.cache
def _trace_kernel_to_jaxpr(*args: Any) -> Any:
    """JAX's cache of traced kernels, which tests clear; `jit` keeps those of ferrax."""
    raise NotImplementedError(
        "ferrax._src.pallas.pallas_call._trace_kernel_to_jaxpr: kernels are traced by pallas_call"
    )


__getattr__ = unprovided_names(
    __name__, "pallas_call_p", "kernels are functions of arrays here, without primitives of their own"
)
