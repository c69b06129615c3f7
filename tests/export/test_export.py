"""Exported functions: what they compute, their derivatives, their files, and files that somebody has tampered with."""

import collections
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import export, lax
from ferrax.export import _shardings
from ferrax.export._format import pack, unpack

X = np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(2, 3)
TABLE = np.arange(5000, dtype=np.float32)


@ferrax.custom_jvp
def steep(x):
    return jnp.sin(x)


steep.defjvp(lambda primals, tangents: (steep(primals[0]), 10 * tangents[0]))


@ferrax.custom_vjp
def tenth(x):
    return jnp.sin(x)


tenth.defvjp(lambda x: (tenth(x), x), lambda x, ct: (ct / 10,))


def loops(x):
    y, ys = lax.scan(lambda c, row: (c * 0.5 + row.sum(), c), 0.0, x)
    z = lax.while_loop(lambda v: v < 10, lambda v: 2 * v, y)
    return lax.cond(z > 12, jnp.sin, jnp.cos, z), ys, lax.fori_loop(0, 3, lambda i, v: v + i, 0)


PROGRAMS = {
    "elementwise": (lambda x: jnp.exp(x) / (1 + x**2), X),
    "tree": (lambda t: {"sum": t["a"] + t["b"][0], "none": None, "3": [t["b"][1]]}, {"a": X, "b": (X, np.int8(3))}),
    "loops": (loops, X),
    "constants": (lambda x: x + TABLE[:3] + TABLE.sum() + jnp.asarray(TABLE)[x.astype(int)], X),
    "linear algebra": (lambda x: jnp.linalg.svd(x, compute_uv=False) @ jnp.linalg.inv(x @ x.T + jnp.eye(2)), X),
    "sorting": (lambda x: (jnp.sort(x, axis=None), jnp.argsort(x[0])), X),
    "random": (lambda seed: ferrax.random.normal(ferrax.random.key(seed), (3,)), np.uint32(7)),
    "keys": (lambda key: ferrax.random.bits(key, (2,)), ferrax.random.key(3)),
    "scatter": (lambda x: x.at[jnp.array([0, 1]), 1].add(2.0, mode="drop"), X),
    "rules": (lambda x: steep(x) + tenth(x) + ferrax.checkpoint(jnp.cos)(x), X),
    "jit": (lambda x: ferrax.jit(lambda y: y * 2)(x) + ferrax.nn.relu(x), X),
    "convolution": (lambda x: lax.conv(x[None, None], x[None, None, :1, :2], (1, 1), "SAME"), X),
    "fft": (lambda x: jnp.fft.rfft(x), X),
    "complex": (lambda x: jnp.exp(1j * x), X.astype(np.complex64)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16), X.astype(ml_dtypes.bfloat16)),
    "weak": (lambda x: x * 2, 3.0),
    "empty": (lambda x: x[:0].sum(), X),
    "no arguments": (lambda: jnp.arange(3), ()),
}


def same(got, wanted):
    assert ferrax.tree.structure(got) == ferrax.tree.structure(wanted)
    for g, w in zip(ferrax.tree.leaves(got), ferrax.tree.leaves(wanted), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape and g.weak_type == w.weak_type
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def again(exported, **options):
    return export.deserialize(exported.serialize(**options))


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name):
    fun, x = PROGRAMS[name]
    args = () if name == "no arguments" else (x,)
    jitted = ferrax.jit(fun)
    exported = export.export(jitted)(*args)
    wanted = jitted(*args)
    for e in (exported, again(exported), again(again(exported))):
        same(e.call(*args), wanted)
        same(ferrax.jit(e.call)(*args), wanted)
        assert e.in_avals == exported.in_avals and e.out_avals == exported.out_avals
        assert e.in_tree == exported.in_tree and e.fun_name == exported.fun_name and e.platforms == ("cpu",)
    assert bytes(exported.serialize()) == bytes(again(exported).serialize())


def test_types_instead_of_arrays():
    f = ferrax.jit(lambda x, *, scale: x * scale)
    exported = export.export(f)(ferrax.ShapeDtypeStruct((3,), "float32"), scale=ferrax.ShapeDtypeStruct((), "float32"))
    assert exported.call(np.ones(3, np.float32), scale=np.float32(2)).tolist() == [2, 2, 2]
    static = export.export(ferrax.jit(lambda x, n: x * n, static_argnums=1))(1.0, 3)
    assert static.call(2.0) == 6


