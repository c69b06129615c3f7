"""Members that classes of the extension module get from files of the facade, which load when one of them is used.

Read next: `_lazy.py`; `numpy/_methods.py` for the methods of arrays.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax
from ferrax._lazy import defer_members

__all__ = ["EFFECT_NAMES", "MEMBERS", "defer_all"]

_METHODS = """
__array_module__ __copy__ __deepcopy__ __hex__ __numpy_dtype__ __oct__
all any argmax argmin argpartition argsort astype byteswap choose clip clone compress conj
conjugate copy cumprod cumsum diagonal dot flatten format max mean min nonzero platform prod ptp ravel repeat reshape
round searchsorted sort squeeze std sum swapaxes take to_device trace transpose var view
"""
_UFUNC = """
_accumulate _at _binary _call _func _reduce _reduceat _scan_reduce accumulate at identity nargs nin nout outer reduce
reduceat
"""

#: What the core calls the effects of equations and programs: those of users' primitives are all "IO".
EFFECT_NAMES: dict[type, Any] = {
    kind: vars(kind)["effects"].__get__ for kind in (_ferrax.JaxprEqn, _ferrax.Jaxpr, _ferrax.ClosedJaxpr)
}

#: A class, the file that has its members, their names.
MEMBERS: list[tuple[type, str, str]] = [
    (_ferrax.Array, "numpy._methods", _METHODS),
    (_ferrax.ArrayImpl, "sharding._arrays", "_check_if_deleted _fully_replicated_shard _npy_value"),
    (_ferrax.PRNGKeyArray, "experimental._key_marks", "_consumed"),
    (_ferrax.PRNGKeyArray, "random._native_keys", "_base_array _impl"),
    # which arrays that are not traced bring themselves
    (_ferrax.Tracer, "numpy._methods", "T item mT"),
    (_ferrax.Tracer, "_tracer_members", "_value dimension_as_value full_lower get_referent to_concrete_value"),
    (_ferrax.JVPTracer, "_tracer_members", "__signature__ cur_qdd type_state"),
    (
        _ferrax.DynamicJaxprTracer,
        "_tracer_members",
        "__signature__ aval_mutable_qdd cur_qdd get_const mutable_qdd parent val",
    ),
    (_ferrax.Device, "_devices", "__doc__ addressable_memories client default_memory memory"),
    (_ferrax.ShapedArray, "_api", "sharding"),
    (_ferrax.SingleDeviceSharding, "sharding._named", "__doc__"),
    (
        _ferrax.jit_type(),
        "_stages",
        "__doc__ __signature__ _cache_size _clear_cache cache_info clear_cache eval_shape lower trace",
    ),
    (_ferrax.LinearizedFunction, "_linearized", "func"),
    (_ferrax.VJP, "_linearized", "__repr__ jaxpr"),
    (_ferrax.Jaxpr, "_program_text", "pretty_print"),
    (_ferrax.ClosedJaxpr, "_program_text", "pretty_print"),
    *((kind, "extend.core._effects", "effects") for kind in EFFECT_NAMES),
    (_ferrax.numpy.ufunc, "numpy._ufunc", _UFUNC),
]


def defer_all() -> None:
    """Puts placeholders into the classes."""
    for cls, file, names in MEMBERS:
        defer_members(cls, file, names)
    _ferrax.ArrayImpl.__slots__ = ("__weakref__",)  # type: ignore[attr-defined]
    _ferrax.ArrayImpl.__del__ = _released  # type: ignore[method-assign]


def _released(self: object) -> None:
    """Does nothing: the core frees an array's memory when nobody holds it any more."""
