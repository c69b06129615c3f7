"""Passes of MLIR: there are none, since there is no MLIR; a name says so."""

from ferrax._src.lib.mlir._none import nothing_in

__getattr__ = nothing_in(__name__)
