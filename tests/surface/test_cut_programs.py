"""Programs made from programs, by JAX's functions of the insides: what they compute, and what they say of results."""

import jax
import jax._src.core as jax_core
import jax._src.interpreters.ad as jax_ad
import jax._src.interpreters.batching as jax_batching
import jax._src.interpreters.partial_eval as jax_pe
import numpy as np
import pytest

import ferrax
from ferrax._src import core
from ferrax._src.interpreters import ad, batching, partial_eval as pe

OURS, THEIRS = (ferrax, core, pe, ad, batching), (jax, jax_core, jax_pe, jax_ad, jax_batching)


def three(j):
    c = j.numpy.arange(3.0)
    return j.make_jaxpr(lambda x, y, z: (j.numpy.sin(x) + c, x * y, j.numpy.cos(z) * 2, z))(1.0, 2.0, 3.0)


def run(of, program, *args):
    return [np.asarray(v) for v in of[1].jaxpr_as_fun(program)(*args)]


def known(of, unknowns, instantiate):
    first, rest, late, types = of[2].partial_eval_jaxpr_nounits(three(of[0]), unknowns, instantiate)
    given = dict(enumerate((0.5, 2.0, 1.5)))
    found = run(of, first, *(v for i, v in given.items() if not unknowns[i]))
    count = len(found) - len(types)
    others = run(of, rest, *found[count:], *(v for i, v in given.items() if unknowns[i]))
    early, delayed = iter(found[:count]), iter(others)
    return list(late), [next(delayed) if on else next(early) for on in late]


def forward(of, nonzeros, instantiate):
    program, on = of[3].jvp_jaxpr(three(of[0]), nonzeros, instantiate)
    dots = [1.0, 10.0, 100.0]
    return list(on), run(of, program, 0.5, 2.0, 1.5, *(d for d, some in zip(dots, nonzeros, strict=True) if some))


def rows(of, batched, instantiate):
    axis = of[4].AxisData("i", 4, None, None)
    program, on = of[4].batch_jaxpr(three(of[0]), axis, batched, instantiate)
    args = [np.arange(4, dtype=np.float32) + i if b else np.float32(i) for i, b in enumerate(batched)]
    return list(on), run(of, program, *args)


def moved(of, front, _):
    move = of[2].move_binders_to_front if front[0] else of[2].move_binders_to_back
    return [], run(of, move(three(of[0]), [False, True, True]), 0.5, 2.0, 1.5)


def constants(of, _, __):
    closed = three(of[0])
    jaxpr = of[2].convert_constvars_jaxpr(closed.jaxpr)
    return [len(jaxpr.constvars), len(jaxpr.invars)], run(
        of, of[2].close_jaxpr(jaxpr), np.arange(3, dtype=np.float32), 0.5, 2.0, 1.5
    )


def backward(of, linear, _):
    program = of[0].make_jaxpr(lambda x, y: (x * 3.0 + y, y * 2.0))(1.0, 2.0)
    aval = of[0].core.ShapedArray((), np.dtype("float32"))
    primals = [of[3].UndefinedPrimal(aval) if on else np.float32(5) for on in linear]
    found = of[3].backward_pass(program.jaxpr, False, (), primals, [np.float32(1), of[3].Zero(aval)])
    return [], [np.asarray(ct) for ct, on in zip(found, linear, strict=True) if on]


CASES = [
    *[
        (known, on, it)
        for on in ([False, True, False], [True, True, True], [False, False, True])
        for it in (False, True)
    ],
    (known, [False, True, False], [True, False, True, False]),
    *[(forward, on, it) for on in ([True, False, False], [False, True, True]) for it in (False, True)],
    (forward, [True, False, False], [False, False, True, False]),
    *[(rows, on, it) for on in ([True, False, False], [False, True, True]) for it in (False, True)],
    (moved, [True], None),
    (moved, [False], None),
    (constants, None, None),
    (backward, [True, True], None),
    (backward, [False, True], None),
]


@pytest.mark.parametrize(("what", "which", "instantiate"), CASES)
def test_programs(what, which, instantiate):
    (ours, values), (theirs, wanted) = what(OURS, which, instantiate), what(THEIRS, which, instantiate)
    assert ours == theirs
    for a, b in zip(values, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_constants_in_front():
    closed = three(ferrax)
    jaxpr = pe.convert_constvars_jaxpr(closed.jaxpr)
    assert pe.convert_invars_to_constvars(jaxpr, 0) is jaxpr
    again = pe.convert_invars_to_constvars(jaxpr, 1)
    assert (len(again.constvars), len(again.invars)) == (1, 3)
    assert (len(jaxpr.constvars), len(jaxpr.invars)) == (0, 4)
