"""Programs on disk, which a folder named by a setting keeps between processes."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.config import config

__getattr__ = unprovided_names(
    __name__,
    "CacheVerificationError VerificationCache combine_executable_and_time compress_executable decompress_executable "
    "extract_executable_and_time get_cache_key get_executable_and_time get_file_cache is_cache_used "
    "is_executable_in_cache put_executable_and_time",
    "programs on disk are read and written by the core",
    names_of(__name__, "ferrax.experimental.compilation_cache.compilation_cache"),
)


def is_persistent_cache_enabled() -> bool:
    """Whether compiled programs are kept in a folder."""
    return bool(config.jax_enable_compilation_cache and config.jax_compilation_cache_dir)
