"""Checks of the shape, dtype and parameter arguments that the samplers share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._core import canonicalize_dtype
from ferrax._out_sharding import with_out_sharding
from ferrax._shapes import broadcast_shapes, static_shape
from ferrax.random._keys import checked_key

_Sampler = TypeVar("_Sampler", bound=Callable[..., Any])


def placed(sampler: _Sampler) -> _Sampler:
    """A sampler whose `out_sharding` says where its result goes."""

    @functools.wraps(sampler)
    def sampled(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is None:
            return sampler(*args, **kwargs)
        return with_out_sharding(lambda: sampler(*args, **kwargs), out_sharding, sampler.__name__)

    # warnings name the function that the user called by its frame
    sampled.__code__ = sampled.__code__.replace(  # type: ignore[attr-defined]
        co_name=sampler.__name__, co_qualname=sampler.__qualname__
    )
    return sampled  # type: ignore[return-value]


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


def broadcast_shape(shape, *params) -> tuple[int, ...]:
    """The shape asked for, checked against the parameters' shapes, or what these broadcast to when None."""
    shapes = [np.shape(p) for p in params]
    if shape is None:
        return tuple(broadcast_shapes(*shapes))
    shape = static_shape(shape)
    try:
        fits = broadcast_shapes(shape, *shapes) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, *shapes]}")
    return shape


def sampler(name: str, key, shape, dtype, *params, kind: str = "float"):
    """What a sampler works with: a key, the shape that is asked for, which parameters fit, and a dtype of a kind."""
    key, _ = checked_key(name, key)
    dtype = checked_dtype(name, float_or(dtype), kind)
    return key, broadcast_shape(shape, *params) if params else static_shape(shape), dtype


def as_dtype(x, dtype):
    """``x`` as an array of exactly that dtype."""
    return lax.convert_element_type(x, dtype)
