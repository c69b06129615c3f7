"""What kernels do with memory, under JAX's path."""

from typing import Any

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.experimental.pallas._mapping import uninitialized as uninitialized_value
from ferrax.experimental.pallas._memory import load as load, swap as swap

__all__ = ["load", "store", "swap", "uninitialized_value"]


def store(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes to an index, where a mask selects."""
    swap(x_ref_or_view, idx, val, mask=mask, eviction_policy=eviction_policy)


__getattr__ = unprovided_names(
    __name__,
    "get_global_p load_p multiple_of_p num_programs_p program_id_p reciprocal_p run_scoped_p semaphore_read_p "
    "semaphore_signal_p semaphore_wait_p swap_p",
    "kernels are functions of arrays here, without primitives of their own",
    names_of(__name__, "ferrax.experimental.pallas", "ferrax.experimental.pallas.triton"),
)
