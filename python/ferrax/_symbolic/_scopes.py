"""Scopes: the variables of a program, with what its author says of them.

A scope has all expressions that were made in it, so that equal ones are one object. Relations that are equalities are
rules, too: their left side is replaced by their right side in every expression that is made later.
Read next: `_bounds.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._symbolic._bounds import Decided, Relations, never
from ferrax._symbolic._expressions import Factor, Polynomial, Term, _DimExpr, polynomial_of
from ferrax.errors import InconclusiveDimensionOperation

__all__ = ["Constraint", "SymbolicScope"]

_HELP = (
    "\nThe comparison holds for some sizes and not for others. Say what is known of the variables by "
    "`constraints=` of `jax.export.symbolic_shape`, or compute with `jax.core.max_dim` and `jax.core.min_dim`."
)


def _here() -> str:
    """The user's line that is running."""
    from ferrax.extend.source_info_util import current, summarize

    return summarize(current())


@dataclasses.dataclass(frozen=True)
class Constraint:
    """That a difference is at least 0, or equal to 0.

    Attributes:
      text: as the author wrote it.
      difference: of both sides, in the normal form of the constraints before.
      equal: whether both sides are equal.
    """

    text: str
    difference: Polynomial
    equal: bool


class SymbolicScope:
    """The variables that may meet in one program, and what is known of them.

    Args:
      constraints_str: relations of the form `e1 >= e2`, `e1 <= e2` or `e1 == e2`. The left side of an equality is a
        whole multiple of one product, and is replaced by the right side in every expression.

    Raises:
      ValueError: a constraint cannot be read, or cannot be met.

    >>> import ferrax as jax
    >>> scope = jax.export.SymbolicScope(["b >= 4"])
    >>> b, = jax.export.symbolic_shape("b", scope=scope)
    >>> b > 3
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        self._sizes: dict[Any, _DimExpr] = {}
        self._rules: dict[Term, tuple[Polynomial, int]] = {}
        self._explicit: list[Constraint] = []
        self._relations: Relations | None = None
        self._found: dict[Any, tuple[float, float]] = {}
        self._texts = list(constraints_str)
        self._place = _here()
        for text in constraints_str:
            if not isinstance(text, str):
                raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
            self._constrain(text)
        if self._explicit:
            self._known()

    def __str__(self) -> str:
        lines = [f"{id(self)} created at {self._place}", *(["with constraints:"] if self._explicit else [])]
        return " ".join(lines) + "".join(f"\n  {c.text}" for c in self._explicit)

    __repr__ = __str__

    def _check_same(self, other: _DimExpr, when: str, mine: str = "", theirs: str = "unknown") -> None:
        if other.scope is not self:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {when}.\nExpected {mine} scope {self}\n"
                f"and found for '{other}' ({theirs}) scope {other.scope}\n"
                "Sizes that meet are to be made with one `scope`, or by one call of `symbolic_shape`."
            )

    # ---- sizes -------------------------------------------------------------------------------------------------------

    def _size(self, polynomial: Polynomial) -> _DimExpr | int:
        """The size of a polynomial: an integer where it is constant."""
        normal = self._normal(polynomial)
        if normal.constant is not None:
            return normal.constant
        found = self._sizes.get(normal.key)
        if found is None:
            found = _ferrax.symbolic_size(lambda code: _DimExpr(normal, self, code))
            self._sizes[normal.key] = found
        return found

    def _variable(self, name: str) -> _DimExpr | int:
        return self._size(Polynomial({Term(((Factor(name), 1),)): 1}))

    def _normal(self, e: Polynomial) -> Polynomial:
        """With left sides of equalities replaced, as long as there are any."""
        for _ in range(100):
            changed = next((new for m in e.terms if (new := self._replaced(e, *m)) is not None), None)
            if changed is None:
                return e
            e = changed
        raise ValueError(f"the equalities among the symbolic constraints replace each other without end in {e}")

    def _replaced(self, e: Polynomial, term: Term, k: int) -> Polynomial | None:
        if not self._rules:
            return None
        for part in (term, *(Term((f,)) for f in term.factors)):
            after, multiple = self._rules.get(part, (None, 1))
            others = term.times(part, -1)
            if after is not None and others is not None and k % multiple == 0:
                new = after.times(Polynomial({others: k // multiple}))
                return e.plus(Polynomial({term: k}), -1).plus(new)
        return None

    # ---- constraints -------------------------------------------------------------------------------------------------

    def _constrain(self, text: str) -> None:
        from ferrax._symbolic._text import read_size

        sign = next((s for s in ("==", ">=", "<=") if s in text), None)
        if sign is None:
            raise ValueError(f"Constraint parsing error: must contain one of '==' or '>=' or '<=', got {text!r}")
        left, _, right = text.partition(sign)
        a, b = (polynomial_of(read_size(side, self)) for side in (left, right))
        if sign == "<=":
            a, b = b, a
        self._add(a, b, sign == "==", text)

    def _add(self, a: Polynomial, b: Polynomial, equal: bool, text: str) -> None:
        difference = a.plus(b, -1)
        if (constant := difference.constant) is not None:
            if constant < 0 or (equal and constant):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        self._explicit.append(Constraint(text, difference, equal))
        if equal:
            self._add_rule(a, b, text)
        self._relations = None
        self._found.clear()

    def _add_rule(self, a: Polynomial, b: Polynomial, text: str) -> None:
        if len(a.terms) != 1 or a.constant is not None:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form `term * coefficient`."
            )
        term, k = a.terms[0]
        if term in self._rules:
            raise NotImplementedError(f"Found multiple equality constraints with the same left-hand-side: {term}")
        self._rules[term] = (b, k)
        factor = term.factor
        if k == 1 and b.constant == 0 and factor is not None and factor.name == "mod" and factor.operands:
            dividend, divisor = factor.operands
            if (by := divisor.constant) is not None:
                # without a rest, the quotient times the divisor is the dividend
                quotient = Polynomial({Term(((Factor("floordiv", factor.operands), 1),)): by})
                self._add(quotient, self._normal(dividend), True, f"{quotient} == {dividend}")

    def _known(self) -> Relations:
        if self._relations is None:
            relations = Relations(self._normal)
            for constraint in self._explicit:
                relations.bounds(constraint.difference)
                relations.learn(constraint.difference, constraint.equal, constraint.text)
            self._relations = relations
        return self._relations

    def _bounds(self, e: Any, decided: Decided = never) -> tuple[float, float]:
        """The least and the largest value of a size, as far as known."""
        polynomial = polynomial_of(e)
        if (constant := polynomial.constant) is not None:
            return constant, constant
        known = self._found.get(polynomial.key)
        if known is None or not decided(*known):
            known = self._known().copy().bounds(polynomial, decided)
            self._found[polynomial.key] = known
        return known

    def _at_least(self, a: Any, b: Any, text: Callable[[], str]) -> bool:
        """Whether `a >= b`.

        Raises:
          InconclusiveDimensionOperation: it depends on the variables.
        """
        for e in (a, b):
            if isinstance(e, _DimExpr):
                self._check_same(e, f"when comparing {text()}")
        low, high = self._bounds(a - b, lambda low, high: low >= 0 or high < 0)
        if low >= 0 or high < 0:
            return low >= 0
        scope = f"\nUsing symbolic scope {self}" if self._explicit else ""
        raise InconclusiveDimensionOperation(f"Symbolic dimension comparison {text()} is inconclusive.{scope}{_HELP}")
