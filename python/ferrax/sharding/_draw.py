"""Pictures of shardings: which devices hold which part of an array of one or two axes, and what a value's sharding is.

Read next: `_named.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax.sharding import _propagation

__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints which devices hold which part of an array.

    Args:
      shape: the array's shape, of one or two axes.
      sharding: its sharding.
      use_color: accepted for compatibility: lines tell the parts apart.
      scale: how many characters wide the picture is, for each entry along the last axis.
      min_width: least width of a part.
      max_width: greatest width of the picture.
      color_map: accepted for compatibility.

    Raises:
      ValueError: the array has no axes, or more than two.

    >>> import ferrax as jax
    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> jax.debug.visualize_sharding((4,), sharding)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions; got shape {shape}")
    cells: dict[tuple[int, int], list[Any]] = {}
    parts = sharding.devices_indices_map(shape)
    for device, index in parts.items():
        index = index if len(index) == 2 else (slice(None), *index)
        cells.setdefault((index[0].start or 0, index[1].start or 0), []).append(device)
    rows, columns = sorted({r for r, _ in cells}), sorted({c for _, c in cells})
    texts = {at: f"{ds[0].platform.upper()} {','.join(str(d.id) for d in ds)}" for at, ds in cells.items()}
    width = max(min_width, int(scale * shape[-1] / len(columns)), *(len(t) + 2 for t in texts.values()))
    width = max(min(width, max_width // len(columns) - 1), 1)
    line = "─" * width
    out = ["┌" + "┬".join([line] * len(columns)) + "┐"]
    for r in rows:
        if r != rows[0]:
            out.append("├" + "┼".join([line] * len(columns)) + "┤")
        out.append("│" + "│".join(texts[r, c][:width].center(width) for c in columns) + "│")
    out.append("└" + "┴".join([line] * len(columns)) + "┘")
    builtins.print("\n".join(out))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints which devices hold which part of an array; see `visualize_sharding`.

    Args:
      arr: an array of one or two axes; under `jit` its sharding is known, and printed, when the program first runs.
      **kwargs: as for `visualize_sharding`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.debug.visualize_array_sharding(jnp.zeros(4))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    shape = arr.shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Hands the shardings of arrays to a function, once they are known.

    Args:
      value: an array; under `jit` its sharding is known when the program first runs with arguments of some shardings.
      callback: function of the sharding.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.debug.inspect_array_sharding(jnp.zeros(4), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    if _ferrax.is_tracer(value):
        _propagation.inspect(value, callback)
        return
    callback(value.sharding)
