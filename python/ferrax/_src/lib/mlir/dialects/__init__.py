"""Dialects of MLIR, which ferrax does not have."""

from ferrax._src.lib.mlir.dialects import chlo as chlo, func as func, hlo as hlo, sdy as sdy
