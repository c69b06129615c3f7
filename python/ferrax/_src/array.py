"""The class of arrays."""

from ferrax._ferrax import ArrayImpl as ArrayImpl
