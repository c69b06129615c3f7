"""What kernels do with memory beside indexing: masked and atomic access, scratch memory, semaphores, copies.

Everything runs at once and in order here, so that an atomic operation is a plain one, and a copy is done when it is
started; semaphores count all the same, so that a wait for what nobody signals shows in their values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax.experimental.pallas._mapping import uninitialized

__all__ = [
    "DeviceIdType",
    "checked_reference",
    "empty",
    "empty_like",
    "empty_ref_like",
    "load",
    "read_modify_write",
    "run_scoped",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "store",
    "swap",
    "with_scoped",
]


def checked_reference(ref: Any) -> Any:
    """Raises where what memory is asked of is no reference."""
    if not _ferrax.is_reference(ref):
        raise ValueError(f"Can only load from and store to references, got {type(ref).__name__}.")
    return ref


def _view(ref: Any, idx: Any) -> Any:
    """A view of a reference at an index, or the reference where there is none."""
    ref = checked_reference(ref)
    return ref if idx is None or idx is Ellipsis else ref.at[idx]


def _parts(view: Any) -> tuple[Any, Any]:
    """The view before the last index, and that index as arrays that do not move windows into the array."""
    from ferrax._ref_views import IndexTransform, TransformedRef

    transforms = getattr(view, "transforms", ())
    if not transforms or not isinstance(transforms[-1], IndexTransform):
        return view, None
    before = TransformedRef(view.ref, transforms[:-1])
    return before, _as_arrays(transforms[-1].idx, before.shape)


def _as_arrays(idx: Any, shape: tuple[int, ...]) -> Any:
    """An index of windows and numbers as index arrays; one of arrays stays as it is."""
    from ferrax._slices import Slice
    from ferrax.numpy import arange, asarray

    entries = list(idx) if isinstance(idx, tuple) else [idx]
    if Ellipsis in [e for e in entries if e is Ellipsis]:
        at = next(i for i, e in enumerate(entries) if e is Ellipsis)
        entries[at : at + 1] = [slice(None)] * (len(shape) - len(entries) + 1)
    entries += [slice(None)] * (len(shape) - len(entries))
    windows = [isinstance(e, (slice, Slice)) for e in entries]
    if any(not w and np.ndim(e) for w, e in zip(windows, entries, strict=True)):
        return tuple(entries)
    n, out, axis = sum(windows), [], 0
    for entry, is_window, size in zip(entries, windows, shape, strict=True):
        if not is_window:
            out.append(asarray(entry, np.int32))
            continue
        part = Slice.from_slice(entry, size) if isinstance(entry, slice) else entry
        places = asarray(part.start, np.int32) + arange(part.size, dtype=np.int32) * part.stride
        out.append(places.reshape((-1,) + (1,) * (n - axis - 1)))
        axis += 1
    return tuple(out)


def load(
    ref: Any,
    idx: Any = None,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """Reads what a mask selects.

    Args:
      ref: a reference or a view.
      idx: an index; None for all of it.
      mask: boolean array that broadcasts against what is read; where it is false, indices may be out of bounds.
      other: what stands there in the result.
      cache_modifier, eviction_policy, volatile: hints for compilers.

    Returns:
      An array. Where the mask is false and there is no `other`, elements may be any.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> ref = jax.new_ref(jnp.arange(3.0))
    >>> places = jnp.arange(4)
    >>> print(plgpu.load(ref.at[places], mask=places < 3, other=-1.0))
    [ 0.  1.  2. -1.]
    """
    from ferrax.numpy import asarray, broadcast_shapes, where

    view = _view(ref, idx)
    if mask is None:
        return view[...]
    before, places = _parts(view)
    found = before[...] if places is None else before[...][places]
    try:
        broadcast_shapes(found.shape, np.shape(mask))
    except ValueError:
        raise ValueError(f"Cannot broadcast mask shape {np.shape(mask)} to load shape {found.shape}") from None
    return found if other is None else where(mask, found, asarray(other, found.dtype))


def swap(
    ref: Any, idx: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None, _function_name: str = "swap"
) -> Any:
    """Writes where a mask selects, and gives what was there (and `val` where it does not).

    Args:
      ref, idx, mask: as of `load`.
      val: array of the shape and dtype of what is there.
      eviction_policy: a hint for compilers.
    """
    from ferrax.numpy import where

    view = _view(ref, idx)
    if mask is None:
        return view.swap(val, ...)
    before, places = _parts(view)
    target = before if places is None else before.at[places]
    old = target[...]
    target.swap(where(mask, val, old).astype(old.dtype), ...)
    return where(mask, old, val)


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes where a mask selects.

    Args:
      ref, mask: as of `load`.
      val: array of the shape and dtype of what is there.
      eviction_policy: a hint for compilers.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.pallas import triton as plgpu
    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> places = jnp.arange(4)
    >>> plgpu.store(ref.at[places], places + 1.0, mask=places > 0)
    >>> print(ref[...])
    [0. 2. 3.]
    """
    swap(ref, None, val, mask=mask, eviction_policy=eviction_policy)


