"""The primitives under the names that JAX's `lax` has, as `add_p`: the objects that equations of programs have."""

from __future__ import annotations

from typing import Any

from ferrax.extend.core import primitives as _primitives
from ferrax.lax._primitive_names import NAMES

__all__: Any = NAMES.split()  # noqa: PLE0605

globals().update({name: getattr(_primitives, name) for name in NAMES.split()})
