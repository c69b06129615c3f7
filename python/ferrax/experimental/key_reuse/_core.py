"""What a function does with random keys, and keys marked as used: JAX's names for it that mean something here.

Signatures of primitives are the core's (`ferrax/experimental/_key_signatures.py`), without classes of JAX's.
"""

from typing import Any

import numpy as np

from ferrax._src._unprovided import unprovided_names
from ferrax.errors import KeyReuseError as KeyReuseError
from ferrax.experimental._key_marks import _mark
from ferrax.random import split

_NAMES = """DynamicKeyReuseSignature Forward KeyReuseSignature Sink Source call_impl_with_key_reuse_checks
check_key_reuse check_key_reuse_jaxpr consume_p assert_consumed_value_p function_type_signature jaxpr_type_signature
key_reuse_signature_from_eqn key_reuse_signature_from_primitive key_reuse_signatures unknown_signature"""

__getattr__ = unprovided_names(
    __name__, _NAMES, "ferrax finds reused keys in its own way, by the setting jax_debug_key_reuse"
)


def consume(key: Any) -> Any:
    """Uses a key, under `ferrax.debug_key_reuse`, and gives it back."""
    split(key)
    return key


def assert_consumed(key: Any, value: Any = True) -> None:
    """Raises unless the keys marked by a mask are used, under `ferrax.debug_key_reuse`."""
    used, _ = _mark(key)
    if not np.all(used == value):
        raise AssertionError(f"Expected key to be consumed in {key}")


def assert_unconsumed(key: Any) -> None:
    """Raises if a key is used, under `ferrax.debug_key_reuse`."""
    assert_consumed(key, False)
