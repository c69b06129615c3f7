"""The exceptions that ferrax raises beyond Python's own.

Each class subclasses the builtin exception that JAX's class of the same name does, and can be made from a tracer
(as JAX makes it) or from a finished text. The classes live in the extension module, which raises them; those of missing
names in `_planned.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._ferrax import (
    CaptureError as CaptureError,
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    InternalError as InternalError,
    JAXIndexError as JAXIndexError,
    JaxprTypeError as JaxprTypeError,
    JaxRuntimeError as JaxRuntimeError,
    JAXTypeError as JAXTypeError,
    KeyReuseError as KeyReuseError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    RetraceError as RetraceError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax._planned import (
        MissingFeatureError as MissingFeatureError,
        MissingModuleError as MissingModuleError,
        MissingNameError as MissingNameError,
    )

__all__ = [
    "CaptureError",
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "InternalError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingFeatureError",
    "NonConcreteBooleanIndexError",
    "RetraceError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]

_DOCS = {
    JAXTypeError: """Base of ferrax's own type errors.

    Args:
      message: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.JAXTypeError, TypeError)
    True
    """,
    JAXIndexError: """Base of ferrax's own index errors.

    Args:
      message: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.JAXIndexError, IndexError)
    True
    """,
    ConcretizationTypeError: """A traced value stands where the operation needs an actual one.

    Under ``jit`` the arguments of a function are known by shape and dtype only. An axis, a shape, a size or a
    Python branch that depends on their values cannot be decided then. Either mark the argument as static
    (``static_argnums``), or say the same with array operations (``jnp.where``, ``lax.cond``, ``lax.fori_loop``).

    Args:
      tracer: the traced value, or a finished text.
      context: what needed the value.

    >>> import ferrax
    >>> issubclass(ferrax.errors.ConcretizationTypeError, TypeError)
    True
    """,
    TracerBoolConversionError: """Python asked a traced value for its truth, as in ``if x > 0:``.

    Use ``jnp.where`` to choose between values, ``lax.cond`` to choose between computations, ``&`` and ``|`` in
    place of ``and`` and ``or``, or make the argument static.

    Args:
      tracer: the traced value, or a finished text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.TracerBoolConversionError, ferrax.errors.ConcretizationTypeError)
    True
    """,
    TracerIntegerConversionError: """Python asked a traced value for an integer, as in ``range(n)`` or ``a_list[i]``.

    Make the argument static, turn the list into an array, or use ``lax.fori_loop`` in place of ``range``.

    Args:
      tracer: the traced value, or a finished text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.TracerIntegerConversionError, TypeError)
    True
    """,
    TracerArrayConversionError: """NumPy was given a traced value, as in ``numpy.sin(x)`` under ``jit``.

    Use the function of the same name in ``ferrax.numpy``, or ``ferrax.pure_callback`` for code that must see
    actual arrays.

    Args:
      tracer: the traced value, or a finished text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.TracerArrayConversionError, TypeError)
    True
    """,
    NonConcreteBooleanIndexError: """A traced boolean mask was used as an index.

    The size of ``x[mask]`` depends on the values in ``mask``, and shapes are fixed when a function is traced.
    ``jnp.where(mask, x, fill)`` keeps the shape; ``jnp.nonzero(mask, size=n)`` fixes it.

    Args:
      tracer: the traced mask, or a finished text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.NonConcreteBooleanIndexError, IndexError)
    True
    """,
    UnexpectedTracerError: """A traced value was used after the transformation that made it had ended.

    Something kept it: a global, an attribute, a list. Return the value from the transformed function instead.
    The text names the transformation, the line that made the value and, where it can be found, the container.

    Args:
      msg: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.UnexpectedTracerError, TypeError)
    True
    """,
    KeyReuseError: """A random key was used twice, which would give the same numbers twice.

    Split the key first: ``key, subkey = ferrax.random.split(key)``.

    Args:
      message: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.KeyReuseError, TypeError)
    True
    """,
    JaxRuntimeError: """A computation failed while it ran.

    >>> import ferrax
    >>> issubclass(ferrax.errors.JaxRuntimeError, RuntimeError)
    True
    """,
    InternalError: """A bug in ferrax; the text says what to report.

    The process can go on: the failure was caught before it could harm anything outside the call.

    >>> import ferrax
    >>> issubclass(ferrax.errors.InternalError, RuntimeError)
    True
    """,
    JaxprTypeError: """A jaxpr does not type-check: an operand's aval is not what the equation says.

    >>> import ferrax
    >>> issubclass(ferrax.errors.JaxprTypeError, TypeError)
    True
    """,
    RetraceError: """A function was traced again inside ``with ferrax.no_retrace():``.

    The text names what changed since the last time: the dtype, shape or structure of an argument, a static value, a
    setting, or the function object itself.

    Args:
      message: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.RetraceError, RuntimeError)
    True
    """,
    CaptureError: """What a jitted function captured has changed since it was traced, under ``ferrax.check_captures()``.

    The text names the global, closure variable or attribute with both values.

    Args:
      message: the text.

    >>> import ferrax
    >>> issubclass(ferrax.errors.CaptureError, RuntimeError)
    True
    """,
    InconclusiveDimensionOperation: """A comparison of symbolic dimensions that holds for some sizes and not for others.

    >>> import ferrax
    >>> issubclass(ferrax.errors.InconclusiveDimensionOperation, Exception)
    True
    """,
}

for _class, _doc in _DOCS.items():
    _class.__doc__ = _doc
del _class, _doc

_defer(globals(), {"_planned": "MissingFeatureError MissingModuleError MissingNameError"})
