"""Bounds of symbolic expressions, from what is known of their variables.

What is known is a set of relations, polynomials that are at least 0 or equal to 0. A term of an expression is
eliminated by adding the multiple of a relation that has it, as in Fourier and Motzkin's method: where
`s * e + m * r` has no such term, `m > 0` and `r >= 0`, an upper bound of it is one of `s * e`. Only relations whose
largest term it is are taken for that, so what is left has smaller terms and the method ends. Relations that follow from
two others by eliminating a term are added once, when a relation becomes known; so the bounds are right, but need not be
the best. Read next: `_scopes.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from ferrax._symbolic._expressions import ONE, Factor, Polynomial, Term
from ferrax.errors import InconclusiveDimensionOperation

Decided = Callable[[float, float], bool]


def never(low: float, high: float) -> bool:
    """No bounds are good enough to stop."""
    return False


class Relations:
    """What is known of terms: bounds of single ones, and polynomials that are at least 0 or equal to 0.

    Args:
      normal: brings a polynomial into the normal form of its scope.
    """

    def __init__(self, normal: Callable[[Polynomial], Polynomial]):
        self._normal = normal
        self._ranges: dict[Term, tuple[float, float]] = {}
        self._others: dict[Term, dict[tuple[bool, object], tuple[bool, Polynomial]]] = {}
        self._seen: set[Term] = set()

    def copy(self) -> Relations:
        """Relations that grow on their own."""
        new = Relations(self._normal)
        new._ranges, new._seen = dict(self._ranges), set(self._seen)
        new._others = {term: dict(relations) for term, relations in self._others.items()}
        return new

    def learn(self, e: Polynomial, equal: bool = False, text: str | None = None) -> None:
        """Adds that `e` is at least 0, or equal to 0, and what follows with another relation.

        Raises:
          ValueError: this cannot be.
        """
        text = text or f"{e} >= 0"
        if (constant := e.constant) is not None:
            if constant < 0 or (equal and constant):
                raise ValueError(f"Unsatisfiable constraint: {text}")
            return
        self._add(e, equal, text)
        for both_equal, sum_ in list(self._consequences(e, equal)):
            if (constant := sum_.constant) is None:
                self._add(sum_, both_equal, text)
            elif constant < 0 or (both_equal and constant):
                raise ValueError(f"Unsatisfiable constraint: {text}")

    def _add(self, e: Polynomial, equal: bool, text: str) -> None:
        (term, k), *rest = e.terms
        if rest and not (len(rest) == 1 and rest[0][0] == ONE):
            self._others.setdefault(term, {})[equal, e.key] = (equal, e)
            return
        n = rest[0][1] if rest else 0
        low, high = self._ranges.get(term, (-math.inf, math.inf))
        if equal:
            if n % k:
                raise ValueError(f"Unsatisfiable constraint: {text}")
            low, high = max(low, -n // k), min(high, -n // k)
        elif k > 0:
            low = max(low, -(n // k))
        else:
            high = min(high, n // -k)
        if low > high:
            raise ValueError(f"Unsatisfiable constraint: {text}")
        self._ranges[term] = (low, high)

    def _with(self, term: Term, k: int, leading: bool) -> Iterator[tuple[bool, Polynomial, int, int]]:
        """Relations that eliminate `k * term`: whether equal to 0, the relation, its factor, and that of the term.

        The factor of the relation is positive. With `leading`, all terms of the relation are smaller.
        """
        sign = 1 if k >= 0 else -1
        low, high = self._ranges.get(term, (-math.inf, math.inf))
        if low > -math.inf:
            yield low == high, Polynomial({term: 1, ONE: -int(low)}), abs(k), -sign
        if high < math.inf and low != high:
            yield False, Polynomial({term: -1, ONE: int(high)}), abs(k), sign
        groups = [self._others.get(term, {})] if leading else list(self._others.values())
        for equal, e in [relation for group in groups for relation in group.values()]:
            if (m := dict(e.terms).get(term)) is not None:
                yield equal, e, abs(k), -m * sign

    def _consequences(self, e: Polynomial, equal: bool) -> Iterator[tuple[bool, Polynomial]]:
        for term, k in e.terms:
            if term == ONE:
                continue
            for other_equal, other, factor, own in self._with(term, k, leading=False):
                if own > 0 or equal:
                    yield equal and other_equal, self._normal(e.plus(other, factor, own))

    def bounds(self, e: Polynomial, decided: Decided = never) -> tuple[float, float]:
        """The least and the largest value, as far as known; infinite where nothing is.

        Args:
          e: the expression.
          decided: whether bounds are good enough.
        """
        for term, _ in e.terms:
            self._about(term)
        return self._bounds(e.terms, decided)

    def _bounds(self, terms: tuple[tuple[Term, int], ...], decided: Decided = never) -> tuple[float, float]:
        if not terms:
            return 0, 0
        term, k = terms[0]
        if term == ONE:
            return k, k
        low, high = -math.inf, math.inf
        e = Polynomial(dict(terms))
        for equal, relation, factor, own in self._with(term, k, leading=True):
            rest_low, rest_high = self._bounds(e.plus(relation, factor, own).terms)
            # own * e = rest - factor * relation, which is at most the rest, and the rest where the relation is 0
            for bound, upper in ((rest_high, True), *([(rest_low, False)] if equal else [])):
                if not math.isinf(bound):
                    if upper == (own > 0):
                        high = min(high, bound // own)
                    else:
                        low = max(low, -(-bound // own))
            if decided(low, high):
                return low, high
        factor_of = term.factor
        if factor_of is not None and factor_of.operands and factor_of.name in ("max", "min"):
            rest = Polynomial(dict(terms[1:]))
            pairs = [self._bounds(rest.plus(o, k).terms) for o in factor_of.operands]
            pick = max if (factor_of.name == "max") == (k > 0) else min
            low = max(low, pick(lower for lower, _ in pairs))
            high = min(high, pick(upper for _, upper in pairs))
        return low, high

    # ---- what operations say of themselves ---------------------------------------------------------------------------

    def _about(self, term: Term) -> None:
        """Learns what holds for a term whatever its variables are, once."""
        if term == ONE or term in self._seen:
            return
        self._seen.add(term)
        factor = term.factor
        if factor is None:
            self._within(Polynomial({term: 1}), *self._of_product(term))
        elif factor.variable is not None:
            self.learn(Polynomial({term: 1, ONE: -1}))
        else:
            for operand in factor.operands:
                for inner, _ in operand.terms:
                    self._about(inner)
            _ABOUT[factor.name](self, self._normal(Polynomial({term: 1})), factor)

    def _within(self, e: Polynomial, low: float, high: float) -> None:
        e = self._normal(e)
        if not math.isinf(low):
            self.learn(e.plus(Polynomial({ONE: -int(low)})))
        if not math.isinf(high):
            self.learn(Polynomial({ONE: int(high)}).plus(e, -1))

    def _of_product(self, term: Term) -> tuple[float, float]:
        ranges = []
        for f, power in term.factors:
            alone = Term(((f, 1),))
            self._about(alone)
            low, high = self._bounds(((alone, 1),))
            ranges.append(_power(low, high, power))
        products = [_product(ends) for ends in itertools.product(*ranges)]
        return min(products), max(products)

    def _of_rest(self, e: Polynomial, factor: Factor) -> None:
        divisor = factor.operands[1]
        low, high = self._bounds(divisor.terms)
        if low > 0:
            self._within(e, 0, high - 1)
            self.learn(self._normal(divisor.plus(Polynomial({ONE: -1})).plus(e, -1)))
        elif high < 0:
            self._within(e, low + 1, 0)
            self.learn(self._normal(e.plus(divisor, -1).plus(Polynomial({ONE: -1}))))

    def _of_quotient(self, e: Polynomial, factor: Factor) -> None:
        dividend, divisor = factor.operands
        ends, by = self._bounds(dividend.terms), self._bounds(divisor.terms)
        if by[0] <= 0 <= by[1]:
            raise InconclusiveDimensionOperation(f"Possible division by 0 in division by {divisor}")
        quotients = [_quotient(a, b) for a in ends for b in by]
        self._within(e, min(quotients), max(quotients))
        if by[0] > 0:
            if ends[0] >= 0:
                self._within(e, 0, math.inf)
            rest = Term(((Factor("mod", factor.operands), 1),))
            remainder = self._normal(Polynomial({rest: 1}))
            for inner, _ in remainder.terms:
                self._about(inner)
            self.learn(self._normal(dividend.plus(divisor.times(e), -1).plus(remainder, -1)), equal=True)

    def _of_larger(self, e: Polynomial, factor: Factor) -> None:
        pick, sign = (max, 1) if factor.name == "max" else (min, -1)
        ends = [self._bounds(o.terms) for o in factor.operands]
        self._within(e, pick(low for low, _ in ends), pick(high for _, high in ends))
        for o in factor.operands:
            self.learn(self._normal(e.plus(o, -sign, sign)))


_ABOUT: dict[str, Callable[[Relations, Polynomial, Factor], None]] = {
    "mod": Relations._of_rest,
    "floordiv": Relations._of_quotient,
    "max": Relations._of_larger,
    "min": Relations._of_larger,
}


def _power(low: float, high: float, power: int) -> tuple[float, float]:
    ends = low**power, high**power
    return (0 if power % 2 == 0 and low < 0 < high else min(ends)), max(ends)


def _product(ends: tuple[float, ...]) -> float:
    # 0 times what has no bound is 0: sizes themselves are finite
    return 0 if 0 in ends else math.prod(ends)


def _quotient(a: float, b: float) -> float:
    """Where `a // b` goes for an end of a range that may be infinite."""
    negative = (a >= 0) != (b >= 0)
    if math.isinf(a):
        return -math.inf if negative else math.inf
    if math.isinf(b):
        return -1 if negative and a else 0
    return a // b
