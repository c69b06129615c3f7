"""Operations of MLIR's dialect mhlo: there are none; a name says what to give instead."""

from ferrax._src.lib.mlir._none import nothing_in

__getattr__ = nothing_in(__name__)
