"""Dialects of MLIR, which ferrax does not have."""

from ferrax._src.lib.mlir.dialects import hlo as hlo
