"""The variables of a call's arguments, from the sizes that the arguments have.

Each size with variables is an equation. One that is linear in a single variable that is not known yet gives that
variable; the others must hold. Read next: `_programs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ferrax._symbolic._expressions import Polynomial, _DimExpr, evaluate
from ferrax._symbolic._scopes import SymbolicScope
from ferrax.errors import InconclusiveDimensionOperation

#: Where JAX explains the rules, which are the same.
_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"
_MORE = f"Please see {_PAGE}#shape-assertion-errors for more details."
_RULES = f"Please see {_PAGE}#dimension-variables-must-be-solvable-from-the-input-shapes for more details."


class UnexpectedDimVar(Exception):
    """A program has a variable that the sizes of its arguments do not have."""


class _Solver:
    """The equations of one call.

    Args:
      shapes: shapes with variables, and how errors call them.
      given: the shapes of the arguments.
    """

    def __init__(self, shapes: Sequence[tuple[str, Sequence[Any]]], given: Sequence[Sequence[Any]]):
        self.shapes = shapes
        self.known: dict[str, Any] = {}
        self.equations = [
            (f"{name}.shape[{i}]", d, sizes[i])
            for (name, shape), sizes in zip(shapes, given, strict=True)
            for i, d in enumerate(shape)
            if isinstance(d, _DimExpr)
        ]
        self.sources: dict[str, tuple[str, _DimExpr, Any]] = {}

    @property
    def specification(self) -> str:
        symbolic = [(name, shape) for name, shape in self.shapes if any(isinstance(d, _DimExpr) for d in shape)]
        return " Using the following polymorphic shapes specifications: " + ",".join(
            f"{name}.shape = {_shape(shape)}" for name, shape in symbolic
        )

    @property
    def found(self) -> str:
        return " Obtained dimension variables: " + "".join(
            f"'{name}' = {self.known[name]} from specification '{size}' for dimension {place} (= {value}), "
            for name, (place, size, value) in self.sources.items()
        )

    def wrong(self, what: str) -> ValueError:
        return ValueError(
            f"Input shapes do not match the polymorphic shapes specification. {what}{self.specification}.{self.found}. "
            f"{_MORE}"
        )

    def variables(self) -> dict[str, Any]:
        """The variables, whatever is said of them.

        Raises:
          ValueError: sizes do not fit, or do not say what a variable is.
        """
        left = self.equations
        while left:
            rest = [equation for equation in left if not self.one(*equation)]
            if len(rest) == len(left):
                raise self.unsolved(rest)
            left = rest
        return self.known

    def one(self, place: str, size: _DimExpr, value: Any) -> bool:
        """Uses an equation, where all variables but one are known."""
        unknown = [(t, k) for t, k in size._polynomial.terms if not t.variables() <= self.known.keys()]
        if not unknown:
            expected = size._evaluate(self.known)
            if value != expected:
                raise self.wrong(
                    f"Found inconsistency between dimension size {place} (= {value}) and the specification "
                    f"'{size}' (= {expected})."
                )
            return True
        factor = unknown[0][0].factor
        if len(unknown) > 1 or factor is None or factor.variable is None:
            return False
        name, k = factor.variable, unknown[0][1]
        known = Polynomial({t: m for t, m in size._polynomial.terms if t is not unknown[0][0]})
        quotient, remainder = divmod(value - evaluate(known, self.known), k)
        if remainder != 0:
            raise self.wrong(f"Division had remainder {remainder} when computing the value of '{name}'.")
        self.known[name] = quotient
        self.sources[name] = (place, size, value)
        if not _positive(quotient):
            raise self.wrong(f"Expected value >= 1 for dimension variable '{name}'.")
        return True

    def constraints(self, scope: SymbolicScope) -> None:
        for constraint in scope._explicit:
            if not constraint.difference.variables() <= self.known.keys():
                continue
            value = evaluate(constraint.difference, self.known)
            if not (value == 0 if constraint.equal else value >= 0):
                relation = "equal" if constraint.equal else "greater or equal"
                raise ValueError(
                    f"Input shapes do not match the symbolic shape constraint {constraint.text}. Expected "
                    f"'{constraint.difference}' to be {relation} to 0, but found {value}.{self.specification}."
                    f"{self.found}. {_MORE}"
                )

    def unsolved(self, equations: Iterable[tuple[str, _DimExpr, Any]]) -> ValueError:
        equations = list(equations)
        names = sorted(set().union(*(size._get_vars() for _, size, _ in equations)) - self.known.keys())
        sizes = ", ".join(f"'{size}' for dimension size {place}" for place, size, _ in equations)
        return ValueError(
            f"Cannot solve for values of dimension variables {{{', '.join(map(repr, names))}}}. We can only solve "
            f"linear uni-variate constraints.{self.specification}. Unprocessed specifications: {sizes}. {_RULES}"
        )


def _positive(size: Any) -> bool:
    """Whether a size is at least 1, for all values of the variables in it."""
    try:
        return bool(size >= 1)
    except InconclusiveDimensionOperation:
        return False


def _shape(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def solve(shapes: Sequence[tuple[str, Sequence[Any]]], given: Sequence[Sequence[Any]]) -> Mapping[str, Any]:
    """The variables of shapes, for arguments of other shapes.

    Args:
      shapes: shapes with variables, and how errors call them.
      given: as many shapes of as many sizes, which may be symbolic, too.

    Raises:
      ValueError: the sizes do not fit, or do not say what a variable is.
    """
    solver = _Solver(shapes, given)
    variables = solver.variables()
    if solver.equations:
        solver.constraints(solver.equations[0][1].scope)
    return variables


def check_known(sizes: Iterable[_DimExpr], shapes: Sequence[Sequence[Any]]) -> None:
    """Checks that the arguments' shapes have all variables of a program's sizes.

    Raises:
      UnexpectedDimVar: they have not.
    """
    known = {name for shape in shapes for d in shape if isinstance(d, _DimExpr) for name in d._get_vars()}
    for name in sorted({name for size in sizes for name in size._get_vars()} - known):
        raise UnexpectedDimVar(
            f"Encountered dimension variable '{name}' that is not appearing in the shapes of the function arguments. "
            f"These have: {sorted(known)}. {_RULES}"
        )


def check_solvable(shapes: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Checks that the sizes of arguments will say what the variables are.

    Raises:
      ValueError: they will not.
    """
    _Solver(shapes, [shape for _, shape in shapes]).variables()
