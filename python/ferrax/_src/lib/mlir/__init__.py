"""MLIR, which ferrax does not have."""
