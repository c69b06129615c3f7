"""What JAX takes from its compiled part, which is `ferrax._ferrax` here."""

from ferrax.version import __version__ as version_str, __version_info__ as version

__all__ = ["ifrt_version", "jaxlib_extension_version", "version", "version_str"]

#: What the compiled part of JAX 0.10.2 says of itself, whose interface this is.
jaxlib_extension_version = 467
ifrt_version = 55

#: Versions of CUDA's libraries, of a build that links them: the GPU's are loaded when one is used.
cuda_versions = None
