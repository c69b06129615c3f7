"""Checks of the shape, dtype and parameter arguments that the samplers share."""

from __future__ import annotations

import operator

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._core import canonicalize_dtype, is_tracer
from ferrax._texts import short
from ferrax.errors import ConcretizationTypeError

_KINDS = {
    "float": (jnp.floating,),
    "float or complex": (jnp.floating, jnp.complexfloating),
    "unsigned int": (jnp.unsignedinteger,),
    "int": (jnp.integer,),
}


def float_or(dtype):
    """``dtype``, or the default float when None, as 64-bit types being enabled or not makes it."""
    return canonical(float if dtype is None else dtype)


def int_or(dtype):
    """``dtype``, or the default integer when None."""
    return canonical(int if dtype is None else dtype)


def canonical(dtype):
    """The dtype that an array asked for with ``dtype`` has; warns where it has fewer bits."""
    return canonicalize_dtype(dtype, "")


def checked_dtype(function: str, dtype, kind: str = "float"):
    """``dtype`` made canonical, or ValueError where it is not of that kind."""
    dtype = canonical(dtype)
    if not any(jnp.issubdtype(dtype, one) for one in _KINDS[kind]):
        article = "an" if kind[0] in "aeiou" else "a"
        raise ValueError(f"dtype argument to `{function}` must be {article} {kind} dtype, got {dtype}")
    return dtype


def checked_shape(shape, function: str = "") -> tuple[int, ...]:
    """``shape`` as a tuple of integers; a single integer stands for one axis."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    for traced in filter(is_tracer, sizes):
        traced._check_leak()
        raise ConcretizationTypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short(shape)}: the shape argument "
            f"of {function or 'a sampler'} is traced; mark it static (static_argnums)."
        )
    try:
        sizes = tuple(operator.index(n) for n in sizes)
    except TypeError:
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {short(shape)}."
        ) from None
    if any(n < 0 for n in sizes):
        raise TypeError(f"shape must have every element be nonnegative, got {sizes}.")
    return sizes


def broadcast_shape(shape, *params) -> tuple[int, ...]:
    """The shape asked for, checked against the parameters' shapes, or what these broadcast to when None."""
    shapes = [np.shape(p) for p in params]
    if shape is None:
        return tuple(np.broadcast_shapes(*shapes))
    shape = checked_shape(shape)
    try:
        fits = np.broadcast_shapes(shape, *shapes) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, *shapes]}")
    return shape


def as_dtype(x, dtype):
    """``x`` as an array of exactly that dtype."""
    return lax.convert_element_type(x, dtype)
