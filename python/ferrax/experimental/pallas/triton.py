"""What kernels for GPUs are written with: masked access, atomic operations, products.

Kernels run one after the other here, so that an atomic operation is a plain one; hints for the compiler say nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax._boundary import expose as _expose
from ferrax.experimental.pallas._memory import (
    checked_reference as _checked,
    load as load,
    read_modify_write as _rmw,
    store as store,
)

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "elementwise_inline_asm",
    "load",
    "max_contiguous",
    "store",
]


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Parameters of a compiler for GPUs; the interpreter has none.

    Args:
      num_warps: warps of a kernel.
      num_stages: stages of a pipeline of loops.

    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> plgpu.CompilerParams(num_warps=4).num_warps
    4
    """

    num_warps: int | None = None
    num_stages: int | None = None


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any:
    """The product of two matrices, in float32 (float64 of float64, int32 of integers).

    Args:
      a: the left matrix, of shape `(m, k)`, or `(k, m)` when it is transposed.
      b: the right matrix, of shape `(k, n)`, or `(n, k)` when it is transposed.
      trans_a, trans_b: whether to transpose.
      allow_tf32: whether fewer digits are enough; instead of `precision`.
      precision: as of `lax.dot_general`.

    Returns:
      The product, of shape `(m, n)`.

    Raises:
      ValueError: an operand is no matrix, or both `allow_tf32` and `precision` are given.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> print(plgpu.dot(jnp.ones((1, 2)), jnp.ones((2, 1))))
    [[2.]]
    """
    from ferrax.dtypes import issubdtype
    from ferrax.lax import Precision, dot_general
    from ferrax.numpy import asarray, promote_types

    a, b = asarray(a), asarray(b)
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = Precision.HIGH if allow_tf32 else Precision.HIGHEST
    dtype = promote_types(_wide(a.dtype), _wide(b.dtype))
    kind = np.int32 if issubdtype(dtype, np.integer) else np.float64 if dtype == np.float64 else np.float32
    axes = ((0 if trans_a else 1,), (1 if trans_b else 0,))
    return dot_general(a, b, (axes, ((), ())), precision=precision, preferred_element_type=kind)


def _wide(dtype: Any) -> Any:
    """A dtype that others meet, for those that meet none."""
    from ferrax.numpy import bfloat16

    return {"int4": np.int8, "float8_e4m3b11fnuz": bfloat16}.get(np.dtype(dtype).name, dtype)


def _atomic(name: str, change: Callable[[Any, Any], Any], what: str, exact: bool = True) -> Callable[..., Any]:
    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        dtype = np.dtype(_checked(x_ref_or_view).dtype).name
        if dtype == "float16" and exact:
            raise ValueError(f"`atomic_{name}` does not support f16.")
        if dtype in ("bool", "int8", "int16", "bfloat16"):
            raise ValueError(f"`atomic_{name}` does not support {dtype}.")
        return _rmw(x_ref_or_view, idx, val, change, mask)

    result = {"add": 9, "max": 6, "min": 3, "and": 2, "or": 7, "xor": 5, "xchg": 3}[name]
    atomic.__name__ = atomic.__qualname__ = f"atomic_{name}"
    atomic.__doc__ = f"""{what} at an index of a reference, and gives what was there.

    Args:
      x_ref_or_view: a reference or a view.
      idx: an index.
      val: array of the shape of what is there.
      mask: boolean array; where it is false, nothing changes.

    Returns:
      An array.

    Raises:
      ValueError: the dtype is one that GPUs have no such operation for.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> ref = jax.new_ref(jnp.array([6, 2]))
    >>> print(plgpu.atomic_{name}(ref, 0, 3))
    6
    >>> print(ref[0])
    {result}
    """
    return atomic


def _numpy(name: str) -> Callable[[Any, Any], Any]:
    def call(old: Any, val: Any) -> Any:
        from ferrax import numpy

        return getattr(numpy, name)(old, val)

    return call


atomic_add = _atomic("add", lambda old, val: old + val, "Adds to the elements", exact=False)
atomic_max = _atomic("max", _numpy("maximum"), "Writes the larger of two elements")
atomic_min = _atomic("min", _numpy("minimum"), "Writes the smaller of two elements")
atomic_and = _atomic("and", lambda old, val: old & val, "Writes the bits that two elements have in common")
atomic_or = _atomic("or", lambda old, val: old | val, "Writes the bits that one of two elements has")
atomic_xor = _atomic("xor", lambda old, val: old ^ val, "Writes the bits that two elements differ in")
atomic_xchg = _atomic("xchg", lambda old, val: val, "Writes elements")


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Writes a value where another one is, and gives what was there.

    Args:
      ref: reference to a scalar.
      cmp: the value that must be there.
      val: the value to be written.

    Returns:
      A scalar.

    Raises:
      ValueError: something is no scalar.

    >>> import ferrax as jax
    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> ref = jax.new_ref(3)
    >>> print(plgpu.atomic_cas(ref, 3, 5), ref[...])
    3 5
    """
    from ferrax.numpy import shape, where

    if _checked(ref).shape or shape(cmp) or shape(val):
        raise ValueError("atomic_cas takes a reference to a scalar, and scalars")
    old = ref[...]
    ref.set(where(old == cmp, val, old).astype(old.dtype), ...)
    return old


def debug_barrier() -> None:
    """Waits for all threads of a kernel; there is one.

    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> plgpu.debug_barrier()
    """


def max_contiguous(x: Any, values: Any) -> Any:
    """The array, with a promise for compilers that as many elements follow each other.

    Args:
      x: array of integers.
      values: how many do, along each axis.

    Returns:
      The array.

    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> plgpu.max_contiguous(8, 4)
    8
    """
    return x


def approx_tanh(x: Any) -> Any:
    """The hyperbolic tangent.

    Args:
      x: array of floats; exact to the last digits here.

    Returns:
      An array.

    Raises:
      TypeError: the array is not of floats.

    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> print(plgpu.approx_tanh(0.0))
    0.0
    """
    from ferrax.dtypes import issubdtype
    from ferrax.numpy import asarray, tanh

    x = asarray(x)
    if not issubdtype(x.dtype, np.floating):
        raise TypeError(f"approx_tanh does not accept {x.dtype} arrays")
    return tanh(x)


def elementwise_inline_asm(asm: str, *, args: Any, constraints: str, pack: int, result_shape_dtypes: Any) -> Any:
    """Not supported: there is no assembler.

    Args:
      asm, args, constraints, pack, result_shape_dtypes: what an assembler would need.

    Returns:
      Nothing.

    Raises:
      NotImplementedError: always.

    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> plgpu.elementwise_inline_asm("", args=[], constraints="", pack=1, result_shape_dtypes=[])
    Traceback (most recent call last):
    NotImplementedError: elementwise_inline_asm is not implemented: kernels are interpreted
    """
    raise NotImplementedError("elementwise_inline_asm is not implemented: kernels are interpreted")


_expose(globals())
