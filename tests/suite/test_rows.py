"""Every primitive under every transformation: eager = jit = vmap of a loop = finite differences = JAX.

For each row and dtype shapes, static parameters and operands are drawn from a seed. Within ferrax the results of `jit`,
of operands that come transposed or reversed, and of the rows of a `vmap` are equal bit for bit (floats on XLA: nearly);
against JAX, whose results are recorded, they are within the tolerance that the row states.
"""

import re

import numpy as np
import pytest

import ferrax
from tests import draws, primitives
from tests.recorded import expected
from tests.suite import rows_of_matrices  # noqa: F401
from tests.suite.programs_of_rows import COLLECTIVES, ONLY_RUST, PLAIN, PROGRAMS
from tests.suite.rows import ROWS, RTOL
from tests.support import assert_forms_same, assert_trees_same

#: How often each row is drawn.
EXAMPLES = 8


def test_every_primitive_has_a_row():
    names = primitives.names()
    assert sorted(names) == sorted([*ROWS, *PROGRAMS, *ONLY_RUST])


def to(module, args):
    return [module.numpy.asarray(a) for a in args]


def binds(f, args, name):
    """Whether the program that JAX prints has the primitive; `stop_gradient` is none there, and leaves none."""
    return name == "stop_gradient" or re.search(rf"[ =]{name}\b", str(ferrax.make_jaxpr(f)(*args))) is not None


def turned(x):
    """Another layout of the same numbers, and the function that brings them back."""
    if x.ndim > 1:
        return np.ascontiguousarray(x.T), lambda v: v.T
    return np.ascontiguousarray(x[::-1]) if x.ndim else x, (lambda v: v[::-1]) if x.ndim else (lambda v: v)


def check_jit(f, args, eager):
    assert_forms_same(ferrax.jit(f)(*args), eager)
    other = [turned(as_is) for as_is in map(np.asarray, args)]
    moved = [ferrax.numpy.asarray(x) for x, _ in other]
    assert_forms_same(ferrax.jit(lambda *xs: f(*(back(x) for x, (_, back) in zip(xs, other))))(*moved), eager)


def check_vmap(f, args, axis, mapped):
    """Three rows, each with operands of its own, against a loop."""
    axes = [min(axis, a.ndim) if m else None for a, m in zip(args, mapped)]
    rows = [[np.roll(np.asarray(a).reshape(-1), i).reshape(a.shape) for i in range(3)] for a in args]
    stacked = [ferrax.numpy.asarray(np.stack(r, d) if d is not None else r[0]) for r, d in zip(rows, axes)]
    loop = [f(*(ferrax.numpy.asarray(r[i] if d is not None else r[0]) for r, d in zip(rows, axes))) for i in range(3)]
    got = ferrax.vmap(f, in_axes=tuple(axes))(*stacked)
    assert_forms_same(got, ferrax.tree.map(lambda *xs: ferrax.numpy.stack(xs), *loop))


def weighed(module, f):
    """A number that depends on all results, each with a weight of its own; complex ones count by real part."""

    def total(*args):
        out = 0.0
        for x in module.tree.leaves(f(*args)):
            if not module.numpy.issubdtype(x.dtype, np.inexact):
                continue
            w = np.linspace(0.5, 1.5, x.size).reshape(x.shape).astype("float32")
            x = module.numpy.real(x * (1 - 0.5j)) if module.numpy.iscomplexobj(x) else x
            out = out + (x.astype("float32") * w).sum()
        return out

    return total


def differentiable(args):
    return tuple(i for i, a in enumerate(args) if str(a.dtype).startswith(("float", "bfloat", "complex")))


def of_some(module, f, args):
    """The weighed function of those operands that have derivatives, and these."""
    args = to(module, args)
    at = differentiable(args)

    def over(*some):
        full = list(args)
        for i, x in zip(at, some):
            full[i] = x
        return weighed(module, f)(*full)

    return over, tuple(args[i] for i in at)


def gradients(module, f, args):
    over, some = of_some(module, f, args)
    out, pull = module.vjp(over, *some)
    return pull(module.numpy.ones_like(out))


def run(module, program, args):
    return program(module, *to(module, args))


