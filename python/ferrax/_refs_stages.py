"""Stages of jitted functions that use references: their programs take the references' values, and give the new ones.

Read next: `_refs_calls.py`, whose calls of such functions these are, ahead of time.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from ferrax import tree_util
from ferrax._api import make_jaxpr, typeof
from ferrax._high_tangents import opened
from ferrax._refs import AbstractRef, Ref, read
from ferrax._refs_calls import ImpureJit, MoreFound, check_once, take, write_all
from ferrax._stages import Compiled, Lowered, Traced

__all__ = ["as_references", "traced"]


class _OfValues:
    """What the stages of a function that uses references share: they are those of the function of values.

    Args:
      stage: that function's.
      known: the references that the function closes over.
    """

    def __init__(self, stage: Any, known: tuple[Ref, ...]):
        vars(self).update(vars(stage))
        self._stage, self._known = stage, known

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self._stage.out_tree.children()[0]

    @property
    def out_info(self) -> Any:
        """Types of the results, as a tree of `ShapeDtypeStruct`."""
        return self._stage.out_info[0]


class RefTraced(_OfValues, Traced):
    """A traced function that uses references."""

    #: makes the program of references
    show: Any = None

    @functools.cached_property
    def _shown(self) -> Any:
        return self.show()

    @property
    def jaxpr(self) -> Any:
        """The program, with its reads and writes."""
        return self._shown

    @property
    def out_avals(self) -> Any:
        """Types of the results, as a tree."""
        return self._shown.out_tree.unflatten(self._shown.out_avals)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function lowered for this machine."""
        return RefLowered(self._stage.lower(*args, **kwargs), self._known)


class RefLowered(_OfValues, Lowered):
    """A lowered function that uses references; its first argument is the list of their values."""

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """The function compiled for this machine: see `Lowered.compile`."""
        return RefCompiled(self._stage.compile(*args, **kwargs), self._known)


class RefCompiled(_OfValues, Compiled):
    """A compiled function that uses references: a call reads them, and writes them."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (places, names), given = take((args, kwargs))
        refs = [*self._known, *given]
        out, values = self._stage([read(ref) for ref in refs], *places, **names)
        write_all(refs, values)
        return opened(out)


def as_references(tree: Any) -> Any:
    """A tree with references to what `ShapeDtypeStruct`s with `is_ref` tell of, in their places."""

    def one(leaf: Any) -> Any:
        if not getattr(leaf, "is_ref", False):
            return leaf
        array = leaf.update(is_ref=False)
        return Ref(AbstractRef(typeof(array)), array)

    return tree_util.tree_map(one, tree)


def traced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], clock: int) -> RefTraced:
    """Traces a jitted function that uses references.

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
            stage = impure.jitted.trace([read(ref) for ref in (*impure.known, *given)], *places, **names)
        except MoreFound as found:
            impure.closed += found.new_to(impure)
            continue
        stage._name = getattr(function, "__name__", stage._name)
        stage._function = replace(stage._function, name=stage._name)
        made = RefTraced(stage, impure.known)
        fixed = {name: value for name, value in kwargs.items() if name in numbers[1]}
        rest = {name: value for name, value in kwargs.items() if name not in fixed}
        made.show = lambda: make_jaxpr(functools.partial(impure.fun, **fixed), numbers[0])(*args, **rest)
        return made