def test_derivatives():
    f = ferrax.jit(lambda x, n: jnp.sum(steep(x) * tenth(x)) * n)
    exported = export.export(f)(X, 3)
    wanted = ferrax.grad(f)(X, 3)
    for e in (exported, again(exported, vjp_order=2)):
        np.testing.assert_allclose(ferrax.grad(e.call)(X, 3), wanted, rtol=1e-6)
        np.testing.assert_allclose(ferrax.jit(ferrax.grad(e.call))(X, 3), wanted, rtol=1e-6)
        second = lambda call: ferrax.grad(lambda x: ferrax.grad(call)(x, 3).sum())(X)
        np.testing.assert_allclose(second(e.call), second(f), rtol=1e-5)
    types = lambda avals: [(a.shape, a.dtype) for a in avals]
    assert types(exported.vjp().in_avals) == types((*exported.in_avals, *exported.out_avals))
    without = again(exported)
    assert exported.has_vjp() and not without.has_vjp() and again(exported, vjp_order=1).has_vjp()
    for use in (without.vjp, lambda: ferrax.grad(without.call)(X, 3), lambda: again(without, vjp_order=1)):
        with pytest.raises(ValueError, match="No VJP is available"):
            use()
    with pytest.raises(ValueError, match="vjp_order"):
        exported.serialize(vjp_order=-1)


def test_integers_beside_derivatives():
    exported = export.export(ferrax.jit(lambda i, x: (i + 1, x[i] ** 2)))(1, np.arange(3.0, dtype=np.float32))
    e = again(exported, vjp_order=1)
    slope = ferrax.grad(lambda x: e.call(1, x)[1])(np.arange(3.0, dtype=np.float32))
    assert slope.tolist() == [0, 2, 0]


def test_vmap():
    exported = export.export(ferrax.jit(lambda x, y: x @ y))(X[0], X[1])
    np.testing.assert_allclose(ferrax.vmap(exported.call, (0, None))(X, X[1]), X @ X[1], rtol=1e-6)


def test_wrong_calls():
    exported = export.export(ferrax.jit(lambda x, t: x + t["k"], static_argnums=()))(X, {"k": X})
    for args, text in [
        ((X,), "args is a tuple of length 2 in the exported function but a tuple of length 1"),
        ((X, {"j": X}), "args[1]"),
        (
            (X[:1], {"k": X}),
            "Shape mismatch for args[0].shape[0] (expected same constant): expected (2, 3) and called",
        ),
        ((X, {"k": X[0]}), "Rank mismatch for args[1]['k']"),
        ((X.astype(int), {"k": X}), "Dtype mismatch for args[0]: expected float32 and called with int32"),
    ]:
        with pytest.raises(ValueError) as caught:
            exported.call(*args)
        assert text in str(caught.value), str(caught.value)


def test_what_is_not_exported():
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)
    for f in (lambda x: ferrax.debug.print("{}", x), lambda x: ferrax.pure_callback(np.sin, x, x)):
        with pytest.raises(NotImplementedError, match="host_callbacks"):
            export.export(ferrax.jit(f))(1.0)
    with pytest.raises(ValueError, match="closes over traced values"):
        ferrax.grad(lambda x: export.export(ferrax.jit(lambda y: x * y))(1.0).call(x))(2.0)


def test_programs_as_stablehlo():
    exported = export.export(ferrax.jit(lambda x: 2 * jnp.sin(x)))(X)
    for text in (exported.mlir_module(), again(exported).mlir_module()):
        assert "func.func public @main(" in text and "stablehlo.sine" in text and "tensor<2x3xf32>" in text


def test_functions_of_the_library_are_exported_without_jit():
    assert again(export.export(jnp.cos)(1.0)).call(0.0) == 1.0


def test_platforms():
    f = ferrax.jit(jnp.sin)
    elsewhere = export.export(f, platforms=["tpu"])(1.0)
    with pytest.raises(ValueError, match="exported for platforms"):
        again(elsewhere).call(1.0)
    anywhere = export.export(f, platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()])(1.0)
    assert again(anywhere).call(1.0) == jnp.sin(1.0)
    assert export.export(f, platforms=("cpu", "cuda"))(1.0).platforms == ("cpu", "cuda")
    assert export.DisabledSafetyCheck.custom_call("f").is_custom_call() == "f"
    assert repr(export.DisabledSafetyCheck.custom_call("f")) == "custom_call:f"
    assert export.DisabledSafetyCheck.platform().is_custom_call() is None


Point = collections.namedtuple("Point", "x y")


class Box:
    def __init__(self, value, label):
        self.value, self.label = value, label


ferrax.tree_util.register_pytree_node(Box, lambda b: ((b.value,), b.label), lambda label, c: Box(*c, label))


