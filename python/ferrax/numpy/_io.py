"""Files and text: save, load, print options.

These work on the host and need concrete values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax.numpy._args import Array
from ferrax.numpy._creation import asarray

__all__ = [
    "array_repr", "array_str", "get_printoptions", "load", "printoptions", "save", "savez", "set_printoptions",
]  # fmt: skip


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Writes an array to a file in NumPy's .npy format.

    Args:
      file: path or open file.
      arr: array.
      allow_pickle: passed on to `numpy.save`.

    Returns:
      None.

    >>> import io, ferrax.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3)); _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Writes several arrays to a file in NumPy's .npz format.

    Args:
      file: path or open file.
      *args: arrays, named arr_0, arr_1, …
      allow_pickle: passed on to `numpy.savez`.
      **kwds: arrays by name.

    Returns:
      None.

    >>> import io, ferrax.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.savez(file, x=jnp.arange(3)); _ = file.seek(0)
    >>> jnp.load(file)["x"]
    array([0, 1, 2], dtype=int32)
    """
    options: dict[str, Any] = {} if np.lib.NumpyVersion(np.__version__) < "2.1.0" else {"allow_pickle": allow_pickle}
    options.update((name, np.asarray(x)) for name, x in kwds.items())
    np.savez(file, *(np.asarray(x) for x in args), **options)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Reads what `save` or `savez` wrote.

    Args:
      file: path or open file.
      *args: passed on to `numpy.load`.
      **kwargs: passed on to `numpy.load`.

    Returns:
      Array; for an .npz file, NumPy's mapping of names to NumPy arrays; Python objects stay a NumPy array.

    >>> import io, ferrax.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2)); _ = file.seek(0)
    >>> jnp.load(file)
    Array([1., 1.], dtype=float32)
    """
    result = np.load(file, *args, **kwargs)
    if not isinstance(result, np.ndarray):
        return result
    if result.dtype.kind == "O":
        return result
    if result.dtype.kind == "V":
        import ml_dtypes

        # NumPy writes the narrow floats of ml_dtypes as void of their width; bfloat16 is the one of two bytes.
        if result.dtype.itemsize == 2:
            result = result.view(ml_dtypes.bfloat16)
    return asarray(result)


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Sets how arrays are printed: NumPy's options hold for ferrax's arrays too.

    Args:
      *args: as for `numpy.set_printoptions`.
      **kwargs: as for `numpy.set_printoptions`.

    Returns:
      None.

    >>> import ferrax.numpy as jnp
    >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> dict[str, Any]:
    """How arrays are printed.

    Returns:
      Dictionary of NumPy's options.

    >>> import ferrax.numpy as jnp
    >>> jnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """A context in which arrays are printed otherwise.

    Args:
      *args: as for `numpy.printoptions`.
      **kwargs: as for `numpy.printoptions`.

    Returns:
      Context manager.

    >>> import ferrax.numpy as jnp
    >>> with jnp.printoptions(precision=2):
    ...     print(jnp.array([1 / 3]))
    [0.33]
    """
    return np.printoptions(*args, **kwargs)


def array_repr(arr: Array, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:  # fmt: skip
    """The representation of an array as NumPy writes it.

    Args:
      arr: array.
      max_line_width: as for `numpy.array_repr`.
      precision: as for `numpy.array_repr`.
      suppress_small: as for `numpy.array_repr`.

    Returns:
      Text.

    >>> import ferrax.numpy as jnp
    >>> jnp.array_repr(jnp.arange(3))
    'Array([0, 1, 2], dtype=int32)'
    """
    if max_line_width is precision is suppress_small is None:
        return repr(arr)
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(a: Array, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:  # fmt: skip
    """The elements of an array as text.

    Args:
      a: array.
      max_line_width: as for `numpy.array_str`.
      precision: as for `numpy.array_str`.
      suppress_small: as for `numpy.array_str`.

    Returns:
      Text.

    >>> import ferrax.numpy as jnp
    >>> jnp.array_str(jnp.arange(3))
    '[0 1 2]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
