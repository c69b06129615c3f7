"""Dialects of MLIR, which ferrax does not have."""

from ferrax._src._public import with_submodules
from ferrax._src.lib.mlir.dialects import (
    arith as arith,
    builtin as builtin,
    chlo as chlo,
    func as func,
    hlo as hlo,
    math as math,
    memref as memref,
    mhlo as mhlo,
    mpmd as mpmd,
    scf as scf,
    sdy as sdy,
    sparse_tensor as sparse_tensor,
    vector as vector,
)

__getattr__ = with_submodules(__name__)
