"""Functions with derivative rules of their own."""

from typing import Any

from ferrax import _ferrax
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "optimize_remat_of_custom_vjp_fwd",
    "what custom rules keep is the core's",
    names_of(__name__, "ferrax.custom_derivatives"),
)


def lift_jvp(num_consts: int, jvp_jaxpr_fun: Any) -> Any:
    """A derivative rule as one function of its operands and their tangents.

    Args:
      num_consts: number of leading operands that are constants of the function.
      jvp_jaxpr_fun: wrapped function from which tangents are zero to `(program, constants, which results have none)`.

    Returns:
      A wrapped function of operands, then as many tangents, that gives results, then as many tangents.
    """
    from ferrax.core import eval_jaxpr
    from ferrax.custom_derivatives import SymbolicZero
    from ferrax.extend.linear_util import wrap_init

    def jvp(*xs: Any) -> list[Any]:
        n, odd = divmod(len(xs), 2)
        assert not odd, "a rule takes a tangent for each operand"
        primals, tangents = xs[num_consts:n], xs[n + num_consts :]
        program, consts, none = jvp_jaxpr_fun.call_wrapped(*(type(t) is SymbolicZero for t in tangents))
        moving = [t for t in tangents if type(t) is not SymbolicZero]
        outs = eval_jaxpr(program, consts, *primals, *moving)
        values, rest = outs[: len(none)], iter(outs[len(none) :])
        dots = [
            SymbolicZero(_ferrax.typeof(v).to_tangent_aval()) if zero else next(rest)
            for v, zero in zip(values, none, strict=True)
        ]
        return [*values, *dots]

    return wrap_init(jvp, debug_info=jvp_jaxpr_fun.debug_info)


def _maybe_perturbed(x: Any) -> bool:
    """Whether a value may carry a derivative: it is traced, and of a type that has tangents."""
    from ferrax.dtypes import float0

    return _ferrax.is_tracer(x) and _ferrax.typeof(x).to_tangent_aval().dtype != float0
