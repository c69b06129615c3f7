"""The built-in primitives by name, as `add_p`; the same objects that equations of programs have.

A name of JAX's whose operation ferrax records as others is a primitive that no program has.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax
from ferrax._boundary import missing as _missing
from ferrax._primitives import Primitive as _Primitive, built_in as _built_in

# JAX's names of primitives that ferrax calls otherwise.
_RENAMED = {
    "add_jaxvals": "add_any",
    "linear_solve": "custom_linear_solve",
    "remat": "remat2",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
    "scatter_sub": "scatter-sub",
}
# JAX's primitives that equal operations of ferrax's under another name, or that ferrax's programs never have.
_OTHERS = frozenset(
    [
        "after_all",
        "approx_top_k",
        "call",
        "closed_call",
        "create_token",
        "custom_lin",
        "dce_sink",
        "device_put",
        "empty2",
        "get",
        "igamma_grad_a",
        "optimization_barrier",
        "ragged_all_to_all",
        "random_gamma",
        "regularized_incomplete_beta",
        "remat_opt",
        "rng_bit_generator",
        "rng_uniform",
        "select_and_gather_add",
        "select_and_scatter",
        "select_and_scatter_add",
        "sharding_constraint",
        "stage",
        "swap",
        "symmetric_product",
    ]
)
_NAMES = frozenset(_ferrax.primitive_names()) | _RENAMED.keys() | _OTHERS


def __getattr__(name: str) -> _Primitive:
    stem = name[:-2]
    if name.endswith("_p") and stem in _NAMES:
        return _built_in(_RENAMED.get(stem, stem))
    import sys

    raise _missing(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted(f"{name}_p" for name in _NAMES)


__all__: Any = __dir__()  # noqa: PLE0605