def test_classes_in_structures():
    f = ferrax.jit(lambda p, b: (Point(p.y, p.x), Box(b.value + 1, b.label)))
    exported = export.export(f)(Point(1.0, 2.0), Box(3.0, "b"))
    with pytest.raises(ValueError, match="register_namedtuple_serialization"):
        exported.serialize()
    export.register_namedtuple_serialization(Point, serialized_name="test.Point")
    with pytest.raises(ValueError, match="register_pytree_node_serialization"):
        exported.serialize()
    export.register_pytree_node_serialization(
        Box, serialized_name="test.Box", serialize_auxdata=str.encode, deserialize_auxdata=lambda b: bytes(b).decode()
    )
    p, b = again(exported).call(Point(1.0, 2.0), Box(3.0, "b"))
    assert (p.x, p.y, b.value, b.label) == (2, 1, 4, "b")
    for again_ in (
        lambda: export.register_namedtuple_serialization(Point, serialized_name="test.other"),
        lambda: export.register_namedtuple_serialization(
            collections.namedtuple("Q", "a"), serialized_name="test.Point"
        ),
    ):
        with pytest.raises(ValueError, match="Duplicate serialization"):
            again_()
    with pytest.raises(ValueError, match="other than named tuples"):
        export.register_namedtuple_serialization(Box, serialized_name="test.third")


def test_another_process(tmp_path):
    file = tmp_path / "f.ferrax"
    file.write_bytes(export.export(ferrax.jit(loops))(X).serialize())
    code = (
        "import sys, numpy as np\nfrom ferrax import export\n"
        "e = export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "x = np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(2, 3)\n"
        "print(float(e.call(x)[0]).hex())\n"
    )
    out = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=True).stdout
    assert out.strip() == float(ferrax.jit(loops)(X)[0]).hex()


def files():
    exported = export.export(ferrax.jit(lambda t: loops(t["x"]) + (t["x"] @ TABLE[:3000].reshape(3, 1000),)))({"x": X})
    return bytes(exported.serialize()), bytes(exported.serialize(vjp_order=1))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files(seed):
    """Whatever happens to the bytes, an error says so."""
    rng = np.random.default_rng(seed)
    for blob in files():
        for _ in range(60):
            bad = bytearray(blob)
            kind = rng.integers(3)
            if kind == 0:
                bad = bad[: rng.integers(len(bad))]
            elif kind == 1:
                for at in rng.integers(len(bad), size=rng.integers(1, 5)):
                    bad[at] ^= 1 << rng.integers(8)
            else:
                bad += b"more"
            if bytes(bad) != blob:
                with pytest.raises(ValueError):
                    export.deserialize(bad)
    for other in (b"", b"x" * 1000, bytes(rng.integers(256, size=500, dtype=np.uint8))):
        with pytest.raises(ValueError):
            export.deserialize(other)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_files(seed):
    """A file whose digest is right may say anything: it gives an error, or a program that is sound."""
    rng = np.random.default_rng(seed)
    header, parts = unpack(files()[0])
    inner, consts = unpack(parts[0].tobytes())
    text = inner["program"]
    values = [None, -1, 2**70, "x", [], {}, [["*"]], "*", [[2], "float32", 0], ["dict", ["a"], "*", "*"], 1.5, True]
    for _ in range(60):
        fields, program, arrays = dict(header["function"]), text, list(consts)
        kind = rng.integers(4)
        if kind == 0:
            fields[str(rng.choice(list(fields)))] = values[rng.integers(len(values))]
        elif kind == 1:
            at = int(rng.integers(len(program)))
            program = program[:at] + chr(rng.integers(32, 127)) + program[at + int(rng.integers(3)) :]
        elif kind == 2:
            lines = program.split("\n")
            del lines[rng.integers(len(lines))]
            program = "\n".join(lines)
        else:
            arrays = arrays[:-1] if rng.integers(2) else [a[:-1] for a in arrays]
        packed = np.frombuffer(pack({"program": program}, arrays), np.uint8)
        try:
            e = export.deserialize(pack({"function": fields}, [packed]))
            e.call({"x": X})
        except (ValueError, TypeError, NotImplementedError, IndexError, ZeroDivisionError) as error:
            assert not isinstance(error, ferrax.errors.InternalError)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{program}") from error


def test_files_that_say_too_much():
    header, parts = unpack(files()[0])
    for fields in (
        {"function": header["function"]},
        {"function": {k: v for k, v in header["function"].items() if k != "in_tree"}},
        {},
    ):
        for p in ([], parts * 3, [parts[0].astype(np.int32)]):
            with pytest.raises(ValueError):
                export.deserialize(pack(fields, p))
    deep = "*"
    for _ in range(400):
        deep = ["tuple", deep]
    with pytest.raises(ValueError):
        export.deserialize(pack({"function": {**header["function"], "in_tree": deep}}, parts))


