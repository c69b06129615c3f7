"""The compilation cache: where programs that plugins of XLA compiled are kept on disk for later processes.

What is kept, and how much of it, the settings ``jax_compilation_cache_dir``, ``jax_enable_compilation_cache``,
``jax_compilation_cache_max_size``, ``jax_persistent_cache_min_compile_time_secs``,
``jax_persistent_cache_min_entry_size_bytes`` and ``jax_raise_persistent_cache_errors`` say, each of which holds from
the next program on. The embedded engine compiles in less time than a file takes to read, and keeps nothing.
Read next: `crates/ferrax/src/engine/kept.rs`.
"""

from __future__ import annotations

import os

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax.config import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keeps programs in a folder from now on, as the setting ``jax_compilation_cache_dir`` does.

    Args:
      path: the folder, which is made when there is something to keep; `None` keeps nothing.

    >>> from ferrax.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(None)
    """
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Counts programs that are found on disk from zero. Files, and settings, which hold at once, stay as they are.

    >>> from ferrax.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    _ferrax.compilation_cache_counts(True)


_expose(globals())
