"""`pjit`, the former name of `jit`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ferrax._boundary import expose as _expose, missing as _missing, shielded as _shielded

__all__: list[str] = []

_UNGIVEN: Any = object()


def _pjit(
    fun: Callable[..., Any],
    in_shardings: Any = _UNGIVEN,
    out_shardings: Any = _UNGIVEN,
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
    """`ferrax.jit`, all of whose arguments may be given by position, and which finds its mesh in `with mesh:`, too."""
    from ferrax._api import jit_called
    from ferrax.sharding._jit import UNSPECIFIED

    return jit_called(
        "pjit",
        fun,
        in_shardings=UNSPECIFIED if in_shardings is _UNGIVEN else in_shardings,
        out_shardings=UNSPECIFIED if out_shardings is _UNGIVEN else out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
        donate="may",
    )


_pjit.__name__ = _pjit.__qualname__ = "pjit"
_shown = _shielded(_pjit)


def __getattr__(name: str) -> Any:
    if name == "pjit":
        text = "ferrax.experimental.pjit.pjit has been deprecated. Please use `ferrax.jit` instead."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return _shown
    import sys

    raise _missing(sys.modules[__name__], name)


_expose(globals())
