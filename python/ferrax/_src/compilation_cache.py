"""Programs on disk, which a folder named by a setting keeps between processes."""

from ferrax._src._public import names_of
from ferrax.config import config

__getattr__ = names_of(__name__, "ferrax.experimental.compilation_cache.compilation_cache")


def is_persistent_cache_enabled() -> bool:
    """Whether compiled programs are kept in a folder."""
    return bool(config.jax_enable_compilation_cache and config.jax_compilation_cache_dir)
