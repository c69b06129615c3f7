"""`device_put` of a value that derivatives are taken of, outside of programs: its cotangent goes back to its devices.

Inside of programs a placement is `sharding_constraint`, whose program is on one set of devices. Out there stages of a
pipeline run on devices of their own, and so do their derivatives. Read next: `ferrax/_devices.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._primitives import (
    AxisData,
    Primitive,
    UndefinedPrimal,
    Zero,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_transposes,
)
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import with_mesh

__all__ = ["moved"]

moved_p = Primitive("device_put")


def moved(x: Any, device: Any) -> Any:
    """A traced value that is known, on other devices or divided otherwise; `None` where this is not such a case.

    Args:
      x: the value.
      device: a device, a sharding, or a `PartitionSpec` of the mesh in use.
    """
    try:
        known = _ferrax.concrete_or_error(None, x)
    except _ferrax.ConcretizationTypeError:
        return None
    if not isinstance(known, _ferrax.ArrayImpl) or not known.committed:
        return None
    if isinstance(device, _ferrax.Device):
        device = _ferrax.SingleDeviceSharding(device)
    device, src = with_mesh(device, "device_put"), known.sharding
    if not hasattr(device, "device_set") or device == src or _ferrax.typeof(x)._spread:
        return None
    return moved_p.bind(x, device=device, src=src)


def _impl(x: Any, *, device: Any, src: Any) -> Any:
    from ferrax._devices import device_put

    return device_put(x, device)


def _derivative(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    out = moved_p.bind(x, **params)
    return out, Zero.from_primal_value(out) if type(t) is Zero else moved_p.bind(t, **params)


def _transpose(ct: Any, x: Any, *, device: Any, src: Any) -> list[Any]:
    assert type(x) is UndefinedPrimal
    return [Zero(x.aval) if type(ct) is Zero else moved_p.bind(ct, device=src, src=device)]


def _mapped(
    data: AxisData, args: Sequence[Any], dims: Sequence[Any], *, device: Any, src: Any
) -> tuple[Any, int | None]:
    (x,), (d,) = args, dims
    if d is None:
        return moved_p.bind(x, device=device, src=src), None
    return moved_p.bind(x, device=_with_axis(device, d), src=_with_axis(src, d)), d


def _with_axis(sharding: Any, axis: int) -> Any:
    """The sharding of a batch, whose own axis nothing divides."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = [*sharding.spec, *[None] * (axis - len(sharding.spec))]
    entries.insert(axis, None)
    return sharding.update(spec=sharding.spec.update(partitions=entries))


moved_p.def_impl(_impl)
moved_p.def_abstract_eval(lambda x, **_: _ferrax.typeof(x) if isinstance(x, _ferrax.Array) else x)
primitive_jvps[moved_p] = _derivative
primitive_transposes[moved_p] = _transpose
fancy_primitive_batchers[moved_p] = _mapped
