"""What the facade's modules need of the core, in one place: the array types and the questions asked of operands."""

from __future__ import annotations

from ferrax._ferrax import (
    Array as Array,
)
from ferrax._ferrax import (
    ArrayImpl as ArrayImpl,
)
from ferrax._ferrax import (
    ShapedArray as ShapedArray,
)
from ferrax._ferrax import (
    Tracer as Tracer,
)
from ferrax._ferrax import (
    asarray as asarray,
)
from ferrax._ferrax import (
    canonicalize_dtype as canonicalize_dtype,
)
from ferrax._ferrax import (
    concrete_or_error as concrete_or_error,
)
from ferrax._ferrax import (
    copy_array as copy_array,
)
from ferrax._ferrax import (
    dtype_of as dtype_of,
)
from ferrax._ferrax import (
    is_arraylike as is_arraylike,
)
from ferrax._ferrax import (
    is_tracer as is_tracer,
)
from ferrax._ferrax import (
    promote_dtypes as promote_dtypes,
)
from ferrax._ferrax import (
    promote_ranks as promote_ranks,
)
from ferrax._ferrax import (
    result_type as result_type,
)
from ferrax._ferrax import (
    shape as shape,
)
from ferrax._ferrax import (
    typeof as typeof,
)
from ferrax._ferrax import (
    weak_type as weak_type,
)
from ferrax._ferrax import (
    with_weak_type as with_weak_type,
)

__all__ = [
    "Array",
    "ArrayImpl",
    "ShapedArray",
    "Tracer",
    "asarray",
    "canonicalize_dtype",
    "concrete_or_error",
    "copy_array",
    "dtype_of",
    "is_arraylike",
    "is_tracer",
    "promote_dtypes",
    "promote_ranks",
    "result_type",
    "shape",
    "typeof",
    "weak_type",
    "with_weak_type",
]


def _sharding_of_type(self: ShapedArray) -> object:
    """No axis is bound to one of a mesh."""
    from ferrax.sharding import NamedSharding, PartitionSpec
    from ferrax.sharding._mesh import empty_abstract_mesh

    return NamedSharding(empty_abstract_mesh, PartitionSpec(*[None] * self.ndim))


ShapedArray.sharding = property(_sharding_of_type)  # type: ignore[method-assign, assignment]