@pytest.mark.parametrize(
    "mesh", [lambda: ferrax.sharding.AbstractMesh((1,), ("a",)), lambda: ferrax.make_mesh((1,), ("a",))]
)
def test_shardings_are_kept(mesh):
    spec = ferrax.P("a", None)
    given = ferrax.ShapeDtypeStruct((2, 3), np.float32, sharding=ferrax.NamedSharding(mesh(), spec))
    exported = export.export(ferrax.jit(lambda x, y: (x.T, y)))(given, X)
    for e in (exported, again(exported)):
        here = ferrax.make_mesh((1,), ("a",), axis_types=given.sharding.mesh.axis_types)
        assert e.in_shardings_jax(here) == (ferrax.NamedSharding(here, spec), None)
        assert e.nr_devices == 1 and e.out_shardings_jax(here) == (None, None)
        np.testing.assert_array_equal(e.call(X, X)[0], X.T)


DEVICES = """
import numpy as np, ferrax as jax, ferrax.numpy as jnp
from ferrax import export
from ferrax.experimental.pjit import pjit
devices = jax.devices()
mesh = jax.make_mesh((4,), ("a",))
sharding = jax.NamedSharding(jax.sharding.AbstractMesh((4,), ("a",)), jax.P("a"))
given = jax.ShapeDtypeStruct((8, 2), np.float32, sharding=sharding)
exported = export.export(jax.jit(lambda x: 2 * x))(given)
exported = export.deserialize(exported.serialize(vjp_order=1))
assert exported.nr_devices == exported.vjp().nr_devices == 4
with mesh:
    spread = export.export(pjit(jnp.sin))(given.update(sharding=None))
assert export.deserialize(spread.serialize(vjp_order=1)).vjp().nr_devices == spread.nr_devices == 4
x = np.arange(16, dtype=np.float32).reshape(8, 2)
other = jax.sharding.Mesh(np.array(devices[4:]).reshape(2, 2), ("b", "c"))
out = exported.call(jax.device_put(x, jax.NamedSharding(other, jax.P("b"))))
assert [s.index[0] for s in out.addressable_shards] == [slice(2 * k, 2 * k + 2, None) for k in range(4)]
assert out.sharding._device_assignment == tuple(devices[4:])
np.testing.assert_array_equal(out, 2 * x)
assert (jax.jit(exported.call)(jax.device_put(x, jax.NamedSharding(mesh, jax.P()))) == 2 * x).all()
try:
    exported.call(jnp.asarray(x))
except ValueError as error:
    assert "was exported for 4 devices and is called in a context with 1 devices" in str(error), error
else:
    raise AssertionError("called on one device")
"""


ASKED = """
import numpy as np, ferrax as jax
from ferrax import export
devices = jax.devices()
mesh = jax.sharding.Mesh(devices, ("a",))
cut, whole = jax.NamedSharding(mesh, jax.P("a")), jax.NamedSharding(mesh, jax.P())
x = np.arange(8)
both = {"in_shardings": (cut,), "out_shardings": whole}
for asked, places in (
    ({"in_shardings": cut}, (cut, None)), (both, (cut, whole)), ({"out_shardings": cut}, (None, cut))
):
    for given in (x, jax.ShapeDtypeStruct((8,), x.dtype)):
        made = export.export(jax.jit(lambda x: x + x, **asked))(given)
        for e in (made, export.deserialize(made.serialize())):
            assert (e.nr_devices, *e.in_shardings_jax(mesh), *e.out_shardings_jax(mesh)) == (8, *places)
            back = jax.sharding.Mesh(devices[::-1], ("a",))
            out = e.call(jax.device_put(x, jax.NamedSharding(back, jax.P("a"))))
            assert out.sharding == jax.NamedSharding(back, (places[1] or cut).spec), out.sharding
            assert (out == 2 * x).all()
inner = export.export(jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, cut) + 1))(x)
assert (inner.call(x) == 2 * x + 1).all() and inner.nr_devices == 1
"""


def test_shardings_that_jit_asks_for():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    subprocess.run([sys.executable, "-c", ASKED], check=True, env={**os.environ, **flags})


def test_calls_on_other_devices():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    subprocess.run([sys.executable, "-c", DEVICES], check=True, env={**os.environ, **flags})


def test_damaged_shardings():
    for data in ([[0], ["a"], ["Auto"], ["a"]], [[2], ["a"], ["Auto"], ["b"]], [[2], ["a"], ["Else"], []], [[2]]):
        with pytest.raises((ValueError, KeyError, TypeError)):
            _shardings.read_sharding(data)
