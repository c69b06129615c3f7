"""Functions traced, lowered and compiled."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "CompiledCallParams DeviceAssignmentMismatch Executable Lowering MismatchType",
    "lowered and compiled functions are the core's",
    names_of(__name__, "ferrax.stages"),
)
