"""The version of ferrax: that of its crates, which a test compares with `Cargo.toml`."""

__all__ = ["__version__", "__version_info__"]

__version__ = "0.1.0"
#: The three numbers of `__version__`.
__version_info__ = tuple(int(part) for part in __version__.split("."))
