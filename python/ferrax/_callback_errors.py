"""What code of the user that a program calls raises, as the program's error.

As in JAX it is a `JaxRuntimeError` whose text is the traceback. It is an instance of the user's own class too, so that
`except ValueError` finds what a callback raised, be it called from a program or not. Read next: `_callbacks.py`.
"""

from __future__ import annotations

import functools
import traceback
import types
from typing import Any

from ferrax import _ferrax
from ferrax._frames import is_of_library

#: The status code of XLA's for failures inside.
_INTERNAL = 13
#: The flag of types that are made while Python runs (`Py_TPFLAGS_HEAPTYPE`): the others lay out what an error keeps.
_HEAP = 1 << 9


@functools.lru_cache
def _joined(own: Any) -> type[Exception]:
    """The class of both kinds.

    Raises:
      TypeError: no class can be both.
    """
    members = {
        "__module__": _ferrax.JaxRuntimeError.__module__,
        "__str__": lambda self: self.error_message,
        "__reduce__": lambda self: (_of_program, (self.raised, self.error_message)),
    }
    return types.new_class("JaxRuntimeError", (_ferrax.JaxRuntimeError, own), {}, lambda space: space.update(members))


def _of_program(error: Exception, text: str) -> Exception:
    own: Any = type(error)
    builtin = next(c for c in own.__mro__ if not c.__flags__ & _HEAP)
    try:
        joined = builtin.__new__(_joined(own), *error.args)
        for base in builtin.__mro__:  # what built-in classes keep outside of `__dict__`: `OSError.errno`
            for name, member in vars(base).items():
                if isinstance(member, types.MemberDescriptorType):
                    setattr(joined, name, getattr(error, name))
        vars(joined).update(vars(error))
        _ferrax.JaxRuntimeError.__init__(joined, text, _INTERNAL)
    except Exception:  # classes that cannot be joined, made by such arguments or be told more
        return error
    joined.raised = error
    return joined


def of_program(error: Exception) -> Exception:
    """The error of a program whose call of the host raised `error`.

    Args:
      error: what the user's code raised.

    Returns:
      A `JaxRuntimeError` that is of the class of `error` as well, with its attributes, and `error` itself as `raised`;
      `error` where it is a `JaxRuntimeError` already, or of a class that no other can be derived from so.
    """
    if isinstance(error, _ferrax.JaxRuntimeError):
        return error
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list([f for f in told.stack if not is_of_library(f.filename)])
    text = "".join(told.format()).rstrip()
    joined = _of_program(error, f"INTERNAL: CpuCallback error calling callback: {text}")
    return joined.with_traceback(error.__traceback__)
