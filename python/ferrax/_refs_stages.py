"""Stages of jitted functions that use references: their programs take the references' values, and give the new ones.

Read next: `_refs_calls.py`, whose calls of such functions these are, ahead of time.
"""

from __future__ import annotations

from typing import Any

from ferrax._refs import Ref, read
from ferrax._refs_calls import ImpureJit, MoreFound, check_once, take, write_all
from ferrax._stages import Compiled, Lowered

__all__ = ["lowered"]


class RefLowered(Lowered):
    """A lowered function that uses references; its first argument is the list of their values.

    Args:
      stage: the function of values.
      known: the references that it closes over.
    """

    def __init__(self, stage: Lowered, known: tuple[Ref, ...]):
        vars(self).update(vars(stage))
        self._known = known

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """The function compiled for this machine: see `Lowered.compile`."""
        return RefCompiled(super().compile(*args, **kwargs), self._known)


class RefCompiled(Compiled):
    """A compiled function that uses references: a call reads them, and writes them.

    Args:
      stage: the function of values.
      known: the references that it closes over.
    """

    def __init__(self, stage: Compiled, known: tuple[Ref, ...]):
        vars(self).update(vars(stage))
        self._known = known

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (places, names), given = take((args, kwargs))
        refs = [*self._known, *given]
        out, values = super().__call__([read(ref) for ref in refs], *places, **names)
        write_all(refs, values)
        return out


def lowered(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], clock: int) -> RefLowered:
    """Lowers a jitted function that uses references.

    Args:
      function: the jitted function.
      args, kwargs: its arguments.
      clock: when the trace began that met references.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> total = jax.new_ref(jnp.zeros(()))
    >>> @jax.jit
    ... def add(x):
    ...     total[...] += x
    >>> compiled = add.lower(1.0).compile()
    >>> compiled(2.0), compiled(3.0)
    (None, None)
    >>> print(total[...])
    5.0
    """
    numbers, inline = function._numbers
    impure = ImpureJit(function.__wrapped__, numbers, inline, clock)
    (places, names), given = take((args, kwargs))
    while True:
        impure.known = tuple(impure.closed)
        check_once(impure.fun, "jit", args, kwargs, given, impure.known)
        try:
            stage = impure.jitted.lower([read(ref) for ref in (*impure.known, *given)], *places, **names)
        except MoreFound as found:
            impure.closed += found.new_to(impure)
            continue
        stage = RefLowered(stage, impure.known)
        stage._name = getattr(function, "__name__", stage._name)
        return stage
