"""Solutions that functions of the caller's find, with derivatives of the equation: linear ones and roots.

Read next: `ferrax._ferrax.bind_linear_solve` in `crates/ferrax-ops/src/control`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._texts import differences, short
from ferrax.lax.control_flow import is_pair

__all__ = ["custom_linear_solve", "custom_root"]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solves `matvec(x) = b` by a function of the caller's, with derivatives through the equation.

    Args:
      matvec: linear function.
      b: right-hand side, a pytree like `matvec`'s argument and result.
      solve: function `(matvec, b) -> x`; it is not differentiated.
      transpose_solve: function `(transposed matvec, b) -> x`, for reverse mode.
      symmetric: whether `matvec` is symmetric, so that `solve` serves for the transpose.
      has_aux: whether the solvers return `(x, auxiliary data)`.

    Returns:
      The solution, with auxiliary data in a pair.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.custom_linear_solve(lambda x: 2.0 * x, jnp.ones(2), lambda mv, b: b / 2.0, symmetric=True))
    [0.5 0.5]
    """
    import ferrax.numpy as jnp
    from ferrax._derivatives import linear_transpose

    b = tree_util.tree_map(jnp.asarray, b)
    name = "custom_linear_solve"
    product = _ferrax.trace_to_jaxpr(matvec, (b,), None, name)
    _check_solution("matvec", product, b, False)
    solver = _ferrax.trace_to_jaxpr(lambda b: solve(matvec, b), (b,), None, name)
    _check_solution("solve", solver, b, has_aux)
    transposed, transposed_solver = None, None
    if symmetric or transpose_solve is not None:
        if symmetric:
            backward, vecmat = transpose_solve or solve, matvec
        else:
            assert transpose_solve is not None
            backward, vecmat = transpose_solve, lambda y: linear_transpose(matvec, b)(y)[0]
        transposed = _ferrax.trace_to_jaxpr(vecmat, (b,), None, name)
        transposed_solver = _ferrax.trace_to_jaxpr(lambda y: backward(vecmat, y), (b,), None, name)
        _check_solution("transpose_solve", transposed_solver, b, has_aux)
    leaves = tree_util.tree_leaves(b)
    outs = _ferrax.bind_linear_solve(product, transposed, solver, transposed_solver, leaves)
    out = solver.out_tree.unflatten(outs)
    return tuple(out) if has_aux else out


def _check_solution(what: str, program: Any, b: Any, has_aux: bool) -> None:
    """Errors unless a function gives vectors like `b`, in front of auxiliary data where there is any."""
    tree, wanted = program.out_tree, tree_util.tree_structure(b)
    if has_aux:
        tree = _without_aux(what, tree)
    got, leaves = program.out_avals[: tree.num_leaves], tree_util.tree_leaves(b)
    shapes = [a.shape for a in got], [leaf.shape for leaf in leaves]
    if tree != wanted and len(got) == len(leaves):
        raise _structure_error(what, tree, wanted, "b")
    if shapes[0] != shapes[1]:
        lines = differences(tree, wanted, f"{what}() output", "b") if tree != wanted else ""
        raise ValueError(f"{what}() output shapes must match b, got {short(shapes[0])} and {short(shapes[1])}{lines}")
    for a, leaf in zip(got, leaves, strict=True):
        if a.dtype != leaf.dtype:
            raise ValueError(f"{what}() output dtypes must match b, got {a.dtype.name} and {leaf.dtype.name}")


def _without_aux(what: str, tree: Any) -> Any:
    """The structure of the first of a pair, which a function with auxiliary data returns."""
    if not is_pair(tree):
        raise ValueError(
            f"{what}() produced a pytree with structure {short(tree)}, but a pytree tuple with auxiliary output was "
            "expected because has_aux was set to True."
        )
    return tree.children()[0]


def _structure_error(what: str, tree: Any, wanted: Any, like: str) -> TypeError:
    """The error of a result whose structure is not that of what it must be like."""
    return TypeError(
        f"{what}() output pytree structure must match {like}, got {short(tree)} and {short(wanted)}."
        f"{differences(tree, wanted, f'{what}() output', like)}"
    )


def _zeros_like(x: Any) -> Any:
    """Zeros like an array."""
    import ferrax.numpy as jnp

    return jnp.zeros_like(x)


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """A root of `f` found by a function of the caller's, with derivatives by the implicit function theorem.

    Args:
      f: function whose root is wanted, from a pytree to one like it.
      initial_guess: where the search starts.
      solve: function `(f, initial_guess) -> root`; it is not differentiated.
      tangent_solve: function `(g, y) -> x` that solves the linear equation `g(x) = y`.
      has_aux: whether `solve` returns `(root, auxiliary data)`.

    Returns:
      The root, with auxiliary data in a pair.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> def sqrt(a):
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x0: jnp.sqrt(a), lambda g, y: y / g(1.0))
    >>> print(jax.grad(sqrt)(4.0))
    0.25
    """
    from ferrax._api import closure_convert, eval_shape
    from ferrax._derivatives import linearize
    from ferrax.custom_derivatives import custom_jvp

    guessed = tree_util.tree_structure(initial_guess)

    def checked(what: str, out: Any, wanted: Any, like: str, has_aux: bool = False) -> Any:
        tree = tree_util.tree_structure(out)
        tree = _without_aux(what, tree) if has_aux else tree
        if tree != wanted:
            raise _structure_error(what, tree, wanted, like)
        return out

    converted, consts = closure_convert(lambda x: checked("f", f(x), guessed, "initial_guess"), initial_guess)

    # What the search closes over is an argument too, whose tangents do not count.
    def find(guess: Any) -> Any:
        found = solve(lambda x: converted(x, *consts), guess)
        return checked("solve", found, guessed, "initial_guess", has_aux)

    search, known = closure_convert(find, initial_guess)

    def solved(consts: Any, root: Any, right: Any) -> Any:
        _, slope = linearize(lambda x: converted(x, *consts), root)
        return checked("tangent_solve", tangent_solve(slope, right), tree_util.tree_structure(root), "x")

    # Its mistakes show whether or not anybody differentiates.
    eval_shape(solved, consts, initial_guess, initial_guess)

    @custom_jvp
    def root_of(consts: Any, known: Any, guess: Any) -> Any:
        out = search(guess, *known)
        return tuple(out) if has_aux else (out, None)

    @root_of.defjvp
    def root_jvp(primals: Any, tangents: Any) -> Any:
        consts, known, guess = primals
        root, aux = root_of(consts, known, guess)
        _, push = linearize(lambda c: converted(root, *c), consts)
        step = solved(consts, root, push(tangents[0]))
        tangent = tree_util.tree_map(lambda v: -v, step)
        return (root, aux), (tangent, tree_util.tree_map(_zeros_like, aux))

    root, aux = root_of(consts, known, initial_guess)
    return (root, aux) if has_aux else root
