"""Kernels over grids of blocks: `pallas_call`, which runs them by interpretation, and what kernels are written with.

JAX compiles kernels for GPUs and TPUs and interprets them elsewhere; here they are interpreted. A kernel reads and
writes references. `tpu` and `triton` have the names of kernels for these devices that mean something to an interpreter.
Read next: `_call.py`.
"""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from ferrax import ds as ds
from ferrax._boundary import expose as _expose, missing as _missing
from ferrax._slices import Slice as Slice, dslice as dslice
from ferrax.experimental.pallas._call import pallas_call as pallas_call
from ferrax.experimental.pallas._control import (
    align_to as align_to,
    cdiv as cdiv,
    debug_print as debug_print,
    loop as loop,
    multiple_of as multiple_of,
    next_power_of_2 as next_power_of_2,
    reciprocal as reciprocal,
    strides_from_shape as strides_from_shape,
    when as when,
)
from ferrax.experimental.pallas._costs import estimate_cost as estimate_cost
from ferrax.experimental.pallas._grid import num_programs as num_programs, program_id as program_id
from ferrax.experimental.pallas._memory import (
    DeviceIdType as DeviceIdType,
    empty as empty,
    empty_like as empty_like,
    empty_ref_like as empty_ref_like,
    run_scoped as run_scoped,
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
    with_scoped as with_scoped,
)
from ferrax.experimental.pallas._specs import (
    BlockDim as BlockDim,
    Blocked as Blocked,
    BlockSpec as BlockSpec,
    BoundedSlice as BoundedSlice,
    Buffered as Buffered,
    CompilerParams as CompilerParams,
    CostEstimate as CostEstimate,
    Element as Element,
    GridSpec as GridSpec,
    Indirect as Indirect,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    RevisitMode as RevisitMode,
    Squeezed as Squeezed,
    no_block_spec as no_block_spec,
    squeezed as squeezed,
)
from ferrax.numpy import broadcast_to as broadcast_to

if _TYPE_CHECKING:
    from ferrax.experimental.pallas import tpu as tpu, triton as triton

ANY = MemorySpace.ANY
HOST = MemorySpace.HOST


def run_state(f: _Any) -> _Any:
    """A function of values from one of references: what these hold when it has returned.

    Args:
      f: function of a tree of references.

    Returns:
      A function of a tree of values that gives a tree of values.

    >>> from ferrax.experimental import pallas as pl
    >>> def double(ref):
    ...     ref[...] = 2 * ref[...]
    >>> print(pl.run_state(double)(3))
    6
    """
    from ferrax._src.state.discharge import run_state as run

    return run(f)


def __getattr__(name: str) -> _Any:
    if name in ("tpu", "triton"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "pallas_call_p":
        from ferrax._src._unprovided import unprovided

        return unprovided(__name__, name, "kernels are functions of arrays here, without primitives of their own")
    if name == "dot":
        import warnings

        from ferrax.experimental.pallas.triton import dot

        warnings.warn(
            "jax.experimental.pallas.dot was moved to jax.experimental.pallas.triton: use that one, jax.numpy.dot or @",
            DeprecationWarning,
            stacklevel=2,
        )
        return dot
    raise _missing(_sys.modules[__name__], name)


_expose(globals())
