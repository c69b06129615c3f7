"""Symbolic sizes: their arithmetic, what is known of them, how they are written and solved."""

import itertools
import random

import numpy as np
import pytest

import ferrax
from ferrax import export
from ferrax.errors import InconclusiveDimensionOperation

OPERATIONS = ("+", "-", "*", "//", "%", "max", "min")


def applied(operation, x, y):
    if operation in ("max", "min"):
        return getattr(ferrax.core, f"{operation}_dim")(x, y)
    return eval(f"x {operation} y")


# as JAX 0.10.2 writes them
WRITTEN = {
    "a - b": "- b + a",
    "2 * a * b - 3": "2*a*b - 3",
    "(a + b) * (a - b)": "- b^2 + a^2",
    "a * b * a + 3 * b - 2 * a": "a^2*b + 3*b - 2*a",
    "a // 2": "floordiv(a, 2)",
    "(4 * a + 3) // 2": "2*a + 1",
    "(4 * a + 3) % 2": "1",
    "a % 3": "mod(a, 3)",
    "(a * b) // a": "b",
    "divmod(a * b + b, b)": "(a + 1, 0)",
    "a * 0": "0",
    "a - a": "0",
    "(a + b) == (b + a)": "True",
    "a == b": "False",
    "a >= 1": "True",
    "3 - a": "- a + 3",
    "5 // a": "floordiv(5, a)",
    "5 % a": "mod(5, a)",
    "a ** 2": "a^2",
    "a % 2 <= 1": "True",
    "a // 3 <= a": "True",
    "(a // 2) * 2 + a % 2 >= a": "True",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_sizes_are_written_in_one_form(text):
    a, b = export.symbolic_shape("a, b")
    assert str(eval(text, {"a": a, "b": b})) == WRITTEN[text]


@pytest.mark.parametrize("seed", range(60))
def test_expressions_have_the_values_of_their_operations(seed):
    """Random expressions: the value for sizes, the text read back, and bounds that all values keep."""
    rng = random.Random(seed)
    constraints = rng.choice([(), ("a >= b",), ("a >= 2", "b <= 9"), ("mod(a, 2) == 0",), ("c == a + b",)])
    names = "abc"
    scope = export.SymbolicScope(constraints)
    symbols = dict(zip(names, export.symbolic_shape("a, b, c", scope=scope)))

    def valid(sizes):
        a, b, c = sizes.values()
        tests = {"a >= b": a >= b, "a >= 2": a >= 2, "b <= 9": b <= 9, "mod(a, 2) == 0": a % 2 == 0}
        return all(tests.get(text, c == a + b) for text in constraints)

    sizes = [
        dict(zip(names, values)) for values in itertools.product((1, 2, 3, 4, 7, 9), (1, 2, 5, 9), (1, 3, 4, 8, 12))
    ]
    sizes = [s for s in sizes if valid(s)]
    pool = [(symbols[n], [s[n] for s in sizes]) for n in names]
    for _ in range(8):
        (x, xs), (y, ys) = rng.choice(pool), rng.choice([*pool, *((k, [k] * len(sizes)) for k in (1, 2, 3))])
        operation = rng.choice(OPERATIONS)
        if operation in ("//", "%") and not all(v > 0 for v in ys):
            continue
        pool.append((applied(operation, x, y), [applied(operation, v, w) for v, w in zip(xs, ys)]))
    for size, values in pool:
        if not export.is_symbolic_dim(size):
            assert all(v == size for v in values)
            continue
        assert [size._evaluate(s) for s in sizes] == values
        assert export.symbolic_shape(str(size), scope=scope) == (size,)
        try:
            low, high = scope._bounds(size)
        except InconclusiveDimensionOperation as error:
            assert "division by 0" in str(error)
            continue
        assert all(low <= v <= high for v in values), (size, low, high)


def test_what_is_said_of_variables_is_used():
    a, b = export.symbolic_shape("a, b", constraints=("a >= b", "b >= 16"))
    assert a >= 16 and a - b >= 0 and not a < 16
    a, b = export.symbolic_shape("a, b", constraints=("mod(a, 4) == 0", "b <= 3"))
    assert a % 4 == 0 and 4 * (a // 4) == a and b < 4
    a, b = export.symbolic_shape("a, b", constraints=("2*a == b",))
    assert b > a if not export.is_symbolic_dim(b - 2 * a) else 2 * a == b
    assert not a > b


def test_mistakes_are_told():
    def f(x, tree):
        return x

    a, b = export.symbolic_shape("a, b")
    (other,) = export.symbolic_shape("a")
    with pytest.raises(InconclusiveDimensionOperation, match="comparison 'a' >= 'b' is inconclusive"):
        _ = a >= b
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        int(a)
    with pytest.raises(TypeError, match="integer"):
        range(a)
    for use, when in (
        (lambda: a + other, "for linear combination"),
        (lambda: 2 * b * other, "for operation mul"),
        (lambda: a // other, "for operation floordiv"),
        (lambda: a > other, "when comparing 'a' > 'a'"),
    ):
        text = rf"mixing of symbolic scopes {when}.\nExpected  scope \d+ created at .*test_symbolic_sizes.py:\d+:\d+ .*"
        with pytest.raises(
            ValueError, match=text + r"\nand found for 'a' \(unknown\) scope \d+ created at .*_sizes.py"
        ):
            use()
    of = [ferrax.ShapeDtypeStruct((size,), "float32") for size in (a, other)]
    with pytest.raises(
        ValueError, match=r"(?s)scopes when exporting f.\n.*current \(from args\[0\]\) .* \(args\[1\]\['x'\]\)"
    ):
        export.export(ferrax.jit(f))(of[0], {"x": of[1]})
    with pytest.raises(ValueError, match="negative powers"):
        _ = a**-1
    with pytest.raises(ZeroDivisionError):
        _ = a // 0
    with pytest.raises(NotImplementedError, match=r"symbolic sizes"):
        _ = a / 2
    for text, what in {
        "a b": "',' but found 'b'",
        "a, ...": "no 'like' shape",
        "a +": "but found the end",
        "max(a)": "',' but found '\\)'",
        "a ^ b": "expecting a number",
        "_": "no 'like' shape",
        "(a, b": "but found the end",
    }.items():
        with pytest.raises(ValueError, match=f"syntax error in symbolic shape .*{what}"):
            export.symbolic_shape(text)
    with pytest.raises(ValueError, match="different size 3 for known dimension"):
        export.symbolic_shape("a, 3", like=(2, 4))
    with pytest.raises(ValueError, match="unknown dimension"):
        export.symbolic_shape("a, _", like=(2, None))
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        export.symbolic_shape("a", constraints=("a >= 2",), scope=a.scope)
    for constraint, what in {
        "a > 3": "must contain one of",
        "a >= ": "syntax error",
        "a + b == 3": "left-hand-side",
    }.items():
        with pytest.raises(ValueError, match=what):
            export.symbolic_shape("a, b", constraints=(constraint,))
    for both in (("a <= 3", "a >= 5"), ("a == 2", "a >= 3"), ("a >= b + 1", "b >= a + 1")):
        with pytest.raises(ValueError, match="Unsatisfiable"):
            export.symbolic_shape("a, b", constraints=both)


def test_specifications_follow_the_arguments():
    args = ({"k": np.ones((2, 3))}, np.ones(3, np.int8))
    x, y = export.symbolic_args_specs(args, ({"k": "b, ..."}, None))
    assert str(x["k"].shape) == "(b, 3)" and x["k"].dtype == np.float32
    assert y.shape == (3,) and y.dtype == np.int8
    both = export.symbolic_args_specs((np.ones(3), np.ones(3)), "b")
    assert both[0].shape[0] is both[1].shape[0]
    with pytest.raises(ValueError, match="shapes_specs"):
        export.symbolic_args_specs(args, ({"z": "b"}, None))


def test_sizes_show_in_programs_and_types():
    spec = ferrax.ShapeDtypeStruct(export.symbolic_shape("a, b"), np.float32)
    program = str(ferrax.make_jaxpr(lambda x: ferrax.numpy.concatenate([x, x[1:]]) * x.shape[1])(spec))
    assert "f32[2*a - 1,b]" in program and "dim_as_value[dim=b]" in program
    out = ferrax.eval_shape(lambda x: x.reshape(-1), spec)
    assert str(out.shape) == "(a*b,)" and out.size == out.shape[0]
    with pytest.raises(NotImplementedError, match="symbolic sizes"):
        ferrax.numpy.ones(spec.shape)
    with pytest.raises(TypeError, match=r"shapes \(a, b\) and \(a, b\)"):
        ferrax.eval_shape(lambda x: x @ x, spec)


def test_sizes_that_may_be_too_small_are_refused():
    exported = export.export(ferrax.jit(lambda x: x * 1.0))(
        ferrax.ShapeDtypeStruct(export.symbolic_shape("a, a + b"), np.float32)
    )
    outer = ferrax.ShapeDtypeStruct(export.symbolic_shape("4, c"), np.float32)
    with pytest.raises(ValueError, match=r"Expected value >= 1 for dimension variable 'b'.*'b' = c - 4 from"):
        export.export(ferrax.jit(exported.call))(outer)
