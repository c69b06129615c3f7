"""`sparsify`: functions of dense arrays, applied to sparse ones.

The function is traced with dense arrays of the same shapes; its program runs equation by equation, where those that
get a sparse array have rules of their own. Read next: `ferrax/_evaluate.py`, which runs the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax, numpy as jnp
from ferrax._api import eval_shape
from ferrax._core import ShapedArray, asarray, typeof
from ferrax._evaluate import bind, evaluate, parameters, traced
from ferrax._ferrax import ClosedJaxpr, EagerScope, JaxprEqn, primitive_names
from ferrax._named_functions import named_function
from ferrax._parameters import own
from ferrax._primitives import built_in
from ferrax.custom_derivatives import custom_jvp
from ferrax.dtypes import float0
from ferrax.experimental.sparse import _bcoo_core, _bcoo_dot, _bcoo_layout, _bcoo_shape, _bcsr_functions
from ferrax.experimental.sparse._base import is_sparse, spread, stored_batch
from ferrax.experimental.sparse._bcoo import BCOO, with_shape
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.lax import elementwise
from ferrax.tree_util import tree_flatten, tree_unflatten

__all__ = [
    "OwnRule",
    "evaluate_sparse",
    "fill_tables",
    "sparse_rules_bcoo",
    "sparse_rules_bcsr",
    "sparsify",
    "sparsify_flat",
]

#: Operations f of one array, element by element, of which f(x + y) = f(x) + f(y) holds.
_LINEAR = frozenset(["conj", "copy", "copy_p", "imag", "name", "neg", "real"])
#: Others, besides the functions of `lax/elementwise.py`, that apply to each element.
_OTHERS = frozenset(["convert_element_type", "integer_pow", "reduce_precision", "round"])
_COMPARISONS = frozenset(["eq", "ge", "gt", "le", "lt", "ne"])


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of dense arrays that takes BCOO and BCSR arrays, too, and computes with their elements alone.

    Args:
      f: a function of pytrees of arrays.
      use_tracer: whether `f` runs on tracers (`SparseTracer`) that refer to sparse arrays, instead of being traced as a
        function of dense arrays first.

    Returns:
      A function with the same arguments. Sparse arrays that it is given are dense ones to `f`; where the result of
      sparse arrays is sparse, it returns a sparse array.

    Raises:
      NotImplementedError: the function applies an operation to a sparse array that has no sparse form.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import sparse
    >>> @sparse.sparsify
    ... def f(mat, v):
    ...     return 2 * jnp.dot(mat.T, v)
    >>> print(f(sparse.eye(2, 3, k=1), jnp.array([1.0, 2.0])))
    [0. 2. 4.]
    """

    if use_tracer:
        from ferrax.experimental.sparse._tracers import sparsify_with_tracer

        return sparsify_with_tracer(f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        outs, tree = sparsify_flat(f, args, kwargs)
        return tree_unflatten(tree, outs)

    return wrapped


def sparsify_flat(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[list[Any], Any]:
    """The leaves that a function gives for dense and sparse arrays, and its result's structure."""
    leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_value)
    leaves = [x if _is_value(x) else _operand(x) for x in leaves]
    out_tree: Any = None

    def flat(*values: Any) -> Sequence[Any]:
        nonlocal out_tree
        positional, named = tree_unflatten(tree, values)
        outs, out_tree = tree_flatten(f(*positional, **named))
        return outs

    program = traced(flat, [aval_of(x) for x in leaves], "sparsify")
    return evaluate_sparse(program, [*program.captured, *leaves]), out_tree


def _is_value(x: Any) -> bool:
    return isinstance(x, (BCOO, BCSR))


def _operand(x: Any) -> Any:
    """A dense operand as an array; TypeError where it is none."""
    typeof(x)
    return asarray(x)


def aval_of(x: Any) -> Any:
    """The type of the dense array that stands for a value."""
    return ShapedArray(tuple(x.shape), x.dtype, False) if is_sparse(x) else typeof(x)


def evaluate_sparse(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program whose arguments may be sparse arrays.

    Args:
      program: the program.
      args: a value for each of its arguments, what it captured first.

    Returns:
      A list of dense and sparse arrays.
    """
    return evaluate(program, args, _rule)


#: Rules by primitive, in JAX's form: functions of an environment, of values in it, and of parameters by name. Those of
#: users come before the rules here; `transform.py` puts these into the tables.
sparse_rules_bcoo: dict[Any, Callable[..., Any]] = {}
sparse_rules_bcsr: dict[Any, Callable[..., Any]] = {}


class OwnRule:
    """A rule of the library in JAX's form.

    Args:
      primitive: the operation.
    """

    def __init__(self, primitive: Any):
        self.primitive = primitive

    def __call__(self, spenv: Any, *spvalues: Any, **params: Any) -> Any:
        from ferrax.experimental.sparse.transform import arrays_to_spvalues, spvalues_to_arrays

        arrays = spvalues_to_arrays(spenv, spvalues)

        def call(*values: Any) -> Any:
            out = self.primitive.bind(*values, **self.primitive.get_bind_params(params))
            return out if self.primitive.multiple_results else [out]

        program = traced(call, [aval_of(x) for x in arrays], "sparsify")
        return arrays_to_spvalues(spenv, evaluate_sparse(program, [*program.captured, *arrays]))


def _by_user(equation: JaxprEqn, values: list[Any]) -> list[Any] | None:
    """What a user's rule gives; None where there is none."""
    table = sparse_rules_bcsr if any(isinstance(x, BCSR) for x in values) else sparse_rules_bcoo
    rule = table.get(equation.primitive) if table else None
    if rule is None or isinstance(rule, OwnRule):
        return None
    from ferrax.experimental.sparse.transform import SparsifyEnv, arrays_to_spvalues, spvalues_to_arrays

    params = dict(equation.params)
    if equation.primitive._ferrax_built_in:
        params = dict(zip(params, parameters(equation, *params), strict=True))
    env = SparsifyEnv()
    return list(spvalues_to_arrays(env, rule(env, *arrays_to_spvalues(env, values), **params)))


def _rule(equation: JaxprEqn, values: list[Any]) -> Sequence[Any] | None:
    name = equation.primitive.name
    if not any(is_sparse(x) for x in values):
        # programs inside are run as they are, without a look at their equations
        return evaluate(equation.params["jaxpr"], values) if name == "jit" else bind(equation, values)
    by_user = _by_user(equation, values)
    if by_user is not None:
        return by_user
    if name in _RULES:
        out = _RULES[name](equation, *values)
        return out if isinstance(out, list) else [out]
    unary = len(values) == 1 and (name in elementwise.__all__ or name in _LINEAR or name in _OTHERS)
    if unary and (name in _LINEAR or _zero_at_zero(equation)):
        return [_elementwise(equation, *values)]
    if unary or name in _COMPARISONS:
        raise NotImplementedError(
            f"sparse rule for {name} is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to dense matrices."
        )
    raise _missing(name)


_at_zero: dict[Any, bool] = {}


def _zero_at_zero(equation: JaxprEqn) -> bool:
    """Whether an operation of one element gives zero for zero."""
    dtype = equation.invars[0].aval.dtype
    key = (equation.primitive.name, dtype, str(equation.params))
    if key not in _at_zero:
        with EagerScope():
            (out,) = bind(equation, [asarray(np.zeros((), dtype))])
            _at_zero[key] = bool(out == 0)
    return _at_zero[key]


def _missing(name: str) -> NotImplementedError:
    return NotImplementedError(f"sparse rule for {name} is not implemented.")


def _with_data(x: Any, data: Any) -> Any:
    """The sparse array with other data at the same indices."""
    new = object.__new__(type(x))
    vars(new).update(vars(x))
    new.data = data
    return new


# --- elementwise


def _elementwise(equation: JaxprEqn, x: Any) -> Any:
    name = equation.primitive.name
    linear = name in _LINEAR
    if name == "convert_element_type":
        old, new = x.dtype, equation.outvars[0].aval.dtype
        linear = np.bool_ not in (old, new) and (_inexact(new) or not _inexact(old))
    if not linear and not x.unique_indices:
        x = _without_duplicates(x)
    return _with_data(x, bind(equation, [x.data])[0])


def _todense(equation: JaxprEqn, x: Any) -> Any:
    return x.todense()


def _without_duplicates(x: Any) -> Any:
    """The array with each index once, and as many elements as it has."""
    if isinstance(x, BCSR):
        return _bcsr_functions.bcsr_sum_duplicates(x, nse=x.nse)
    return _bcoo_core.bcoo_sum_duplicates(x, nse=x.nse)


def _bcoo_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that has no form for BCSR."""

    @functools.wraps(function)
    def rule(equation: JaxprEqn, *values: Any) -> Any:
        if any(isinstance(x, BCSR) for x in values):
            raise _missing(equation.primitive.name)
        return function(equation, *values)

    return rule


def _same_indices(x: Any, y: Any) -> bool:
    """Whether elements stand at the same places, one for one."""
    if type(x) is not type(y) or x.shape != y.shape or x.data.shape != y.data.shape:
        return False
    return x.indices is y.indices and getattr(x, "indptr", None) is getattr(y, "indptr", None)


def _add(equation: JaxprEqn, x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if _same_indices(x, y):
            return _with_data(x, bind(equation, [x.data, y.data])[0])
        if x.shape != y.shape:
            raise NotImplementedError("Addition between sparse matrices of different shapes.")
        if isinstance(x, BCSR) or isinstance(y, BCSR):
            raise _missing(equation.primitive.name)
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            raise NotImplementedError("Addition between sparse matrices with different batch/dense dimensions.")
        return _joined(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    if np.broadcast_shapes(np.shape(dense), mat.shape) != np.shape(dense):
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the output shape is larger "
            "than Y.shape. This is to prevent silent densification of a large sparse array. If this is your intent, "
            "you can explicitly cast the sparse array to a dense matrix."
        )
    return bind(equation, [a.todense() if is_sparse(a) else a for a in (x, y)])[0]


def _joined(x: BCOO, y: BCOO) -> BCOO:
    """The elements of two arrays of the same layout."""
    n = x.n_batch
    batch = stored_batch(n, x.data, x.indices, y.data, y.indices)
    data = lax.concatenate([spread(x.data, batch), spread(y.data, batch)], n)
    dtype = np.promote_types(x.indices.dtype, y.indices.dtype)
    indices = [spread(lax.convert_element_type(a.indices, dtype), batch) for a in (x, y)]
    return with_shape((data, lax.concatenate(indices, n)), x.shape)


def _sub(equation: JaxprEqn, x: Any, y: Any) -> Any:
    if not (is_sparse(x) and is_sparse(y)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    if _same_indices(x, y):
        return _with_data(x, bind(equation, [x.data, y.data])[0])
    if x.shape != y.shape:
        raise NotImplementedError("Subtraction between sparse matrices of different shapes.")
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError("Subtraction between sparse matrices with different batch/dense dimensions.")
    if isinstance(x, BCSR):
        raise _missing("sub")
    return _joined(x, _with_data(y, lax.neg(y.data)))


def _mul(equation: JaxprEqn, x: Any, y: Any) -> Any:
    if is_sparse(x) and is_sparse(y):
        if _same_indices(x, y) and x.unique_indices:
            return _with_data(x, bind(equation, [x.data, y.data])[0])
        if isinstance(x, BCSR) or isinstance(y, BCSR):
            raise _missing("mul")
        return _bcoo_dot.bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    if np.ndim(dense) == 0:
        return _with_data(mat, bind(equation, [a.data if is_sparse(a) else a for a in (x, y)])[0])
    if isinstance(mat, BCSR):
        raise _missing("mul")
    return _with_data(mat, _bcoo_dot.bcoo_multiply_dense(mat, dense))


def _div(equation: JaxprEqn, x: Any, y: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to a dense array."
        )
    y = asarray(y)
    if y.ndim == 0:
        return _with_data(x, bind(equation, [x.data, y])[0])
    if isinstance(x, BCSR) or y.ndim != x.ndim:
        raise _missing("div")
    return _with_data(x, bind(equation, list(_bcoo_dot.aligned(x, x.data, y)))[0])


# --- shapes


def _dot_general(equation: JaxprEqn, x: Any, y: Any) -> Any:
    function = _bcoo_dot.bcoo_dot_general
    if isinstance(x, BCSR) or isinstance(y, BCSR):
        function = _bcsr_functions.bcsr_dot_general  # type: ignore[assignment]
    out = equation.outvars[0].aval.dtype
    return function(x, y, dimension_numbers=equation.params["dimension_numbers"], preferred_element_type=out)


def _reduce_sum(equation: JaxprEqn, x: Any) -> Any:
    out = _bcoo_shape.bcoo_reduce_sum(x, axes=equation.params["axes"])
    return out.todense() if out.shape == () else out


def _broadcast_in_dim(equation: JaxprEqn, x: Any) -> Any:
    return _spread(x, equation.outvars[0].aval.shape, equation.params.get("broadcast_dimensions", ()))


def _spread(x: Any, shape: Any, dims: Any) -> Any:
    if isinstance(x, BCSR):
        return _bcsr_functions.bcsr_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)
    return _bcoo_layout.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)


def _concatenate(equation: JaxprEqn, *xs: Any) -> Any:
    return _joined_along(int(equation.params["dimension"]), xs)


def _joined_along(dimension: int, xs: Any) -> Any:
    if all(isinstance(x, BCSR) for x in xs):
        return _bcsr_functions.bcsr_concatenate(xs, dimension=dimension)
    return _bcoo_shape.bcoo_concatenate(xs, dimension=dimension)


def _stack(equation: JaxprEqn, *xs: Any) -> Any:
    axis, shape = int(equation.params["axis"]), list(equation.outvars[0].aval.shape)
    shape[axis] = 1
    dims = [d for d in range(len(shape)) if d != axis]
    return _joined_along(axis, [_spread(x, shape, dims) for x in xs])


def _reshape(equation: JaxprEqn, x: Any) -> Any:
    return _bcoo_shape.bcoo_reshape(x, new_sizes=equation.outvars[0].aval.shape)


def _transpose(equation: JaxprEqn, x: Any) -> Any:
    return _bcoo_core.bcoo_transpose(x, permutation=equation.params["permutation"])


def _slice(equation: JaxprEqn, x: Any) -> Any:
    p = equation.params
    return _bcoo_shape.bcoo_slice(
        x, start_indices=p["start_indices"], limit_indices=p["limit_indices"], strides=p["strides"]
    )


def _dynamic_slice(equation: JaxprEqn, x: Any, *starts: Any) -> Any:
    return _bcoo_shape.bcoo_dynamic_slice(x, starts, equation.params["slice_sizes"])


def _squeeze(equation: JaxprEqn, x: Any) -> Any:
    return _bcoo_layout.bcoo_squeeze(x, dimensions=equation.params["dimensions"])


def _rev(equation: JaxprEqn, x: Any) -> Any:
    return _bcoo_shape.bcoo_rev(x, equation.params["dimensions"])


def _gather(equation: JaxprEqn, x: Any, starts: Any) -> Any:
    if not is_sparse(x):
        raise _missing("gather with sparse indices")
    numbers, sizes = parameters(equation, "dimension_numbers", "slice_sizes")
    return _bcoo_shape.bcoo_gather(x, starts, numbers, sizes)


def _conv(equation: JaxprEqn, x: Any, y: Any) -> Any:
    keys = [
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "dimension_numbers",
        "feature_group_count",
        "batch_group_count",
    ]
    return _bcoo_shape.bcoo_conv_general_dilated(x, y, **dict(zip(keys, parameters(equation, *keys))))


# --- programs inside of programs


def _inside(key: str) -> Callable[..., Any]:
    def rule(equation: JaxprEqn, *values: Any) -> list[Any]:
        return evaluate_sparse(own(equation.params)[key], values)

    return rule


def _custom_jvp(equation: JaxprEqn, *values: Any) -> list[Any]:
    """A function with a derivative of its own, which is taken of sparse arrays' data."""
    p = own(equation.params)
    jvp = named_function(str(p["jvp"]))
    if jvp is None:
        raise _missing("custom_jvp_call")
    consts, operands = values[: len(values) - jvp.arity], values[len(values) - jvp.arity :]
    leaves, tree = tree_flatten(list(operands))
    out_tree: Any = None
    same: list[int | None] = []

    def flattened(outs: list[Any], leaves: Sequence[Any]) -> list[Any]:
        """The parts of results; notes their structure, and which are an operand's indices."""
        nonlocal out_tree, same
        parts, out_tree = tree_flatten(outs)
        same = [next((i for i, y in enumerate(leaves) if y is x and not _differs(x)), None) for x in parts]
        return parts

    @custom_jvp
    def call(*leaves: Any) -> list[Any]:
        return flattened(evaluate_sparse(p["call_jaxpr"], [*consts, *tree_unflatten(tree, leaves)]), leaves)

    @call.defjvp
    def _(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        xs, directions = tree_unflatten(tree, primals), tree_unflatten(tree, tangents)
        ts = [_with_data(x, t.data) if is_sparse(x) else t for x, t in zip(xs, directions)]
        program = traced(lambda *args: jvp(args, []), [aval_of(x) for x in (*xs, *ts)], "sparsify")
        both = evaluate_sparse(program, [*program.captured, *xs, *ts])
        n = len(both) // 2
        for out, tangent in zip(both[:n], both[n:]):
            if is_sparse(out) != is_sparse(tangent) or (is_sparse(out) and not _same_indices(out, tangent)):
                raise NotImplementedError(f"the derivative of {p['name']} has other indices than its value")
        outs, slopes = flattened(both[:n], primals), tree_flatten(both[n:])[0]
        # indices have no direction
        return outs, [t if _differs(x) else np.zeros(t.shape, float0) for x, t in zip(outs, slopes)]

    outs = call(*leaves)
    # indices that are an operand's stay the same object, by which other rules know them
    outs = [x if i is None else leaves[i] for x, i in zip(outs, same)]
    return tree_unflatten(out_tree, outs)


def _differs(x: Any) -> bool:
    """Whether an array has derivatives."""
    return _inexact(x.dtype)


def _inexact(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, np.inexact)


def _like(value: Any, model: Any) -> Any:
    """A value in the format that another has: dense, or sparse with no more said of the indices."""
    if not is_sparse(value):
        return value
    if not is_sparse(model):
        return value.todense()
    new = _with_data(value, value.data)
    new.indices_sorted = value.indices_sorted and model.indices_sorted
    new.unique_indices = value.unique_indices and model.unique_indices
    return new


def _cond(equation: JaxprEqn, index: Any, *operands: Any) -> list[Any]:
    functions = [functools.partial(_run, program) for program in equation.params["branches"]]
    models: Any = eval_shape(functions[0], *operands)
    for function in functions[1:]:
        models = [_like(m, o) for m, o in zip(models, eval_shape(function, *operands))]

    def matched(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: [_like(x, m) for x, m in zip(function(*args), models)]

    if len(functions) == 2 and asarray(index).dtype == np.bool_:
        index = lax.convert_element_type(index, np.int32)
    return list(lax.switch(index, [matched(f) for f in functions], *operands))


def _run(program: ClosedJaxpr, *args: Any) -> list[Any]:
    return evaluate_sparse(program, args)


def _carried(carry: Sequence[Any], step: Callable[..., Sequence[Any]]) -> list[Any]:
    """What a loop starts from: the values, saying no more of their indices than `step`'s results do."""
    carry = list(carry)
    for _ in range(3):
        after = eval_shape(step, *carry)
        carry = [_like(x, m) if is_sparse(m) else x for x, m in zip(carry, after)]
    return carry


def _while(equation: JaxprEqn, *values: Any) -> list[Any]:
    p = equation.params
    first, second = int(p["cond_nconsts"]), int(p["cond_nconsts"]) + int(p["body_nconsts"])
    test_consts, body_consts, carry = values[:first], values[first:second], values[second:]

    def body(*carry: Any) -> list[Any]:
        return evaluate_sparse(p["body_jaxpr"], [*body_consts, *carry])

    start = _carried(carry, body)
    return list(
        lax.while_loop(
            lambda carry: evaluate_sparse(p["cond_jaxpr"], [*test_consts, *carry])[0],
            lambda carry: [_like(x, m) for x, m in zip(body(*carry), start)],
            start,
        )
    )


def _scan(equation: JaxprEqn, *values: Any) -> list[Any]:
    p = equation.params
    first, second = int(p["num_consts"]), int(p["num_consts"]) + int(p["num_carry"])
    consts, carry, xs = values[:first], values[first:second], values[second:]
    if any(is_sparse(x) for x in xs):
        raise NotImplementedError("sparse rule for scan with x values.")
    n = len(carry)

    def step(carry: Sequence[Any], x: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        out = evaluate_sparse(p["jaxpr"], [*consts, *carry, *x])
        return out[:n], out[n:]

    slices = [
        lax.index_in_dim(asarray(x), 0, keepdims=False) if np.shape(x)[0] else lax.full(x.shape[1:], 0, x.dtype)
        for x in xs
    ]
    start = _carried(carry, lambda *carry: step(carry, slices)[0])

    def matched(carry: Sequence[Any], x: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        new, out = step(carry, x)
        return [_like(a, m) for a, m in zip(new, start)], out

    carry, ys = lax.scan(
        matched, start, list(xs), length=int(p["length"]), reverse=bool(p["reverse"]), unroll=int(p["unroll"])
    )
    return [*carry, *ys]


_RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "dot_general": _dot_general,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "stack": _stack,
    "reduce_sum": _bcoo_only(_reduce_sum),
    "reshape": _bcoo_only(_reshape),
    "transpose": _bcoo_only(_transpose),
    "slice": _bcoo_only(_slice),
    "dynamic_slice": _bcoo_only(_dynamic_slice),
    "squeeze": _bcoo_only(_squeeze),
    "rev": _bcoo_only(_rev),
    "gather": _bcoo_only(_gather),
    "conv_general_dilated": _bcoo_only(_conv),
    "jit": _inside("jaxpr"),
    "remat2": _inside("jaxpr"),
    "custom_jvp_call": _custom_jvp,
    "todense": _todense,
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}
_BCSR = "add broadcast_in_dim concatenate custom_jvp_call div dot_general mul stack sub todense"


def fill_tables() -> None:
    """Puts the rules of the library into the tables of rules by primitive."""
    from ferrax.experimental.sparse._primitives import todense_p

    def primitive(name: str) -> Any:
        return todense_p if name == "todense" else built_in(name)

    # those that would give dense arrays say so
    unary = {*elementwise.__all__, *_OTHERS, *_LINEAR - {"name"}} & {*primitive_names()}
    for table, names in ((sparse_rules_bcoo, _RULES), (sparse_rules_bcsr, _BCSR.split())):
        for name in sorted({*names, *unary}):
            table.setdefault(primitive(name), OwnRule(primitive(name)))
