"""What the extension module tells of while a setting asks to look at what runs: transfer guards, `jax_no_execution`,
`jax_debug_key_reuse`.

`crates/ferrax-python/src/watch.rs` calls these functions, which are not watched themselves: each of the library's
functions that is called, numbers and arrays that are handed to operations, each operation and program that runs. Only
what the user does counts, so that functions of the library may use numbers as they like: whoever called is found by its
frame. Read next: `_transfers.py`, `experimental/_key_marks.py`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._frames import user_frame
from ferrax._transfers import active, check, is_host_data
from ferrax.config import config

__all__ = ["called", "copied", "handed", "ran", "read", "traced"]

#: Functions that make an array of a number of the host's, which the call does not name.
_FILLING = frozenset(("zeros", "ones", "empty", "eye", "identity", "tri", "linspace"))
#: Functions whose first argument becomes an array whatever it is, or several.
_CONVERTING = frozenset(("array", "asarray", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"))
#: Functions with a parameter whose integers say how the others are moved, and go nowhere themselves.
_COUNTING = {"repeat": "repeats", "roll": "shift"}
_PUTTING = frozenset(("device_put", "device_put_replicated", "device_put_sharded"))


def _is_user(depth: int = 2) -> bool:
    """Whether the frame that came to the extension module is the user's."""
    frame = sys._getframe(depth)
    return frame is user_frame(depth + 1)


@functools.cache
def _signature(function: Any) -> tuple[inspect.Signature, frozenset[str]] | None:
    """A function's signature, and the parameters that are data."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    data = [name for name, p in signature.parameters.items() if "ArrayLike" in str(p.annotation)]
    if function.__name__ in _CONVERTING:
        data.append(next(iter(signature.parameters)))
    if function.__qualname__ == "_ScalarMeta.__call__":
        data.append("x")
    return signature, frozenset(data)


def called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A function of the library's that is written in Python is called, outside of traces.

    Args:
      function: the function.
      args: its positional arguments.
      kwargs: the others.

    Raises:
      RuntimeError: nothing is to run.
      JaxRuntimeError: data of the host's that it is given is not to be transferred.

    >>> import ferrax.numpy as jnp
    >>> called(jnp.zeros, (3,), {})
    """
    name = getattr(function, "__name__", "")
    if not _is_user():
        return
    if config.read("jax_no_execution") and name in _FILLING | {"array", "asarray"}:
        raise _not_executed(name)
    if name in _PUTTING:
        _put(*args[:2], **{k: v for k, v in kwargs.items() if k in ("x", "device")})
        return
    if not active("host_to_device"):
        return
    if name in _FILLING and str(getattr(function, "__module__", "")).startswith("ferrax.numpy"):
        _to_device(kwargs.get("dtype") or np.float32, ())
        return
    known = _signature(function)
    if known is None:
        return
    signature, data = known
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        # the call says it itself
        return
    for parameter in data.intersection(given):
        counts = _COUNTING.get(name) == parameter and _are_counts(given[parameter])
        if not counts and (name != "arange" or len(given) > 1):
            _check_handed(given[parameter])


def _are_counts(x: Any) -> bool:
    return type(x) is int or (isinstance(x, (list, tuple)) and all(type(n) is int for n in x))


def _check_handed(x: Any) -> None:
    """Looks at an argument that is data, or a list of such."""
    if is_host_data(x):
        check("host_to_device", _ferrax.typeof(x), _default_device())
    elif isinstance(x, (list, tuple)):
        leaves = tree_util.tree_leaves(x)
        if leaves and all(isinstance(leaf, (bool, int, float, complex)) for leaf in leaves):
            leaves = [np.asarray(x)]
        for leaf in leaves:
            _check_handed(leaf)


def _to_device(dtype: Any, shape: tuple[int, ...]) -> None:
    check("host_to_device", _ferrax.typeof(np.zeros(shape, dtype)), _default_device())


def _default_device() -> Any:
    return _ferrax.get_default_device() or next(iter(_ferrax.devices(None)))


