"""Errors that jitted functions carry."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "JaxValueError error_checking_context raise_if_error set_error_if unwrap_from_import wrap_for_export "
    "_error_storage",
    "ferrax.experimental.checkify returns errors of functions as values",
)
