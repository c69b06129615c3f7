"""Names of algorithms of products, which `lax` has as an enum and `config` takes for a setting.

Read next: `lax/contraction.py`.
"""

from __future__ import annotations

import enum

__all__ = ["DotAlgorithmPreset"]


class DotAlgorithmPreset(enum.Enum):
    """Dot algorithms by name.

    Example:
      >>> from ferrax import lax
      >>> lax.DotAlgorithmPreset.F32_F32_F32
      DotAlgorithmPreset.F32_F32_F32
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name
