"""Memories that `jit` is told to put arguments and results in, over axes of each type, beside JAX's."""

import pytest

import ferrax

CALLS = {
    "a result": lambda jax, at, host, x, moved: jax.jit(lambda x: x * 2, out_shardings=host)(x),
    "an argument as it is": lambda jax, at, host, x, moved: jax.jit(lambda x: x, out_shardings=host)(x),
    "one of two": lambda jax, at, host, x, moved: jax.jit(lambda x: (x * 2, x), out_shardings=(host, at))(x)[0],
    "there and back": lambda jax, at, host, x, moved: jax.jit(lambda x: jax.device_put(x, at) * 2, out_shardings=host)(
        moved
    ),
    "back": lambda jax, at, host, x, moved: jax.jit(lambda x: jax.device_put(x, at))(moved),
    "compiled": lambda jax, at, host, x, moved: jax.jit(lambda x: x + 1, out_shardings=host).lower(x).compile()(x),
    "an argument elsewhere": lambda jax, at, host, x, moved: jax.jit(lambda x: x, in_shardings=host)(x),
    "an argument there": lambda jax, at, host, x, moved: jax.jit(lambda x: x, in_shardings=host)(moved),
}


def _outcome(jax, call, kind):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(getattr(jax.sharding.AxisType, kind),))
    at = jax.NamedSharding(mesh, jax.P("x"))
    host = at.with_memory_kind("pinned_host")
    x = jax.numpy.arange(4.0)
    try:
        result = call(jax, at, host, jax.device_put(x, at), jax.device_put(x, host))
    except ValueError as error:
        return str(error)
    return result.sharding.memory_kind, result.tolist()


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", CALLS)
def test_the_memory_of_what_jit_takes_and_gives(name, kind):
    peer = pytest.importorskip("jax")
    ours, theirs = (_outcome(jax, CALLS[name], kind) for jax in (ferrax, peer))
    if isinstance(theirs, str):
        assert "Got jit memory kind: pinned_host, arg memory kind: device" in ours
        assert ours.partition(" for arg type")[0] == theirs.partition(" for arg type")[0]
    else:
        assert ours == theirs


def test_kinds_that_no_device_has():
    """Without devices there is none to name."""
    spec = ferrax.P()
    for mesh, text in (
        (ferrax.sharding.AbstractMesh((2,), ("x",)), "Got invalid memory kind: weird. Valid memory kinds are: device"),
        (ferrax.make_mesh((1,), ("x",)), "Could not find memory addressable by device cpu"),
    ):
        with pytest.raises(ValueError, match=text):
            ferrax.NamedSharding(mesh, spec, memory_kind="weird")
        with pytest.raises(ValueError, match=text):
            ferrax.NamedSharding(mesh, spec).with_memory_kind("weird")
