"""Names for the values that policies of `checkpoint` may keep, and what reverse mode keeps, under JAX's module name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._checkpoint import Offloadable, Recompute, Saveable, checkpoint, checkpoint_policies, remat
from ferrax._ferrax import lax as _lax

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]


def checkpoint_name(x: Any, name: str) -> Any:
    """The value under a name, for policies such as `checkpoint_policies.save_only_these_names`.

    Args:
      x: array or pytree of arrays.
      name: the name.

    Returns:
      `x`. Outside `checkpoint` the name means nothing.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> from ferrax.ad_checkpoint import checkpoint_name
    >>> policy = jax.checkpoint_policies.save_only_these_names("hidden")
    >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.exp(x), "hidden")), policy=policy)
    >>> print(jax.grad(f)(0.0).round(3))
    0.54
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string for a name, got {name!r} of type {type(name).__name__}")
    return tree_util.tree_map(lambda leaf: _lax.checkpoint_name(leaf, name), x)


#: Where a value comes from: its place in the order of the program, and words for it.
_Origin = tuple[tuple[int, ...], str]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints what reverse mode would keep of a function's run: type and origin of each value, arguments first.

    Args:
      f: function to differentiate, of arrays and pytrees of arrays.
      *args: its arguments.
      **kwargs: its arguments by name.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(lambda x, y: x * y, 2.0, jnp.ones(3))
    f32[] from the argument x
    f32[3] from the argument y
    """
    for aval, words in saved_residuals(f, *args, **kwargs):
        print(f"{aval.strip_weak_type().str_short(short_dtypes=True)} {words}")


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """What `print_saved_residuals` prints, as pairs of a type and where the value is from."""
    from ferrax._api import make_jaxpr
    from ferrax._derivatives import vjp
    from ferrax._linearized import linear_program
    from ferrax.api_util import debug_info
    from ferrax.interpreters.partial_eval import dce_jaxpr

    leaves, tree = tree_util.tree_flatten((args, kwargs))

    def flat(*values: Any) -> Any:
        given, named = tree.unflatten(values)
        return f(*given, **named)

    data: Any = None

    def residuals(*values: Any) -> list[Any]:
        nonlocal data
        kept, data = vjp(flat, *values)[1]._flatten()
        return kept

    names = debug_info("saved_residuals", f, args, kwargs).arg_names
    program = make_jaxpr(residuals)(*leaves)
    given = [((-1, i), f"from the argument {names[i] if names else i}") for i in range(len(leaves))]
    linear = linear_program(data, (), program.out_avals)
    # what a rematerialized function takes, and its derivative does not read
    _, used = dce_jaxpr(linear.jaxpr, True)
    each = zip(_origins(program, given), (v.aval for v in program.outvars), used, strict=False)
    kept = {origin: aval for origin, aval, on in each if on}
    return [(kept[place, words], words) for place, words in sorted(kept)]


def _origins(program: Any, given: Sequence[_Origin], place: tuple[int, ...] = ()) -> list[_Origin]:
    """Where the results of a program come from, by where its arguments do."""
    known: dict[Any, _Origin] = {v: ((-2, i), "from a constant") for i, v in enumerate(program.constvars)}
    known.update(zip(program.invars, given, strict=True))

    def of(atom: Any) -> _Origin:
        return known.get(atom, ((-3,), "from a literal"))

    for n, equation in enumerate(program.eqns):
        at, name = (*place, n), equation.primitive.name
        if name == "remat2":
            # what is kept of a rematerialized function are values inside of it
            inner = _origins(equation.params["jaxpr"], [of(x) for x in equation.invars], at)
            known.update(zip(equation.outvars, inner, strict=True))
            continue
        made = f"output of {name}"
        if name in ("jit", "name"):
            what = equation.params["name"]
            made = f"named '{what}'" if name == "name" else f"output of jitted function '{what}'"
        if equation._place:
            file, line, column, function, *_ = equation._place
            made += f" from {file}:{line}:{column} ({function})"
        known.update({v: ((*at, k), made) for k, v in enumerate(equation.outvars)})
    return [of(v) for v in program.outvars]


_expose(globals())
