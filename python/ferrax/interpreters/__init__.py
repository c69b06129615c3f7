"""Rules of primitives, under JAX's names: `ad`, `batching`, `mlir`; and `partial_eval`, `xla`, `pxla`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.interpreters import ad as ad
    from ferrax.interpreters import batching as batching
    from ferrax.interpreters import mlir as mlir
    from ferrax.interpreters import partial_eval as partial_eval
    from ferrax.interpreters import pxla as pxla
    from ferrax.interpreters import xla as xla

_SUBMODULES = "ad batching mlir partial_eval pxla xla"

_defer(globals(), {}, _SUBMODULES)
