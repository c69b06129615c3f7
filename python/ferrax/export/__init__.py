"""Programs as files: a jitted function traced for given types, kept, read and called without its source.

`_exported.py` has the functions, `_format.py` the bytes of a file, `_trees.py` structures in it. Sizes of axes may stay
open: `ferrax/_symbolic`. Read next: `_exported.py`.
"""

from ferrax._boundary import expose as _expose
from ferrax._symbolic._scopes import SymbolicScope
from ferrax._symbolic._text import symbolic_args_specs, symbolic_shape
from ferrax._shapes import is_symbolic_dim
from ferrax.export._exported import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from ferrax.export._trees import register_namedtuple_serialization, register_pytree_node_serialization

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]

_expose(globals())
