"""Functions of many operations that run as one program where their arguments are known.

Each operation by itself costs its dispatch, and results in memory that only the next one reads. Those that JAX's users
look for by name in programs (`det`, `inv`) are one equation there, too. Read next: `_api.py`,
whose `jit` makes the programs; `crates/ferrax-python/src/api/custom.rs`, which knows when nothing is traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ferrax import _ferrax
from ferrax._api import jit

__all__ = ["one_program"]

F = TypeVar("F", bound=Callable[..., Any])


def one_program(*static: str, equation: bool = False) -> Callable[[F], F]:
    """Lets calls of a function on known arrays run as one program.

    Where something is traced, the function is called itself: it leaves its operations and no call of a program.

    Args:
      static: the names of arguments that the program is made for, hashable ones.
      equation: it leaves the call of the program, which interpreters of programs know by the function's name.

    Returns:
      A decorator.

    >>> import ferrax.numpy as jnp
    >>> @one_program("n")
    ... def power_sum(x, n):
    ...     return sum(x**i for i in range(n))
    >>> print(power_sum(jnp.array(2.0), 4))
    15.0
    """

    def decorate(fun: F) -> F:
        program = jit(fun, static_argnames=static)

        @functools.wraps(fun)
        def call(*args: Any, **kwargs: Any) -> Any:
            if equation or _ferrax.are_known(args, kwargs):
                try:
                    return program(*args, **kwargs)
                except Exception:  # the function itself says what is wrong, and takes what a program does not
                    pass
            return fun(*args, **kwargs)

        # warnings say whose frame they come from
        named: Any = call
        named.__code__ = named.__code__.replace(co_name=fun.__name__, co_qualname=fun.__qualname__)
        return cast(F, call)

    return decorate
