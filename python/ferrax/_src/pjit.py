"""Jitted functions and shardings inside of them."""

from ferrax._src._public import names_of

__getattr__ = names_of(
    __name__, "ferrax.experimental.pjit", "ferrax.sharding", "ferrax.lax", "ferrax.extend.core.primitives"
)