def jitted_gradients(module, program, args):
    return module.jit(lambda *xs: gradients(module, lambda *ys: program(module, *ys), xs))(*args)


def check_slopes(f, program, args, rtol, forward=True):
    """Gradients against JAX's; forward mode and reverse mode agree."""
    got = gradients(ferrax, f, args)
    assert_trees_same(got, expected(jitted_gradients, program, args), rtol=rtol, atol=rtol, weak=False)
    assert_forms_same(ferrax.jit(lambda *xs: gradients(ferrax, f, xs))(*to(ferrax, args)), got)
    if not forward:
        return
    over, some = of_some(ferrax, f, args)
    _, slope = ferrax.jvp(over, some, tuple(ferrax.numpy.ones_like(x) for x in some))
    total = sum(float(x.astype("complex64").sum().real) for x in got)
    np.testing.assert_allclose(float(slope), total, rtol=10 * rtol, atol=20 * rtol)


def check_differences(f, args):
    """The slope along a direction against a difference of values, in float64."""
    rng = np.random.default_rng(1)
    with ferrax.enable_x64(True):
        widened = [a.astype("float64") if a.dtype == np.float32 else a for a in map(np.asarray, args)]
        wide = to(ferrax, widened)
        steps = [rng.uniform(-1, 1, a.shape) if a.dtype == np.float64 else None for a in wide]
        at = [i for i, s in enumerate(steps) if s is not None]

        def along(t):
            moved = [a if s is None else a + t * s for a, s in zip(wide, steps)]
            leaves = [x for x in ferrax.tree.leaves(f(*moved)) if x.dtype == np.float64]
            return sum((x * np.linspace(0.5, 1.5, x.size).reshape(x.shape)).sum() for x in leaves)

        if not at:
            return
        h = 1e-6
        difference = (float(along(h)) - float(along(-h))) / (2 * h)
        for slope in (ferrax.jvp(along, (0.0,), (1.0,))[1], ferrax.grad(along)(0.0)):
            np.testing.assert_allclose(float(slope), difference, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    row = ROWS[name]
    for example in range(EXAMPLES):
        draw = draws.drawing(f"{name} {row.seed + example}")
        dtype = row.dtypes[example % len(row.dtypes)]
        program, args = row.case(draw, dtype)
        f = lambda *xs: program(ferrax, *xs)
        rtol = row.rtol or RTOL.get(dtype, 0.0)
        mine = to(ferrax, args)
        assert binds(f, mine, name), "the program does not bind the primitive"
        eager = f(*mine)
        assert_trees_same(eager, expected(run, program, args), rtol=rtol, atol=rtol, weak=False)
        check_jit(f, mine, eager)
        if row.batched and args:
            mapped = draw(draws.filtered(draws.tuples(*[draws.booleans()] * len(args)), any))
            check_vmap(f, mine, draw(draws.integers(0, 1)), mapped)
        if row.slopes and dtype in ("float32", "complex64") and differentiable(args):
            check_slopes(f, program, args, 20 * rtol)
            if dtype == "float32":
                check_differences(f, args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program, args = PROGRAMS[name]
    f = lambda *xs: program(ferrax, *xs)
    mine = to(ferrax, args)
    assert name in COLLECTIVES or binds(f, mine, name), "the program does not bind the primitive"
    eager = f(*mine)
    assert_trees_same(eager, expected(run, program, args), rtol=2e-6, atol=1e-6, weak=False)
    check_jit(f, mine, eager) if name not in PLAIN else assert_forms_same(ferrax.jit(f)(*mine), eager)
    if name in PLAIN:
        return
    check_vmap(f, mine, 0, [True] * len(args))
    if name in ("pmax", "pmin"):
        # They have no derivatives, in JAX either.
        return
    if name in ("while", "custom_vmap_call"):
        # JAX has no reverse mode for them; ferrax has, and differences are what it is held against.
        check_differences(f, args)
        return
    if not name.startswith("custom_"):
        # The rules of those differ from their functions on purpose.
        check_differences(f, args)
    check_slopes(f, program, args, 2e-5, forward=name != "custom_vjp_call")