def _put(x: Any, device: Any = None) -> None:
    """Looks at what is put on a device."""
    for leaf in tree_util.tree_leaves(x):
        if is_host_data(leaf):
            to = device if isinstance(device, _ferrax.Device) else _default_device()
            check("host_to_device", _ferrax.typeof(leaf), to, explicit=True)
        elif isinstance(leaf, _ferrax.ArrayImpl) and device is not None:
            to = {device} if isinstance(device, _ferrax.Device) else getattr(device, "device_set", None)
            if to is not None and set(to) != leaf.devices():
                check("device_to_device", _ferrax.typeof(leaf), device, explicit=True)


def handed(x: Any) -> None:
    """An operation that runs at once is given something of the host's.

    Args:
      x: a number or an array.

    Raises:
      JaxRuntimeError: it is not to be transferred.

    >>> handed(1.0)
    """
    if active("host_to_device") and _is_user():
        _check_handed(x)


def copied(x: Any) -> None:
    """The host reads an array that is on another device than the CPU.

    Args:
      x: the array.

    Raises:
      JaxRuntimeError: it is not to be transferred.

    >>> import ferrax
    >>> copied(ferrax.numpy.ones(2))
    """
    if not active("device_to_host"):
        return
    end = user_frame()
    frame, explicit = sys._getframe(1), False
    while frame is not end and frame.f_back is not None:
        explicit |= frame.f_code.co_name == "device_get"
        frame = frame.f_back
    check("device_to_host", _ferrax.typeof(x), "the host", explicit=explicit)


def read(x: Any, index: Any) -> Any:
    """`x[index]`.

    Args:
      x: an array with data.
      index: the index.

    Returns:
      The part.

    Raises:
      RuntimeError: nothing is to run.
      JaxRuntimeError: the index is not to be transferred.
      KeyReuseError: the part has keys that are used up.

    >>> import ferrax.numpy as jnp
    >>> read(jnp.arange(3), 1)
    Array(1, dtype=int32)
    """
    if _ferrax.is_eager():
        if config.read("jax_no_execution"):
            raise _not_executed("dynamic_slice")
        parts = index if isinstance(index, tuple) else (index,)
        if active("host_to_device") and _is_user():
            for part in parts:
                bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
                for bound in bounds:
                    _check_handed(bound)
        if config.read("jax_debug_key_reuse"):
            from ferrax.experimental import _key_marks

            if _key_marks.is_key(x) and not any(isinstance(part, _ferrax.Array) for part in parts):
                _key_marks.index(x, index)
    return x[index]


def _not_executed(name: str) -> RuntimeError:
    return RuntimeError(f"JAX tried to execute function jit({name}), but the no_execution config option is set")


def ran(name: str, whole: bool, program: Any, args: list[Any], results: list[Any] | None) -> None:
    """An operation or a program is to run, or has run.

    Args:
      name: its name.
      whole: whether it is a program.
      program: the program, or that of the one operation where there are keys, or None.
      args: the arguments.
      results: the results, once there are some.

    Raises:
      RuntimeError: nothing is to run.
      JaxRuntimeError: an argument is not to be transferred to where it runs.
      KeyReuseError: it uses keys that are used up.

    >>> ran("sin", False, None, [], None)
    """
    if results is None:
        if config.read("jax_no_execution"):
            raise _not_executed(name)
        if active("device_to_device"):
            _check_devices(args)
    if program is None or not config.read("jax_debug_key_reuse"):
        return
    from ferrax.experimental import _key_marks

    if results is None:
        what = "jit-compiled function" if whole or name == "jit" else name
        _key_marks.before(what, program, args)
    else:
        _key_marks.after(program, args, results)


def traced(program: Any) -> None:
    """A program was traced, outside of other traces.

    Args:
      program: the program.

    Raises:
      KeyReuseError: it uses a key twice.

    >>> import ferrax as jax
    >>> traced(jax.make_jaxpr(lambda x: x)(1.0))
    """
    if config.read("jax_debug_key_reuse"):
        from ferrax.experimental._key_signatures import signature_of

        signature_of(program)


def _check_devices(args: list[Any]) -> None:
    """Looks at arguments that are moved to the device of the committed one."""
    arrays = [x for x in args if isinstance(x, _ferrax.ArrayImpl)]
    committed = next((x for x in arrays if x.committed), None)
    if committed is None:
        return
    for x in arrays:
        if x.devices() != committed.devices():
            check("device_to_device", _ferrax.typeof(x), next(iter(committed.devices())))
