"""What JAX takes from its compiled part, which is `ferrax._ferrax` here."""

from ferrax.version import __version_info__ as version

__all__ = ["version"]
