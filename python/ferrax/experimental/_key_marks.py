"""Which keys are used up, of those that are data: looked at before and after each operation and program that runs.

A mark belongs to an array, not to the keys in it: a copy of the same bits is a fresh key, as in JAX. Arrays that have
marks live in a table as long as anybody else holds them. Read next: `_watch.py`, which is told what runs.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._frames import user_frame
from ferrax.errors import KeyReuseError
from ferrax.experimental._key_signatures import Mask, is_key, signature_of, whole

__all__ = ["after", "before", "index"]

#: By what tells an array from the others: the array, which of its keys are used up, where they were, and the array that
#: it is with more axes, if any.
_marks: dict[int, tuple[Any, Mask, str, Any]] = {}
_lock = threading.RLock()
#: At how many marks those of arrays that nobody else holds are looked for.
_limit = 64


def _mark(key: Any) -> tuple[Mask, str]:
    """Which keys of an array are used up, and where."""
    found = _marks.get(_ferrax.array_identity(key)[0])
    return (False, "") if found is None else found[1:3]


def _set(key: Any, mask: Mask, where: str, source: Any = None) -> None:
    global _limit
    with _lock:
        identity = _ferrax.array_identity(key)[0]
        if source is None and identity in _marks:
            source = _marks[identity][3]
        if source is None and not np.any(mask):
            _marks.pop(identity, None)
            return
        _marks[identity] = (key, mask, where, source)
        if source is not None and np.all(mask):
            _set(source, True, where)
        if len(_marks) > _limit:
            for other, (array, *_) in list(_marks.items()):
                # `index` is given the user's own object, which the table's handle is then
                if _ferrax.array_identity(array)[1] == 1 and sys.getrefcount(array) <= 3:
                    del _marks[other]
            _limit = max(64, 2 * len(_marks))


def _consumed(self: Any) -> Any:
    """Which keys of an array are used up: a boolean, or an array of them."""
    return whole(np.asarray(_mark(self)[0]))


for _name, _member in {"_consumed": property(_consumed)}.items():
    setattr(_ferrax.PRNGKeyArray, _name, _member)


def _place(frame: types.FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _refuse(what: str, position: int, where: str) -> KeyReuseError:
    return KeyReuseError(
        f"Previously-consumed key passed to {what} at index {position}. It was used at {where}; split it, and use each "
        "new key once, or jax.random.clone it where the same numbers are wanted again."
    )


def before(what: str, program: Any, args: list[Any]) -> None:
    """Looks at the keys that something is given.

    Args:
      what: how to name it.
      program: its program.
      args: its arguments.

    Raises:
      KeyReuseError: it uses keys that are used up, or a key twice.

    >>> import ferrax as jax
    >>> before("nothing", jax.make_jaxpr(lambda x: x)(1.0), [1.0])
    """
    signature = signature_of(program)
    held = [(len(args) + n, x, mask) for n, (x, mask) in enumerate(signature.captured.values())]
    for position, x, mask in [*((i, args[i], mask) for i, mask in signature.sinks.items()), *held]:
        used, where = _mark(x)
        if np.any(np.logical_and(used, mask)):
            raise _refuse(what, position, where)


def after(program: Any, args: list[Any], results: list[Any]) -> None:
    """Takes note of the keys that something has used and given.

    Args:
      program: its program.
      args: its arguments.
      results: its results.

    >>> import ferrax as jax
    >>> after(jax.make_jaxpr(lambda x: x)(1.0), [1.0], [1.0])
    """
    signature, place = signature_of(program), _place(user_frame())
    for x, mask in [*((args[i], mask) for i, mask in signature.sinks.items()), *signature.captured.values()]:
        _set(x, np.logical_or(_mark(x)[0], mask), place)
    for i, result in enumerate(results):
        if not is_key(result):
            continue
        if i in signature.forwards:
            _forward(result, args[signature.forwards[i]], len(program.eqns) == 1 and program.eqns[0].primitive.name)
        elif i not in signature.sources:
            _set(result, True, place)


def _forward(result: Any, operand: Any, operation: Any) -> None:
    """The mark of an operand goes to the result that it is, which may be the operand itself.

    A key with more axes, which `stack` uses, is the key: using it up uses up both.
    """
    mask, where = _mark(operand)
    if _ferrax.array_identity(result)[0] == _ferrax.array_identity(operand)[0]:
        return
    if np.ndim(mask) and result.shape != operand.shape:
        # part of an array in another shape: which part is not known
        mask = False
    expanded = operation == "broadcast_in_dim" and result.size == operand.size
    _set(result, mask, where, operand if expanded else None)


def index(keys: Any, place: Any) -> None:
    """Looks at keys that are taken out of an array by static indices, and takes note that they were.

    Args:
      keys: the array.
      place: the index.

    Raises:
      KeyReuseError: some of them were used before.

    >>> import ferrax as jax
    >>> index(jax.random.split(jax.random.key(0)), 0)
    """
    taken = np.zeros(keys.shape, bool)
    taken[place] = True
    used, where = _mark(keys)
    if np.any(np.logical_and(used, taken)):
        raise _refuse("slice", 0, where)
    _set(keys, whole(np.logical_or(used, taken)), _place(user_frame()))
