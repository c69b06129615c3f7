"""How programs are printed, as libraries of JAX's tell their own printers: which parts, and names of variables.

ferrax's programs print themselves (`Jaxpr.pretty_print`); these are for rules that libraries write.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ferrax.extend.core import Var

__all__ = ["JaxprPpContext", "JaxprPpSettings"]


class JaxprPpSettings(NamedTuple):
    """Which parts of a program are printed.

    Args:
      print_shapes: types of variables.
      source_info: lines of the traced function.
      name_stack: names of scopes.
      custom_pp_eqn_rules: whether rules of primitives print their equations.
      print_effects: effects of the program.

    >>> JaxprPpSettings(print_shapes=False).print_shapes
    False
    """

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


def _letters(taken: set[str]) -> Iterator[str]:
    """Names: a to z, then aa, ab and so on."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for letters in itertools.product(alphabet, repeat=length):
            if (name := "".join(letters)) not in taken:
                yield name


class JaxprPpContext:
    """The names of a program's variables: one that is asked for the first time gets the next free one.

    Args:
      var_names: names that are given already.

    Attributes:
      var_names: the names by variable.
      shared_jaxprs: names of programs that are printed once, for several equations.
      shared_jaxpr_names: those names, which no variable gets.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda x, y: x)(1, 2).jaxpr
    >>> context = JaxprPpContext()
    >>> [context.var_names[v] for v in (*program.invars, *program.outvars)]
    ['a', 'b', 'a']
    """

    def __init__(self, var_names: Mapping[Any, str] | None = None) -> None:
        self.shared_jaxprs: dict[Any, str] = {}
        self.shared_jaxpr_names: set[str] = set()
        names = _letters(self.shared_jaxpr_names)
        self.var_names: defaultdict[Any, str] = defaultdict(lambda: next(names), var_names or {})

    def suggest_same_var_names(self, for_vars: Sequence[Any], like_vars: Sequence[Any]) -> None:
        """Gives variables without a name those of others, each once; nothing where there are not as many.

        Args:
          for_vars: variables, of a program inside, say.
          like_vars: variables and literals that they stand for.
        """
        if len(for_vars) != len(like_vars):
            return
        seen: set[Any] = set()
        for new, old in zip(for_vars, like_vars):
            if isinstance(new, Var) and isinstance(old, Var) and old not in seen and new not in self.var_names:
                seen.add(old)
                self.var_names[new] = self.var_names[old]
