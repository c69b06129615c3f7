"""What JAX takes from its compiled part, which is `ferrax._ferrax` here."""

import re

from ferrax._src._public import with_submodules
from ferrax._src._unprovided import unprovided_names
from ferrax.version import __version__ as version_str, __version_info__ as version

__all__ = ["check_jaxlib_version", "ifrt_version", "jaxlib_extension_version", "version", "version_str"]


def check_jaxlib_version(jax_version: str, jaxlib_version: str, minimum_jaxlib_version: str) -> tuple[int, ...]:
    """Whether a compiled part fits the Python around it: not older than it wants, and not newer than it is.

    Returns:
      The compiled part's version.

    Raises:
      RuntimeError: it does not fit.
      ValueError: a version does not start with a number.
    """
    around, compiled, wanted = map(_numbers, (jax_version, jaxlib_version, minimum_jaxlib_version))
    if compiled < wanted:
        raise RuntimeError(
            f"jaxlib is version {jaxlib_version}, but this version of jax requires version >= {minimum_jaxlib_version}."
        )
    if compiled > around:
        raise RuntimeError(
            f"jaxlib version {jaxlib_version} is newer than, and incompatible with jax version {jax_version}."
        )
    return compiled


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    if found is None:
        raise ValueError(f"the version {text!r} does not start with a number")
    return tuple(int(part) for part in found[0].split("."))


#: What the compiled part of JAX 0.10.2 says of itself, whose interface this is.
jaxlib_extension_version = 467
ifrt_version = 55

#: Versions of CUDA's libraries, of a build that links them: the GPU's are loaded when one is used.
cuda_versions = None

_others = unprovided_names(
    __name__,
    "_pretty_printer _profile_data _profiler cpu_feature_guard cpu_sparse ffi gpu_linalg gpu_prng gpu_rnn gpu_solver "
    "gpu_sparse guard_lib ifrt_programs ifrt_proxy jax_mlir_ext jaxlib lapack mosaic_gpu mosaic_tpu pmap_lib "
    "pytree rocm_versions tpu triton utils weakref_lru_cache",
    "the compiled part is ferrax._ferrax, with no such module",
)
__getattr__ = with_submodules(__name__, _others)
