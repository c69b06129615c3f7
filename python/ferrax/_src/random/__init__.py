"""Random numbers."""

from typing import Any

from ferrax._src._public import names_of, with_submodules
from ferrax._src._unprovided import unprovided_names
from ferrax._src.typing import Shape as Shape
from ferrax.random._generators import PRNGImpl
from ferrax.random._keys import impl_of


def default_prng_impl() -> PRNGImpl:
    """The generator of keys whose maker names none, as a setting has it."""
    return impl_of(None)


def resolve_prng_impl(impl_spec: Any) -> PRNGImpl:
    """The generator that a text or an object names; the default one for None."""
    return impl_of(impl_spec)


__getattr__ = with_submodules(
    __name__,
    unprovided_names(
        __name__,
        "PRNGSpec PRNGSpecDesc",
        "generators are named by text or are PRNGImpl",
        names_of(__name__, "ferrax.random", "ferrax.extend.core.primitives"),
    ),
)
