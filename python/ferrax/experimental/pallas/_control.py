"""Control flow and numbers for kernels: `when`, `loop`, `cdiv`, hints about values, printing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax

__all__ = [
    "align_to",
    "cdiv",
    "debug_print",
    "loop",
    "multiple_of",
    "next_power_of_2",
    "reciprocal",
    "strides_from_shape",
    "when",
]


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function at once, where a condition holds.

    Args:
      condition: a boolean, or a scalar that is traced.

    Returns:
      The decorator; the function's name means None afterwards.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> ref = jax.new_ref(jnp.zeros(()))
    >>> @pl.when(jnp.array(True))
    ... def _():
    ...     ref[...] = jnp.ones(())
    >>> print(ref[...])
    1.0
    """

    def call(f: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                f()
            return
        from ferrax.lax import cond

        cond(condition, f, lambda: None)

    return call


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that calls the function at once, for each number of a range.

    Args:
      lower, upper, step: the range: integers, or scalars that are traced.
      init_carry: a tree that the function gets beside the number, and gives back changed; None for none.
      unroll: as of `lax.fori_loop`.

    Returns:
      A decorator, whose value is the last carry.

    >>> from ferrax.experimental import pallas as pl
    >>> @pl.loop(0, 6, step=2, init_carry=0)
    ... def total(i, c):
    ...     return c + i
    >>> print(total)
    6
    """
    from ferrax.lax import convert_element_type, fori_loop
    from ferrax.numpy import result_type

    zero: Any = 0
    if any(map(_ferrax.is_tracer, (lower, upper, step))):
        kind = result_type(lower, upper, step)
        lower, upper, step = (convert_element_type(x, kind) for x in (lower, upper, step))
        zero = convert_element_type(0, kind)

    def call(body: Callable[..., Any]) -> Any:
        def advance(i: Any, carry: Any) -> Any:
            place = lower + i * step
            return body(place) if init_carry is None else body(place, carry)

        return fori_loop(zero, cdiv(upper - lower, step), advance, init_carry, unroll=unroll)

    return call


def cdiv(a: Any, b: Any) -> Any:
    """The quotient, rounded up.

    Args:
      a, b: integers, or arrays of integers.

    Returns:
      An integer, or an array.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.cdiv(9, 2)
    5
    """
    if _is_size(a) and _is_size(b):
        return (a + b - 1) // b
    from ferrax.lax import div

    return div(a + (b - 1), b)


def _is_size(x: Any) -> bool:
    from ferrax._shapes import is_symbolic_dim

    return isinstance(x, int) or is_symbolic_dim(x)


def align_to(a: Any, alignment: Any) -> Any:
    """The smallest multiple of a number that is not smaller than another.

    Args:
      a: an integer, or an array of integers.
      alignment: the number that it becomes a multiple of.

    Returns:
      An integer, or an array.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.align_to(5, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How far elements are apart along each axis, in an array whose last axis is contiguous.

    Args:
      shape: the array's.

    Returns:
      A tuple of integers, in elements.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= operator.index(size)
    return tuple(reversed(strides))


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not smaller than a number.

    Args:
      x: an integer that is not negative.

    Returns:
      An integer.

    Raises:
      ValueError: the number is negative.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.next_power_of_2(9)
    16
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 << (x - 1).bit_length() if x else 1


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """The array, with a promise for compilers that its elements are multiples of numbers.

    Args:
      x: array of integers.
      values: the numbers.

    Returns:
      The array.

    >>> from ferrax.experimental import pallas as pl
    >>> pl.multiple_of(8, 4)
    8
    """
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """1 divided by an array.

    Args:
      x: array of floats.
      approx: whether a few digits are enough: the quotient is float32 then, and has all its digits here.
      full_range: accepted for compatibility: the whole range is right.

    Returns:
      An array.

    >>> from ferrax.experimental import pallas as pl
    >>> print(pl.reciprocal(4.0))
    0.25
    """
    from ferrax.numpy import asarray, float32, reciprocal as exact

    x = asarray(x)
    return exact(x.astype(float32)) if approx else exact(x)


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values when the kernel runs.

    Args:
      fmt: a format string; where it has no placeholders, the values are printed behind it.
      *args: arrays and numbers.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> pl.debug_print("values:", jnp.arange(3))
    values: [0 1 2]
    """
    import string

    from ferrax.debug import print as show

    if args and not any(field is not None for _, field, _, _ in string.Formatter().parse(fmt)):
        fmt += " {}" * len(args)
    show(fmt, *args)
