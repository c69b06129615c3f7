"""Zeros, sums of cotangents, and the primitive that stands for `stop_gradient`."""

from ferrax._primitives import Zero as Zero
from ferrax.custom_derivatives import SymbolicZero as SymbolicZero
from ferrax.extend.core.primitives import (
    add_any_p as add_any_p,
    add_jaxvals_p as add_jaxvals_p,
    stop_gradient_p as stop_gradient_p,
)
from ferrax.interpreters.ad import add_jaxvals as add_jaxvals, instantiate_zeros as instantiate_zeros
