"""Notes for XLA on operations: they change no results, and stand in lowered programs as `mhlo.frontend_attributes`.

A context's notes are on the operations that are traced inside (`ferrax_base::scopes`), those of a value on the
operation that gives it. Read next: `_stablehlo_notes.py`, which writes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._primitives import Primitive
from ferrax._stablehlo_notes import dictionary, quoted
from ferrax._user_contexts import make_user_context
from ferrax.interpreters import ad, batching, mlir

__all__ = ["set_xla_metadata"]

#: The notes in force on this thread, by name: what is traced depends on them.
metadata_context = make_user_context(())


def text_of(notes: dict[str, Any]) -> str:
    """Notes as attributes of an operation; empty for none."""
    said = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in notes.items() if v is not None}
    return dictionary((k, quoted(v)) for k, v in said.items()) if said else ""


class XlaMetadataContextManager:
    """A context whose operations have notes; it decorates functions, too.

    Args:
      updates: notes by name; None takes one of the notes around away.
    """

    __slots__ = ("_before", "updates")

    def __init__(self, updates: dict[str, Any]):
        self.updates = updates
        self._before: list[Any] = []

    def __enter__(self) -> None:
        notes = {k: v for k, v in {**dict(metadata_context.value), **self.updates}.items() if v is not None}
        entered = metadata_context(tuple(sorted(notes.items())))
        entered.__enter__()
        self._before.append((entered, _ferrax.set_notes(text_of(notes))))

    def __exit__(self, *error: Any) -> None:
        entered, before = self._before.pop()
        _ferrax.undo_notes(before)
        entered.__exit__(*error)

    def __call__(self, f: Callable[..., Any]) -> Any:
        return _XlaMetadataWrapper(f, self)


class _XlaMetadataWrapper:
    """A function in a context; so are the functions that are its attributes (`lower` of a jitted one)."""

    def __init__(self, f: Any, ctx: XlaMetadataContextManager):
        self._f, self._ctx = f, ctx
        functools.wraps(f)(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._ctx:
            return self._f(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._f, name)
        if not callable(attribute):
            return attribute
        return functools.wraps(attribute)(lambda *args, **kwargs: self._inside(attribute, *args, **kwargs))

    def _inside(self, attribute: Any, /, *args: Any, **kwargs: Any) -> Any:
        with self._ctx:
            return attribute(*args, **kwargs)


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Notes for XLA, on the operations of a context, of a function or on a value.

    Args:
      x: a tree of arrays; without it, the result is a context, which decorates functions as well.
      **kwargs: notes by name; None takes a note of the contexts around away.

    Returns:
      The arrays, or the context.

    Raises:
      TypeError: `x` has leaves that are no arrays.

    >>> import ferrax as jax
    >>> from ferrax.experimental.xla_metadata import set_xla_metadata
    >>> def f(x):
    ...     with set_xla_metadata(kind="loss"):
    ...         return x + 1
    >>> 'mhlo.frontend_attributes = {kind = "loss"}' in jax.jit(f).lower(1).as_text()
    True
    """
    if x is None:
        return XlaMetadataContextManager(kwargs)
    notes = tuple(sorted(kwargs.items()))
    return tree_util.tree_map(lambda v: _noted(v, notes), x)


def _noted(x: Any, notes: tuple[tuple[str, Any], ...]) -> Any:
    with XlaMetadataContextManager(dict(notes)):
        return xla_metadata_value_p.bind(x, xla_metadata_kvs=notes)


#: Says of a value that the operation that gives it has notes.
xla_metadata_value_p = Primitive("xla_metadata_value")
xla_metadata_value_p.def_impl(lambda x, *, xla_metadata_kvs: x)
xla_metadata_value_p.def_abstract_eval(lambda aval, *, xla_metadata_kvs: aval)
batching.defvectorized(xla_metadata_value_p)
ad.deflinear2(xla_metadata_value_p, lambda ct, _, **kwargs: (ct,))
mlir.register_lowering(xla_metadata_value_p, mlir.lower_fun(lambda x, *, xla_metadata_kvs: x, multiple_results=False))
_expose(globals())
