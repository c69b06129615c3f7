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
      scale: how large the picture is: 10 lines for an array of two axes where it is 1.
      min_width: least width of a part, with its borders.
      max_width: greatest width of the picture.
      color_map: accepted for compatibility.

    Raises:
      ValueError: the array has no axes, or more than two.

    >>> import ferrax as jax
    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> jax.debug.visualize_sharding((4,), sharding)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions; got shape {shape}")
    cells: dict[tuple[int, int], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        index = index if len(index) == 2 else (slice(None), *index)
        cells.setdefault((index[0].start or 0, index[1].start or 0), []).append(device)
    rows, columns = sorted({r for r, _ in cells}), sorted({c for _, c in cells})
    texts = {at: f"{ds[0].platform.upper()} {','.join(map(str, sorted(d.id for d in ds)))}" for at, ds in cells.items()}
    # a picture of equal axes is 10 lines high and 25 characters wide; borders are part of a part's width
    lines = int(10 * scale)
    whole = _WIDER * int(lines * (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1))
    inner = min(max(int(whole / len(columns)), min_width), max_width) - 2
    high = max(int(lines / len(rows)) - 1, 1) if len(shape) == 2 else 1
    widths = [max(inner, *(len(texts[r, c]) for r in rows)) for c in columns]
    most = max((max_width - 1) // len(columns) - 1, 1)
    widths = [min(w, most) for w in widths] if sum(widths) + len(columns) >= max_width else widths
    _print_table([[texts[r, c] for c in columns] for r in rows], widths, high)


#: How much wider than high a part of equal axes is, in characters and lines.
_WIDER = 2.5


def _print_table(rows: list[list[str]], widths: list[int], high: int) -> None:
    """Prints texts in the middle of the cells of a table, each `high` lines high."""
    above = (high - 1) // 2
    across = lambda left, between, right: left + between.join("─" * w for w in widths) + right
    cell = lambda text, w: (" " * ((w - len(text)) // 2) + text).ljust(w)[:w]
    line = lambda row: "│" + "│".join(map(cell, row, widths)) + "│"
    blank = line([""] * len(widths))
    parts = ["\n".join([blank] * above + [line(row)] + [blank] * (high - 1 - above)) for row in rows]
    table = f"\n{across('├', '┼', '┤')}\n".join(parts)
    builtins.print(f"{across('┌', '┬', '┐')}\n{table}\n{across('└', '┴', '┘')}")


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints which devices hold which part of an array; see `visualize_sharding`.

    Args:
      arr: an array of one or two axes; under `jit` its sharding is known, and printed, when the program is compiled.
      **kwargs: as for `visualize_sharding`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.debug.visualize_array_sharding(jnp.zeros(4))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = arr.shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Hands the shardings of arrays to a function, once they are known.

    Args:
      value: an array; under `jit` its sharding is known when the program is compiled for arguments of some shardings.
      callback: function of the sharding.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.debug.inspect_array_sharding(jnp.zeros(4), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    if _ferrax.is_tracer(value):
        _propagation.inspect(value, callback)
        return
    callback(value.sharding)
