"""Calls from programs into Python that write their results into buffers which they get.

Read next: `ferrax/_callbacks.py`, which calls them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._callbacks import io_callback as _io_callback, pure_callback as _pure_callback
from ferrax._ferrax import JaxRuntimeError as _JaxRuntimeError, shape as _shape

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """When a foreign function is called.

    >>> from ferrax.experimental.buffer_callback import ExecutionStage
    >>> ExecutionStage.EXECUTE.value
    3
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """The circumstances of a call.

    >>> from ferrax.experimental.buffer_callback import ExecutionContext
    >>> ExecutionContext().stage
    <ExecutionStage.EXECUTE: 3>
    """

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The device's stream, of GPUs alone.

        Raises:
          JaxRuntimeError: on the CPU.
        """
        raise _JaxRuntimeError("UNIMPLEMENTED: the CPU has no stream")


class Buffer:
    """An operand, or a result to be written: `np.asarray(buffer)` is a view of it.

    Args:
      array: its elements.
      writeable: whether it is a result.

    >>> import numpy as np
    >>> from ferrax.experimental.buffer_callback import Buffer
    >>> Buffer(np.zeros(2), True).shape
    (2,)
    """

    def __init__(self, array: Any, writeable: bool):
        self._array = array
        self._writeable = writeable

    @property
    def writeable(self) -> bool:
        """Whether it is a result, which is to be written."""
        return self._writeable

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(self._array.shape)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self._array.ndim)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The elements as NumPy's array: a view, unless another dtype or a copy is asked for."""
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"an array of {dtype} would be a copy of the buffer of {self.dtype}")
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **options: Any) -> Any:
        """The elements as a capsule of DLPack."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU, as DLPack numbers it."""
        kind, number = self._array.__dlpack_device__()
        return int(kind), int(number)


def buffer_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that has Python code fill its results.

    Args:
      callback: function `(context, out, *args)` that writes the results into `out`, a tree of `Buffer` as
        `result_shape_dtypes`; `args` are trees of `Buffer` as well. It returns nothing.
      result_shape_dtypes: tree of objects with `shape` and `dtype`.
      has_side_effect: whether the call runs even where its results are not used; such a call is vectorized row by row.
      vmap_method: as for `ferrax.pure_callback`.
      input_output_aliases: operands by number, each with the number of the result that begins with its values.
      command_buffer_compatible: accepted for compatibility.

    Returns:
      Function of trees of arrays.

    Raises:
      JaxRuntimeError: from the call: the callback returned something.

    >>> import numpy as np, ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental.buffer_callback import buffer_callback
    >>> def add_one(context, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> x = jnp.array(41)
    >>> print(buffer_callback(add_one, jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    42
    """
    structs, out_tree = tree_util.tree_flatten(result_shape_dtypes)
    aliases = {int(o): int(i) for i, o in (input_output_aliases or {}).items()}

    def wrapped(*args: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        for o, i in aliases.items():
            if not (0 <= i < len(leaves) and 0 <= o < len(structs)):
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}'; there are {len(leaves)} operands and "
                    f"{len(structs)} results"
                )
        ranks = [len(_shape(leaf)) for leaf in leaves]

        def call(*values: Any) -> list[Any]:
            arrays = [np.asarray(v) for v in values]
            # under vmap results have the axes in front that operands have more than without, the longest of each
            fronts = [a.shape[: a.ndim - rank] for a, rank in zip(arrays, ranks, strict=True)]
            front = max(fronts, key=lambda sizes: (len(sizes), sizes), default=())
            outs = [np.zeros((*front, *struct.shape), struct.dtype) for struct in structs]
            for o, i in aliases.items():
                outs[o][...] = arrays[i]
            buffers = tree_util.tree_unflatten(out_tree, [Buffer(out, True) for out in outs])
            operands = tree_util.tree_unflatten(tree, [Buffer(_frozen(a), False) for a in arrays])
            returned = callback(ExecutionContext(), buffers, *operands)
            if returned is not None:
                raise _JaxRuntimeError(
                    f"INTERNAL: the buffer callback {getattr(callback, '__name__', 'callback')} returned a "
                    f"{type(returned).__name__}; it must write its results into out and return None"
                )
            return outs

        if has_side_effect:
            outs = _io_callback(call, list(structs), *leaves)
        else:
            outs = _pure_callback(call, list(structs), *leaves, vmap_method=vmap_method)
        return tree_util.tree_unflatten(out_tree, outs)

    return wrapped


def _frozen(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


_expose(globals())
