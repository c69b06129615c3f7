"""Batching rules of primitives that users make."""

from ferrax._ferrax import BatchTracer as BatchTracer
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax._src.interpreters._programs import batch_jaxpr as batch_jaxpr
from ferrax._vmappable import (
    is_vmappable as is_vmappable,
    make_iota as make_iota,
    register_vmappable as register_vmappable,
    spec_types as spec_types,
    unregister_vmappable as unregister_vmappable,
    vmappables as vmappables,
)

__getattr__ = unprovided_names(
    __name__,
    "AxisData BatchTrace NotMapped batch batch_subtrace flatten_fun_for_vmap from_elt matchaxis to_elt zero_if_mapped",
    "programs are batched by the core, and ferrax.vmap maps arrays only",
    names_of(__name__, "ferrax.interpreters.batching"),
)
