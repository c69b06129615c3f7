"""Batching rules of primitives that users make."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.interpreters._programs import batch_jaxpr as batch_jaxpr

__getattr__ = unprovided_names(
    __name__,
    "AxisData BatchTrace BatchTracer NotMapped batch batch_subtrace flatten_fun_for_vmap "
    "from_elt make_iota matchaxis register_vmappable spec_types to_elt unregister_vmappable "
    "zero_if_mapped",
    "programs are batched by the core, and ferrax.vmap maps arrays only",
    names_of(__name__, "ferrax.interpreters.batching"),
)