def read_modify_write(ref: Any, idx: Any, val: Any, change: Callable[[Any, Any], Any], mask: Any = None) -> Any:
    """Changes what is at an index, and gives what was there."""
    from ferrax.numpy import where

    view = _view(ref, idx)
    old = view[...]
    new = change(old, val)
    view.swap(new if mask is None else where(mask, new, old), ...)
    return old


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """Calls a function with scratch memory that ends with the call.

    Args:
      f: function of references; its result is given back.
      *types: types of memory, as `pallas.tpu.VMEM((8, 128), jnp.float32)`.
      collective_axes: must be empty.
      **kw_types: those of keyword arguments.

    Returns:
      What the function returns.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> def f(scratch):
    ...     scratch[...] = jnp.ones(3)
    ...     return scratch[...] + 1
    >>> print(pl.run_scoped(f, pl.tpu.VMEM((3,), jnp.float32)))
    [2. 2. 2.]
    """
    from ferrax._refs import make

    if collective_axes not in ((), None):
        raise NotImplementedError("run_scoped with collective_axes is not implemented")

    def made(t: Any) -> Any:
        aval = t.get_array_aval()
        return make(uninitialized(aval.shape, aval.dtype))

    args, kwargs = tree_util.tree_map(made, (types, kw_types), is_leaf=lambda t: hasattr(t, "get_array_aval"))
    return f(*args, **kwargs)


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Any]:
    """A decorator: the function gets scratch memory behind its arguments, see `run_scoped`.

    Args:
      *types, collective_axes, **kw_types: as of `run_scoped`.

    Returns:
      The decorator.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> @pl.with_scoped(pl.tpu.VMEM((2,), jnp.float32))
    ... def f(x, scratch):
    ...     scratch[...] = x
    ...     return 2 * scratch[...]
    >>> print(f(jnp.ones(2)))
    [2. 2.]
    """

    def decorator(f: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any) -> Any:
            call = lambda *refs, **named: f(*args, *refs, **named)
            return run_scoped(call, *types, collective_axes=collective_axes, **kw_types)

        return inner

    return decorator


def empty(shape: Any, dtype: Any) -> Any:
    """An array of unspecified elements.

    Args:
      shape, dtype: those of the array.

    Returns:
      The array.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.empty((2, 3), "int8").shape
    (2, 3)
    """
    from ferrax.numpy import empty as zeros

    return zeros(shape, dtype)


def empty_like(x: Any) -> Any:
    """A tree of arrays of unspecified elements.

    Args:
      x: tree of what has shapes and dtypes.

    Returns:
      A tree of its structure.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> pl.empty_like({"a": jnp.ones(3)})["a"].shape
    (3,)
    """

    def made(leaf: Any) -> Any:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(f"empty_like takes what has a shape and a dtype, got {type(leaf).__name__}")
        return empty(leaf.shape, leaf.dtype)

    return tree_util.tree_map(made, x)


def empty_ref_like(x: Any) -> Any:
    """A reference to an array of unspecified elements.

    Args:
      x: a type of memory, or a `ShapeDtypeStruct`.

    Returns:
      A `Ref`.

    Raises:
      ValueError: `x` is neither.

    >>> import ferrax as jax
    >>> from ferrax.experimental import pallas as pl
    >>> pl.empty_ref_like(jax.ShapeDtypeStruct((3,), "int32")).shape
    (3,)
    """
    from ferrax import ShapeDtypeStruct
    from ferrax._refs import make
    from ferrax.experimental.pallas._specs import MemoryRef

    if not isinstance(x, (MemoryRef, ShapeDtypeStruct)):
        raise ValueError(f"empty_ref_like does not support {type(x)}")
    return make(empty(x.shape, x.dtype))


class DeviceIdType(enum.Enum):
    """How devices are named; the interpreter has one.

    Args:
      value: the way's name.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.DeviceIdType.MESH.value
    'mesh'
    """

    MESH = "mesh"
    LOGICAL = "logical"


def _only_here(device_id: Any) -> None:
    if device_id is not None:
        raise NotImplementedError("semaphores of other devices are not implemented: kernels run on one device")


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: Any = None,
) -> None:
    """Adds to a semaphore.

    Args:
      sem_or_view: reference to a semaphore, or a view.
      inc: what is added.
      device_id: must be None.
      device_id_type, core_index: accepted for compatibility.

    Raises:
      NotImplementedError: another device is meant.

    >>> from ferrax.experimental import pallas as pl
    >>> def f(sem):
    ...     pl.semaphore_signal(sem, 2)
    ...     return pl.semaphore_read(sem)
    >>> print(pl.run_scoped(f, pl.tpu.SemaphoreType.REGULAR))
    2
    """
    _only_here(device_id)
    _add_to(sem_or_view, inc)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore has a value, and takes it away.

    Args:
      sem_or_view: reference to a semaphore, or a view.
      value: the value.
      decrement: whether it is taken away.

    >>> from ferrax.experimental import pallas as pl
    >>> def f(sem):
    ...     pl.semaphore_signal(sem, 3)
    ...     pl.semaphore_wait(sem, 2)
    ...     return pl.semaphore_read(sem)
    >>> print(pl.run_scoped(f, pl.tpu.SemaphoreType.REGULAR))
    1
    """
    if decrement:
        _add_to(sem_or_view, -value)


def semaphore_read(sem_or_view: Any) -> Any:
    """The value of a semaphore.

    Args:
      sem_or_view: reference to a semaphore, or a view.

    Returns:
      A scalar of dtype int32.

    >>> from ferrax.experimental import pallas as pl
    >>> print(pl.run_scoped(pl.semaphore_read, pl.tpu.SemaphoreType.REGULAR))
    0
    """
    return _counted(sem_or_view)[...].astype(np.int32)


def _counted(sem: Any) -> Any:
    if not _ferrax.is_reference(sem):
        raise TypeError(f"a semaphore is a reference or a view of one, got {type(sem).__name__}")
    return sem


def _add_to(sem: Any, value: Any) -> None:
    from ferrax.numpy import asarray

    _counted(sem).set((sem[...] + asarray(value, np.int16)).astype(np.int16), ...)
