"""Expressions of symbolic sizes: sums of products, in a normal form.

A factor is a variable, or `floordiv`, `mod`, `max` or `min` of two expressions. A term is a product of powers of
factors, an expression a sum of whole multiples of terms. Terms are in one order, the largest first, and expressions of
equal terms are one object, so that equal sizes are the same number in the core. What is no expression with a term, a
whole number, is an `int`. Read next: `_scopes.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ferrax.errors import InconclusiveDimensionOperation

if TYPE_CHECKING:
    from ferrax._symbolic._scopes import SymbolicScope

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


class Factor:
    """A variable, or an operation on two expressions.

    Args:
      name: the variable, or one of `floordiv`, `mod`, `max` and `min`.
      operands: two expressions, which may be constant; none for a variable.
    """

    __slots__ = ("key", "name", "operands", "size")

    def __init__(self, name: str, operands: tuple[Polynomial, ...] = ()):
        self.name, self.operands = name, operands
        self.size: int = 1 + sum(o.size for o in operands)
        #: Decides equality and order.
        self.key: tuple[Any, ...] = (self.size, name, tuple(o.key for o in operands))

    @property
    def variable(self) -> str | None:
        return None if self.operands else self.name

    def variables(self) -> set[str]:
        return set().union(*(o.variables() for o in self.operands)) if self.operands else {self.name}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})" if self.operands else self.name


class Term:
    """A product of powers of factors, the largest first; of none, it is 1."""

    __slots__ = ("factors", "key", "size")

    def __init__(self, factors: Iterable[tuple[Factor, int]]):
        self.factors = tuple(sorted(factors, key=lambda f: f[0].key, reverse=True))
        self.size: int = sum(1 + power * f.size for f, power in self.factors)
        self.key: tuple[Any, ...] = (self.size, tuple((f.key, power) for f, power in self.factors))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def factor(self) -> Factor | None:
        """The factor of a term that is nothing else."""
        return self.factors[0][0] if len(self.factors) == 1 and self.factors[0][1] == 1 else None

    def variables(self) -> set[str]:
        return set().union(*(f.variables() for f, _ in self.factors))

    def times(self, other: Term, sign: int = 1) -> Term | None:
        """The product with another term, or with `sign=-1` the quotient; None where that is no term."""
        powers = {f.key: (f, power) for f, power in self.factors}
        for f, power in other.factors:
            powers[f.key] = (f, powers.get(f.key, (f, 0))[1] + sign * power)
        if any(power < 0 for _, power in powers.values()):
            return None
        return Term((f, power) for f, power in powers.values() if power)

    def __str__(self) -> str:
        return "*".join(f"{f}^{power}" if power != 1 else str(f) for f, power in reversed(self.factors))


ONE = Term(())


class Polynomial:
    """A sum of whole multiples of terms, the largest term first."""

    __slots__ = ("key", "size", "terms")

    def __init__(self, multiples: Mapping[Term, int]):
        kept = [(t, k) for t, k in multiples.items() if k]
        self.terms = tuple(sorted(kept, key=lambda m: m[0].key, reverse=True))
        self.size: int = sum(1 + abs(k) * t.size for t, k in self.terms or ((ONE, 0),))
        self.key: tuple[Any, ...] = (self.size, tuple((t.key, k) for t, k in self.terms))

    @property
    def constant(self) -> int | None:
        """The number of a polynomial without variables."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == ONE else None

    def variables(self) -> set[str]:
        return set().union(*(t.variables() for t, _ in self.terms))

    def plus(self, other: Polynomial, by: int = 1, times: int = 1) -> Polynomial:
        """`times` this and `by` times the other."""
        sums = {t: times * k for t, k in self.terms}
        for t, k in other.terms:
            sums[t] = sums.get(t, 0) + by * k
        return Polynomial(sums)

    def times(self, other: Polynomial) -> Polynomial:
        sums: dict[Term, int] = {}
        for t, k in self.terms:
            for u, m in other.terms:
                product = t.times(u)
                assert product is not None
                sums[product] = sums.get(product, 0) + k * m
        return Polynomial(sums)

    def divided(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """Quotient and rest, where the quotient is a polynomial: of a divisor with variables the rest is 0."""
        if not divisor.terms:
            raise ZeroDivisionError("division by a dimension that is 0")
        rest, quotient = self, Polynomial({})
        (lead, count), *_ = divisor.terms
        while rest.constant is None:
            term, multiple = rest.terms[0]
            over = term.times(lead, -1)
            if over is None or multiple % count:
                return None
            part = Polynomial({over: multiple // count})
            quotient, rest = quotient.plus(part), rest.plus(divisor.times(part), -1)
        constant, by = rest.constant, divisor.constant
        if by is None:
            return (quotient, rest) if constant == 0 else None
        return quotient.plus(Polynomial({ONE: constant // by})), Polynomial({ONE: constant % by})

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        words: list[str] = []
        for t, k in self.terms:
            size = str(abs(k)) if t == ONE else str(t) if abs(k) == 1 else f"{abs(k)}*{t}"
            sign = "+ " if k > 0 else "- "
            words.append(size if not words and k > 0 else sign + size)
        return " ".join(words)


def _operand(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Arithmetic of two sizes; with arrays, that of the size's value."""

    @functools.wraps(method)
    def on_sizes(self: _DimExpr, other: Any) -> Any:
        if isinstance(other, _DimExpr):
            name = method.__name__.strip("_")
            self.scope._check_same(
                other, "for linear combination" if name in ("add", "sub") else f"for operation {name}"
            )
        elif not is_whole(other):
            return getattr(self.__jax_array__(), method.__name__)(other)
        return method(self, other)

    return on_sizes


def is_whole(x: Any) -> bool:
    """Whether a value is a whole number, and no traced one."""
    from ferrax.core import Tracer

    if isinstance(x, Tracer):
        return False
    try:
        operator.index(x)
    except Exception:
        return False
    return True


class _DimExpr:
    """A symbolic size of an axis; `ferrax.export.symbolic_shape` makes them.

    Sums, differences, products, quotients and rests of sizes and integers are sizes again. Comparisons raise
    `InconclusiveDimensionOperation` where the answer is not the same for all sizes; `==` is `False` then.

    >>> import ferrax as jax
    >>> b, = jax.export.symbolic_shape("b")
    >>> print(2 * b + 1, (2 * b) // 2, b >= 1)
    2*b + 1 b True
    """

    __array_priority__ = 1000
    __slots__ = ("_code", "_polynomial", "_scope")

    def __init__(self, polynomial: Polynomial, scope: SymbolicScope, code: int):
        self._polynomial, self._scope, self._code = polynomial, scope, code

    @property
    def scope(self) -> SymbolicScope:
        """What is known of the variables."""
        return self._scope

    def _get_vars(self) -> set[str]:
        return self._polynomial.variables()

    get_vars = _get_vars

    @property
    def _sorted_terms(self) -> tuple[tuple[Term, int], ...]:
        return self._polynomial.terms

    def _to_var(self) -> str | None:
        (term, multiple), *more = self._polynomial.terms
        factor = term.factor
        return factor.variable if factor is not None and multiple == 1 and not more else None

    def _made(self, polynomial: Polynomial) -> _DimExpr | int:
        return self._scope._size(polynomial)

    @_operand
    def __add__(self, other: Any) -> Any:
        return self._made(self._polynomial.plus(polynomial_of(other)))

    __radd__ = __add__

    @_operand
    def __sub__(self, other: Any) -> Any:
        return self._made(self._polynomial.plus(polynomial_of(other), -1))

    @_operand
    def __rsub__(self, other: Any) -> Any:
        return self._made(self._polynomial.plus(polynomial_of(other), 1, -1))

    def __neg__(self) -> Any:
        return self._made(Polynomial({}).plus(self._polynomial, -1))

    @_operand
    def __mul__(self, other: Any) -> Any:
        return self._made(self._polynomial.times(polynomial_of(other)))

    __rmul__ = __mul__

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, _DimExpr) or power != int(power):
            raise ValueError(f"a symbolic dimension has powers of whole numbers alone, got {self} ** {power}")
        if power < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'")
        return functools.reduce(operator.mul, [self] * int(power), 1)

    def __rpow__(self, base: Any) -> Any:
        return self.__jax_array__().__rpow__(base)

    @_operand
    def __divmod__(self, divisor: Any) -> Any:
        return divide(self._scope, self._polynomial, polynomial_of(divisor))

    @_operand
    def __rdivmod__(self, dividend: Any) -> Any:
        return divide(self._scope, polynomial_of(dividend), self._polynomial)

    @_operand
    def __floordiv__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[0]

    @_operand
    def __rfloordiv__(self, dividend: Any) -> Any:
        return divide(self._scope, polynomial_of(dividend), self._polynomial)[0]

    @_operand
    def __mod__(self, divisor: Any) -> Any:
        return divmod(self, divisor)[1]

    @_operand
    def __rmod__(self, dividend: Any) -> Any:
        return divide(self._scope, polynomial_of(dividend), self._polynomial)[1]

    def __truediv__(self, divisor: Any) -> Any:
        return self.__jax_array__() / divisor

    def __rtruediv__(self, dividend: Any) -> Any:
        return dividend / self.__jax_array__()

    def __eq__(self, other: object) -> bool:
        return self is other

    _eq = __eq__

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return hash((self._polynomial.key, id(self._scope)))

    def __ge__(self, other: Any) -> bool:
        return self._scope._at_least(self, other, lambda: f"'{self}' >= '{other}'")

    def __le__(self, other: Any) -> bool:
        return self._scope._at_least(other, self, lambda: f"'{self}' <= '{other}'")

    def __gt__(self, other: Any) -> bool:
        return not self._scope._at_least(other, self, lambda: f"'{self}' > '{other}'")

    def __lt__(self, other: Any) -> bool:
        return not self._scope._at_least(self, other, lambda: f"'{self}' < '{other}'")

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(f"Symbolic dimension '{self}' used in a context that requires a constant")

    def __str__(self) -> str:
        return str(self._polynomial)

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> _DimExpr:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> Any:
        raise TypeError(f"the symbolic dimension '{self}' cannot be pickled: its scope is an object of this process")

    def _evaluate(self, sizes: Mapping[str, Any]) -> Any:
        """The size for sizes of the variables, which may be symbolic themselves.

        Raises:
          KeyError: a variable has no size.
        """
        return evaluate(self._polynomial, sizes)

    def dimension_as_value(self) -> Any:
        """The size as a scalar array."""
        from ferrax import _ferrax

        return _ferrax.dim_as_value(self)

    __jax_array__ = dimension_as_value


def polynomial_of(size: Any) -> Polynomial:
    """The polynomial of a size."""
    return size._polynomial if isinstance(size, _DimExpr) else Polynomial({ONE: operator.index(size)})


def operation(scope: SymbolicScope, name: str, *operands: Polynomial) -> Any:
    """`floordiv`, `mod`, `max` or `min` as a factor of its own; of numbers, the number."""
    a, b = (p.constant for p in operands)
    if a is not None and b is not None:
        return _OPERATIONS[name](a, b)
    return scope._size(Polynomial({Term(((Factor(name, operands), 1),)): 1}))


def divide(scope: SymbolicScope, dividend: Polynomial, divisor: Polynomial) -> tuple[Any, Any]:
    """Quotient and rest of two sizes."""
    found = dividend.divided(divisor)
    if found is None:
        return operation(scope, "floordiv", dividend, divisor), operation(scope, "mod", dividend, divisor)
    return scope._size(found[0]), scope._size(found[1])


def larger(a: Any, b: Any, name: str = "max") -> Any:
    """The larger of two sizes, or with `name="min"` the smaller."""
    symbolic = a if isinstance(a, _DimExpr) else b
    if not isinstance(symbolic, _DimExpr):
        return _OPERATIONS[name](a, b)
    low, high = symbolic.scope._bounds(a - b, decided=lambda low, high: low >= 0 or high <= 0)
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (name == "max") else b
    return operation(symbolic.scope, name, polynomial_of(a), polynomial_of(b))


def evaluate(polynomial: Polynomial, sizes: Mapping[str, Any]) -> Any:
    """The value of a polynomial for sizes of its variables."""
    total: Any = 0
    for term, multiple in polynomial.terms:
        product: Any = multiple
        for factor, power in term.factors:
            value = _value(factor, sizes)
            for _ in range(power):
                product = product * value
        total = total + product
    return total


def _value(factor: Factor, sizes: Mapping[str, Any]) -> Any:
    if factor.variable is not None:
        return sizes[factor.variable]
    a, b = (evaluate(o, sizes) for o in factor.operands)
    if factor.name in ("max", "min"):
        return larger(a, b, factor.name)
    return a // b if factor.name == "floordiv" else a % b
