"""Zeros, and the primitive that stands for `stop_gradient`."""

from ferrax._primitives import Zero as Zero
from ferrax.custom_derivatives import SymbolicZero as SymbolicZero
from ferrax.extend.core.primitives import stop_gradient_p as stop_gradient_p
from ferrax.interpreters.ad import instantiate_zeros as instantiate_zeros
