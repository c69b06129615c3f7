"""Compilation is the core's; there is nothing here to patch."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "CompileOptions backend_compile_and_load compile_or_get_cached get_compile_options get_latest_profile_version "
    "register_xla_runtime_error_handler",
    "compilation is the core's",
)
