"""Programs as StableHLO prints them: what its own parser reads, and prints in the same form."""

import re

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._stablehlo_text import _float

X = jnp.ones((2, 3))


def text(f, *args, **settings):
    return jax.jit(f, **settings).lower(*args).as_text()


def inner(x):
    return lax.sort(x) * 2


PROGRAMS = {
    "numbers": (lambda x: (x * 0.1 + jnp.pi, x - jnp.inf, x + 1e-20, x * -0.0, x / 16777217.0), (X,)),
    "integers": (lambda x: (x + 1, ~x, x << 2, x // 3, x > 1), (jnp.arange(4),)),
    "shapes": (lambda x: (x.T.reshape(-1)[1:6:2], jnp.concatenate([x, x], 1), x[::-1], lax.iota("int32", 3)), (X,)),
    "windows": (lambda x, i: (jnp.pad(x, 1), lax.dynamic_slice(x, (i, 0), (1, 2)), x.at[i].set(0.0)), (X, 1)),
    "sums": (lambda x: (x.sum(), x.max(0), jnp.argmax(x), jnp.cumsum(x)), (X,)),
    "products": (lambda x, y: (x @ y, jnp.einsum("ij,ij->i", x, x)), (X, X.T)),
    "functions": (lambda x: (jnp.sin(x), jnp.exp(x), jnp.log1p(x), jnp.where(x > 0, x, 0), jnp.tanh(x)), (X,)),
    "complex": (lambda z: (z * 1j, z.real, jnp.abs(z), jnp.conj(z)), (X * (1 + 2j),)),
    "narrow": (lambda x: (x.astype("bfloat16") + 1, x.astype("float16") * 3, x.astype(bool)), (X,)),
    "loops": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x), (X,)),
    "branches": (lambda x: lax.cond(x[0, 0] > 0, lambda x: lax.sort(x), lambda x: x - 1, x), (X,)),
    "calls": (lambda x: inner(x) + inner(x + 1), (X,)),
    "trees": (lambda x: {"a": x, "b": [x, (x + 1,)]}, (X,)),
    "nothing": (lambda: (), ()),
    "longer arrays": (lambda: [jnp.array([0.1, 2.0] * n, d) for n in (9, 50, 51) for d in ("float32", "int32")], ()),
    "small arrays": (lambda x: x + np.array([[1.0, 2.5, 0.1], [0.0, np.nan, 4.0]], "float32"), (X,)),
}


def reprinted(written):
    """What StableHLO's parser makes of a text."""
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    with mlir.make_ir_context():
        return str(mlir.ir.Module.parse(written))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_parser_reads_it(name):
    f, args = PROGRAMS[name]
    written = text(f, *args)
    peer = reprinted(written)
    assert written.startswith("module @jit__lambda ")
    if "({\n" in written:  # in regions values have other names, and loops a form of their own
        operations = lambda t: sorted(re.findall(r"stablehlo\.\w+|call @", t))
        assert operations(peer) == operations(written)
    else:
        assert peer.rstrip() == written.rstrip()


def test_the_programs_of_both_libraries():
    peer = pytest.importorskip("jax")

    def f(x, y):
        return 2 * x + y

    for args, settings in [((3, 4), {}), ((3.0, 4.5), {"donate_argnums": 0}), ((7, 8), {"static_argnums": 0})]:
        assert text(f, *args, **settings).strip() == peer.jit(f, **settings).lower(*args).as_text().strip()
    g = lambda x: {"a": [x.T[1:3].sum(0)], "b": 3.14159 * x > 1}
    assert text(g, X).strip() == peer.jit(g).lower(np.ones((2, 3), "float32")).as_text().strip()


def test_exported_programs_say_names():
    exported = jax.export.export(jax.jit(lambda x: 2 * x * x))(jax.ShapeDtypeStruct((), "float32"))
    (head,) = re.findall(r".*@main.*", exported.mlir_module())
    assert head.startswith("  func.func public @main(%arg0: tensor<f32>")
    assert head.endswith(') -> (tensor<f32> {jax.result_info = "result"}) {')


@pytest.mark.parametrize("dtype, element", [("float16", "f16"), ("float32", "f32"), ("float64", "f64")])
def test_floats_have_the_digits_that_mlir_gives_them(dtype, element):
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    rng = np.random.default_rng(0)
    some = [0, -0.0, 1, 12345, 99999.99, 123456, 1e-3, 1.234e-4, 1e-20, 0.1, 1 / 3, 7e5, 16777216, 1.1e10]
    with np.errstate(over="ignore"):
        some = np.array(some).astype(dtype)
    bits = np.frombuffer(rng.bytes(300 * some.dtype.itemsize), dtype)
    with mlir.make_ir_context():
        for x in np.concatenate([some, bits, rng.normal(size=300).astype(dtype)]):
            if np.isfinite(x):
                said = f"dense<0x{x.tobytes()[::-1].hex().upper()}> : tensor<{element}>"
                assert str(mlir.ir.Attribute.parse(said)) == f"dense<{_float(x)}> : tensor<{element}>"


def test_exported_text_has_names():
    """Of the function and of its arguments, also once it is read back."""
    exported = jax.export.export(jax.jit(lambda x, more: x + more["y"]))(1.0, {"y": 2.0})
    for text in (exported.mlir_module(), jax.export.deserialize(exported.serialize()).mlir_module()):
        assert """(%arg0: tensor<f32> loc("x"), %arg1: tensor<f32> loc("more['y']")) -> """ in text
        assert 'loc("jit(<lambda>)/add")' in text
