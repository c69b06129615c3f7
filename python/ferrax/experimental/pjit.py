"""The old name of `jit` with shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ferrax._api import jit as _jit
from ferrax._boundary import expose as _expose

__all__ = ["pjit"]


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compiles a function; see `ferrax.jit`.

    Args:
      fun: function of arrays.
      in_shardings: where the arguments are.
      out_shardings: where the results go.
      static_argnums: positions of arguments that are compile-time constants.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may take over.
      donate_argnames: names of such arguments.
      keep_unused: accepted for compatibility.
      device: the device of the arguments.
      backend: the platform of the arguments.
      inline: whether the program is copied into programs that call it.
      compiler_options: accepted for compatibility.

    Returns:
      The compiled function.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.pjit import pjit
    >>> print(pjit(lambda x: 2 * x)(jnp.arange(3)))
    [0 2 4]
    """
    return _jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )


_expose(globals())
