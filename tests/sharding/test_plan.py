"""`ferrax.plan`: exchanges are those that XLA's partitioner puts into programs, and their times are those of rings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.plan import MACHINES, plan
from ferrax.plan.__main__ import main
from ferrax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
from tests.recorded import expected
from tests.sharding import planned

MESH = AbstractMesh(planned.SIZES, planned.NAMES)
STEPS = planned.steps(jax, MESH)
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "scaling.py")


def array(shape, *spec, dtype="float32", mesh=MESH):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def sent(found):
    """Bytes of the exchanges by kind."""
    total = {}
    for e in found.exchanges:
        total[e.kind] = total.get(e.kind, 0) + e.bytes * e.times
    return total


def by_xla(_jax):
    out = subprocess.run([sys.executable, planned.__file__], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


@pytest.mark.parametrize("name", STEPS)
def test_exchanges_are_those_of_xla(name):
    """XLA's CPU sums whole gradients and cuts them afterwards, and a text has a loop's body once."""
    theirs = {kind.replace("-", "_"): size for kind, size in expected(by_xla)[name].items()}
    step, *args = STEPS[name]
    found = plan(step, *args, mesh=MESH)
    ours = sent(found)
    ours["all_reduce"] = ours.get("all_reduce", 0) + ours.pop("reduce_scatter", 0)
    if name == "scanned":
        assert all(e.times in (1, 6) for e in found.exchanges)
        ours["all_reduce"] = sum(e.bytes if e.times == 6 else e.bytes / 6 for e in found.exchanges)
    assert ours == theirs
    assert not found.undivided
    assert not found.open_loops


def test_parameters_in_parts_are_gathered_and_their_gradients_scattered():
    step, _, x = STEPS["data"]
    w = [(array((512, 2048), "x"), array((2048, 512), "x"))]
    assert sent(plan(step, w, x, mesh=MESH)) == {"all_gather": 2 * 2**22, "reduce_scatter": 2 * 2**22}


def test_figures_of_a_product():
    """1,024 x 512 by 512 x 256 over 2 x 4 devices: each has an eighth of the work, and nothing is sent."""
    found = plan(jnp.dot, array((1024, 512), "x"), array((512, 256), None, "y"), mesh=MESH)
    assert found.exchanges == []
    assert found.flops == 2 * 1024 * 512 * 256 / 8
    assert found.arguments == 4 * (1024 * 512 / 2 + 512 * 256 / 4)
    assert found.memory == found.arguments + 4 * 1024 * 256 / 8
    assert found.compute_seconds == max(found.flops / 4.94e14, found.traffic / 3.35e12)


def test_donated_arguments_make_room():
    x = array((1024, 512), "x")
    kept, given = (plan(lambda x: jnp.sort(x) + 1, x, mesh=MESH, donate_argnums=d) for d in ((), (0,)))
    assert kept.memory == 3 * kept.arguments
    assert given.memory == 2 * given.arguments


@pytest.mark.parametrize(
    ("f", "spec", "kinds"),
    [
        (lambda x: jax.lax.psum(x, ("x", "y")), P("x", "y"), {"all_reduce"}),
        (lambda x: jax.lax.ppermute(x, "x", [(0, 1), (1, 0)]), P("x"), {"permute"}),
        (lambda x: x * jax.lax.axis_index("y"), P("x", "y"), set()),
    ],
)
def test_mapped_functions(f, spec, kinds):
    out = P() if "all_reduce" in kinds else spec
    mapped = jax.shard_map(f, mesh=MESH, in_specs=spec, out_specs=out, check_vma=False)
    assert set(sent(plan(mapped, array((64, 64), *spec), mesh=MESH))) == kinds


def test_constraints_move_axes():
    """An axis of the mesh that goes to another axis of the array is an exchange of all with all."""
    f = lambda x: jax.lax.with_sharding_constraint(x, P(None, "x"))
    (found,) = plan(f, array((64, 64), "x"), mesh=MESH).exchanges
    assert (found.kind, found.names, found.bytes) == ("all_to_all", ("x",), 64 * 64 * 4 / 2)


def test_what_has_no_rule_is_said():
    found = plan(lambda x: jnp.linalg.eig(x)[0], array((8, 8), "x"), mesh=MESH)
    assert found.undivided == {"eig": 1}
    assert "not divided, for want of a rule: eig" in str(found)
    assert sent(found) == {"all_gather": 8 * 8 * 4}


def test_loops_count_as_often_as_they_turn():
    w = array((512, 512), "y")

    def f(n):
        return lambda x: jax.lax.fori_loop(0, n, lambda i, h: jnp.tanh(h @ w0(x)), x)

    def w0(x):
        return jnp.ones((512, 512))

    three, six = (plan(f(n), array((64, 512), "x"), mesh=MESH) for n in (3, 6))
    assert six.flops > 1.9 * three.flops
    unknown = plan(lambda x: jax.lax.while_loop(lambda h: h.sum() < 3, lambda h: h + 1, x), w, mesh=MESH)
    assert unknown.open_loops == 1


def test_times_of_rings():
    machine = MACHINES["h100"]
    inside = machine.exchange_seconds("all_reduce", [(8, 1)], 1e9)
    assert inside == pytest.approx(2 * 1e9 * 7 / 8 / 450e9 + 2 * 3 * 2e-6)
    # nodes of eight put their parts together first, and an eighth goes between nodes
    across = machine.exchange_seconds("all_reduce", [(64, 1)], 1e9)
    assert across == pytest.approx(inside + 2 * 1e9 / 8 * 7 / 8 / 50e9 + 2 * 3 * 5e-6)
    assert machine.spans([(8, 8)]) == [1, 8]
    assert machine.spans([(16, 4)]) == [2, 8]
    assert machine.exchange_seconds("all_gather", [(4, 1)], 0.0) == pytest.approx(2 * 2e-6)


def test_the_command(capsys):
    assert main([EXAMPLE, "--mesh", "8x8"]) == 0
    text = capsys.readouterr().out
    assert "64 devices of h100 (data 8 x model 8)" in text
    assert "all_reduce" in text
    assert main([EXAMPLE, "--function", "pipeline", "--axes", "data,pipe", "--mesh", "2x4", "--mesh", "4x4"]) == 0
    text = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in text[1:]] == [["2x4", "8"], ["4x4", "16"]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--mesh", "8xeight"], "--mesh takes numbers"),
        (["--mesh", "8x8", "--axes", "data"], "has 2 axes"),
        (["--mesh", "8x8", "--function", "nothing"], r"no function nothing\(mesh\)"),
    ],
)
def test_mistakes_of_the_command(arguments, error):
    with pytest.raises(SystemExit, match=error):
        main([EXAMPLE, *arguments])


def test_mistakes_of_arguments():
    with pytest.raises(KeyError, match="no machine 'abacus'; there are h100, tpu_v5e"):
        plan(jnp.sin, array((8,)), mesh=MESH, machine="abacus")
    with pytest.raises(TypeError, match="needs arrays or ShapeDtypeStructs"):
        plan(lambda x: x, "text", mesh=MESH)
