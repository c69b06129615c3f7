"""The type of references."""

from ferrax.ref import AbstractRef as AbstractRef
