"""`AbstractValue`: what types of values have in common, and the part of it that `ShapedArray` gets.

Every type here is of values that programs hold as they are: no type is high, none has states (qdd, JAX's word for data
of a type that changes while a program is traced), and lowering a value gives the value itself. Read next: `core.py`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

from ferrax._core import ShapedArray
from ferrax._memory import MemorySpace

__all__ = ["AbstractValue", "aval_method", "aval_property"]


class AbstractValue(abc.ABC):  # noqa: B024  (a class to be registered with)
    """A type of values: `ShapedArray` is one.

    >>> import ferrax as jax
    >>> isinstance(jax.typeof(1.0), jax.core.AbstractValue)
    True
    """

    __slots__: tuple[str, ...] = ()

    is_high = property(lambda self: False, doc="Whether programs hold other values than this one for it: no.")
    has_qdd = property(lambda self: False, doc="Whether the type has states: no.")

    def to_tangent_aval(self) -> Any:
        """The type of tangents; a class of types says which."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the type of tangents is: to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """The type of cotangents; a class of types says which."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the type of cotangents is: to_ct_aval")

    def at_least_vspace(self) -> Any:
        """The type of tangents."""
        return self.to_tangent_aval()

    def update(self, **kwargs: Any) -> Any:
        """The type with other parts; a class of types says which."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its types change: update")

    def update_weak_type(self, weak_type: bool) -> Any:
        """The type with this weak type: itself, where there is none."""
        return self

    def update_manual_axis_type(self, mat: Any) -> Any:
        """The type with these manual axes: itself, where there are none."""
        return self

    def strip_weak_type(self) -> Any:
        """The type, not weak."""
        return self.update_weak_type(False)

    def normalize(self) -> Any:
        """The type as programs compare it: not weak."""
        return self.strip_weak_type()

    def lo_ty(self) -> list[Any]:
        """The types that programs hold for it: itself."""
        return [self]

    def lo_ty_qdd(self, qdd: Any) -> list[Any]:
        """Of types with states, which these are not."""
        raise NotImplementedError(f"{type(self).__name__} has no states")

    def lower_val2(self, hi_val: Any) -> list[Any]:
        """What programs hold for a value."""
        return list(self.lower_val(hi_val))  # type: ignore[attr-defined]

    def raise_val2(self, lo_vals: Any) -> Any:
        """The value that programs hold this for."""
        return self.raise_val(*lo_vals)  # type: ignore[attr-defined]

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as text."""
        return str(self)

    def dec_rank(self, size: int, spec: Any) -> Any:
        """The type inside of a `vmap` over the axis `spec`."""
        from ferrax.extend.core import mapped_aval

        return mapped_aval(size, spec, self)

    def inc_rank(self, size: int, spec: Any) -> Any:
        """The type outside of a `vmap` over the axis `spec`."""
        from ferrax.extend.core import unmapped_aval

        return unmapped_aval(size, spec, self)

    def leading_axis_spec(self) -> int:
        """The axis that `vmap` maps by default."""
        return 0

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> Any:
        """Not implemented: types say nothing of places."""
        raise NotImplementedError("AbstractValue.shard: types of ferrax say nothing of places")

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        """Not implemented: types say nothing of places."""
        raise NotImplementedError("AbstractValue.unshard: types of ferrax say nothing of places")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two values."""
        from ferrax.numpy import add

        return add(x, y)

    def __repr__(self) -> str:
        parts = getattr(self, "__dict__", None)
        name = type(self).__name__
        return name if parts is None else f"{name}({','.join(f'{k}={v}' for k, v in parts.items())})"


class aval_property(NamedTuple):
    """A property that arrays of a type have, in the class of the type.

    Args:
      fget: function of the value.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.aval_property(len).fget([1, 2])
    2
    """

    fget: Callable[..., Any]


class aval_method(NamedTuple):
    """A method that arrays of a type have, in the class of the type.

    Args:
      fun: function of the value and other arguments.

    >>> import ferrax as jax
    >>> jax.experimental.hijax.aval_method(len).fun([1, 2])
    2
    """

    fun: Callable[..., Any]


# what values of the type have and the type itself does not
_OF_ARRAYS = """
T all any argmax argmin argpartition argsort astype at byteswap choose clip compress conj conjugate copy cumprod cumsum
diagonal dot flat flatten imag item mT max mean min nbytes nonzero prod ptp ravel real repeat reshape round searchsorted
sort squeeze std sum swapaxes take to_device trace transpose var view itemsize
"""
_PROPERTIES = frozenset(["T", "at", "flat", "imag", "itemsize", "mT", "nbytes", "real"])


class _Shaped(AbstractValue):
    """What `ShapedArray` gets besides `AbstractValue`'s."""

    @property
    def manual_axis_type(self: Any) -> Any:
        """The manual axes of meshes over which values vary."""
        from ferrax.sharding import ManualAxisType
        from ferrax.sharding._marks import marks_of

        unreduced, reduced = marks_of(self)
        return ManualAxisType(varying=self.vma - unreduced, unreduced=unreduced, reduced=reduced)

    mat = manual_axis_type
    #: How much less than a value a type says, as JAX counts it.
    array_abstraction_level = 2
    broadcast = aval_method(lambda value, sizes, **options: _broadcast(value, sizes, options))

    def nospec(self: Any, mesh: Any, check_vma: bool, all_names: Any) -> Any:
        """The `PartitionSpec` of an argument of `shard_map` that has none: its first axis is cut by some mesh axes.

        Args:
          mesh: the mesh.
          check_vma: whether these are the manual axes over which values vary.
          all_names: the axes otherwise.
        """
        from ferrax.sharding import PartitionSpec

        names = tuple(a for a in mesh.axis_names if a in self.vma) if check_vma else all_names
        return PartitionSpec(names) if names else PartitionSpec()

    @property
    def memory_space(self) -> Any:
        """The memory of devices, where values are by default."""
        return MemorySpace.Device

    def lower_val(self, val: Any) -> list[Any]:
        """What programs hold for a value: itself."""
        return [val]

    def raise_val(self, val: Any) -> Any:
        """The value that programs hold this for: itself."""
        return val


def _broadcast(value: Any, sizes: Any, options: dict[str, Any]) -> Any:
    from ferrax.lax import broadcast

    return broadcast(value, sizes, **options)


def _complete() -> None:
    for cls in (_Shaped, AbstractValue):
        for name, value in vars(cls).items():
            if not name.startswith("_") and not hasattr(ShapedArray, name):
                setattr(ShapedArray, name, value)
    for name in _OF_ARRAYS.split():
        if not hasattr(ShapedArray, name):
            setattr(ShapedArray, name, (aval_property if name in _PROPERTIES else aval_method)(_of_value(name)))


def _of_value(name: str) -> Callable[..., Any]:
    """The attribute of a value, by name: arrays get methods when `ferrax.numpy` loads."""
    if name in _PROPERTIES:
        return lambda value: getattr(value, name)
    return lambda value, *args, **kwargs: getattr(value, name)(*args, **kwargs)


AbstractValue.register(ShapedArray)
_complete()
