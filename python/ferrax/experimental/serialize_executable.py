"""Compiled functions as bytes: the program is written, and compiled again where it is read.

Reading runs no code of the bytes', other than in JAX. Read next: `ferrax/export`, whose format the program has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax._boundary import expose as _expose
from ferrax._stages import Compiled as _Compiled, compiled_of as _compiled_of, function_of as _function_of

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: _Compiled) -> tuple[bytes, Any, Any]:
    """Writes a compiled function.

    Args:
      compiled: what `jit(f).lower(...).compile()` gave.

    Returns:
      The bytes, the structure of `(args, kwargs)`, and that of the result.

    Raises:
      NotImplementedError: the program calls functions of Python's.

    >>> import ferrax as jax
    >>> from ferrax.experimental.serialize_executable import deserialize_and_load, serialize
    >>> written = serialize(jax.jit(lambda x: 2 * x).lower(1.0).compile())
    >>> print(deserialize_and_load(*written)(3.0))
    6.0
    """
    from ferrax.export._exported import written
    from ferrax.export._format import pack

    name, program, donated, no_kwargs = _function_of(compiled)
    header = {"donated": list(map(bool, donated)), "no_kwargs": no_kwargs}
    function = np.frombuffer(written(name, program), np.uint8)
    return bytes(pack(header, [function])), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> _Compiled:
    """Reads a compiled function, and compiles it.

    Args:
      serialized: the bytes.
      in_tree: structure of `(args, kwargs)`.
      out_tree: structure of the result.
      backend: must be None: the program runs where its arguments are.
      execution_devices: must be None.

    Raises:
      ValueError: the bytes are damaged, or no compiled function of this many arguments and results.

    >>> from ferrax.experimental.serialize_executable import deserialize_and_load
    >>> deserialize_and_load(b"something else", None, None)
    Traceback (most recent call last):
    ValueError: the bytes are no function that ferrax exported
    """
    from ferrax.export import deserialize
    from ferrax.export._format import unpack

    if backend is not None or execution_devices is not None:
        raise NotImplementedError(
            "deserialize_and_load with backend or execution_devices: a program runs where its arguments are"
        )
    header, parts = unpack(serialized)
    if "donated" not in header or len(parts) != 1:
        raise ValueError("the bytes are no compiled function")
    exported = deserialize(parts[0].tobytes())
    held, given = [
        (i.num_leaves, o.num_leaves) for i, o in ((exported.in_tree, exported.out_tree), (in_tree, out_tree))
    ]
    if held != given:
        raise ValueError(f"the function has {held} arguments and results, but the structures have {given}")
    return _compiled_of(
        exported.fun_name, exported._program, in_tree, out_tree, header["donated"], bool(header["no_kwargs"])
    )


_expose(globals())
