"""Programs with symbolic sizes: for every size what the function computes, with derivatives, from a file, nested."""

import json

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import export, lax, nn
from ferrax._src.export.shape_poly import UnexpectedDimVar
from ferrax.errors import InconclusiveDimensionOperation
from ferrax.export._format import pack, unpack

SIZES = [(3, 4), (5, 6), (2, 9)]


def arguments(p, q):
    rng = np.random.default_rng(100 * p + q)
    return {
        "x": rng.uniform(0.1, 1, (p, q)).astype(np.float32),
        "v": rng.uniform(0.1, 1, q).astype(np.float32),
        "i": rng.integers(0, q, p).astype(np.int32),
        "t": rng.uniform(0.1, 1, (2, p, q)).astype(np.float32),
        "m": (rng.uniform(0.1, 1, (q, q)) + q * np.eye(q)).astype(np.float32),
    }


def types(p="p", q="q", **more):
    p, q = export.symbolic_shape(f"{p}, {q}", **more)
    shapes = {"x": (p, q), "v": (q,), "i": (p,), "t": (2, p, q), "m": (q, q)}
    return {k: ferrax.ShapeDtypeStruct(shapes[k], a.dtype) for k, a in arguments(3, 4).items()}


def scanned(x, v, **_):
    carry, rows = lax.scan(lambda c, row: (c + row.sum(), row * c), jnp.float32(0), x)
    return lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i].max(), carry), rows


PROGRAMS = {
    "repeats": lambda x, **_: (
        jnp.repeat(x, x.shape[0], axis=1),
        jnp.repeat(x[:, 0], x.shape[1] + 1),
        x.repeat(x.shape[1], axis=0),
        jnp.repeat(np.float32(5), x.shape[0]),
    ),
    "traces": lambda x, t, m, **_: (
        jnp.trace(jnp.round(8 * x)),
        jnp.trace(jnp.round(8 * t), 1, 2, 1),
        jnp.linalg.trace(jnp.round(8 * m), offset=-1),
    ),
    "padding by edges": lambda x, **_: [jnp.pad(x, 2, mode=m) for m in ("edge", "reflect", "symmetric", "wrap")],
    "one place left out": lambda x, **_: (jnp.delete(x, 0, axis=1), jnp.delete(x[:, 0], -1)),
    "classes": lambda x, i, **_: nn.one_hot(i, x.shape[1]),
    "nearest pixels": lambda x, **_: ferrax.image.resize(x, (2 * x.shape[0], 3), "nearest"),
    "elementwise": lambda x, v, **_: jnp.sin(x) * v + jnp.where(x > 0.5, x, 0),
    "reductions": lambda x, t, **_: (x.sum(0), t.mean((1, 2)), x.max(), jnp.argmax(x, 1), jnp.var(x, axis=0), x.prod()),
    "sizes as numbers": lambda x, **_: (x.shape[0] / 2, x * x.shape[1], x.size, jnp.array(x.shape[0] // 2 + 1)),
    "reshape": lambda t, **_: (t.reshape(-1), t.reshape(2 * t.shape[1], -1), t.swapaxes(0, 2).reshape(t.shape[2], -1)),
    "slices": lambda x, **_: (
        x[1:],
        x[:-1],
        x[::-1],
        x[::2, 1::3],
        x[-1],
        x[0, :2],
        x[: x.shape[0] // 2],
        x[..., None],
    ),
    "integers": lambda x, i, v, **_: (
        v[i],
        x[jnp.arange(x.shape[0]), i],
        jnp.take(x, jnp.array([0, -1]), 1),
        x[i[0] % 2],
    ),
    "updates": lambda x, v, i, **_: (x.at[0].set(v), x.at[:, -1].add(1.0), v.at[i].multiply(2.0), x.at[1:].min(0.5)),
    "joining": lambda x, v, **_: (jnp.concatenate([x, x, v[None]]), jnp.stack([x, x], 1), jnp.tile(x, (2, 3))),
    "padding": lambda x, **_: (jnp.pad(x, ((1, 2), (0, x.shape[1]))), lax.pad(x, 0.0, [(0, -1, 2), (1, 0, 1)])),
    "products": lambda x, t, v, m, **_: (x @ v, t @ m, jnp.einsum("kpq,pq->k", t, x), jnp.outer(v, v), v @ v),
    "ranges": lambda x, **_: (
        jnp.arange(x.shape[0]),
        jnp.arange(2, x.shape[1] + 4, 3),
        jnp.eye(x.shape[0]),
        jnp.tri(x.shape[1]),
    ),
    "loops": scanned,
    "sorting": lambda x, v, **_: (
        jnp.sort(x, 0),
        jnp.argsort(v),
        jnp.cumsum(x, 1),
        lax.top_k(v, 2),
        jnp.searchsorted(v, x[0]),
    ),
    "windows": lambda x, t, **_: (
        lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"),
        lax.conv(t[:, None], jnp.ones((3, 1, 2, 2)), (1, 2), "SAME"),
        lax.conv_general_dilated(t[:, None], jnp.ones((3, 1, 2, 2)), (1, 1), [(1, 1), (0, 2)], (2, 1)),
    ),
    "layers": lambda x, v, **_: (
        nn.softmax(x),
        nn.logsumexp(x, 0),
        nn.gelu(x),
        nn.standardize(x),
        nn.one_hot(jnp.arange(3), 4),
    ),
    "attention": lambda t, **_: nn.dot_product_attention(t[:, :, None], t[:, :, None], t[:, :, None], is_causal=True),
    "vmap": lambda x, v, **_: (
        ferrax.vmap(lambda r: r @ v)(x),
        ferrax.vmap(jnp.sort, 1, 1)(x),
        jnp.vectorize(jnp.add)(x, v),
    ),
    "random": lambda x, **_: (
        ferrax.random.normal(ferrax.random.key(1), x.shape),
        ferrax.random.uniform(ferrax.random.key(1), (x.shape[0], 2)),
    ),
    "fourier": lambda x, v, **_: (
        jnp.fft.fft(x),
        jnp.fft.rfft(v, norm="ortho"),
        jnp.fft.irfft(jnp.fft.rfft(v), x.shape[1]),
    ),
    "linear algebra": lambda m, v, **_: (
        jnp.linalg.solve(m, v),
        jnp.linalg.inv(m),
        jnp.linalg.det(m),
        jnp.linalg.cholesky(m @ m.T),
    ),
    "branches": lambda x, **_: lax.cond(x.sum() > 3, lambda: x * 2, lambda: jnp.zeros(x.shape)),
    "jit": lambda x, **_: ferrax.jit(lambda y: (y * y.shape[0]).T)(x),
    "statistics": lambda x, v, **_: (
        jnp.median(x, 0),
        jnp.quantile(v, 0.3),
        jnp.interp(0.3, jnp.sort(v), v),
        jnp.cov(x),
        jnp.trapezoid(v),
    ),
    "rolling": lambda x, v, **_: (
        jnp.roll(x, 1, 0),
        jnp.roll(v, v.shape[0] // 2),
        jnp.flip(x),
        jnp.diff(v),
        jnp.repeat(x, 2, 0),
    ),
}
DIFFERENTIATED = [
    "elementwise", "slices", "updates", "joining", "padding", "products", "loops", "layers", "attention", "windows",
    "vmap", "rolling", "integers", "branches", "reshape", "spectrum", "linear algebra",
]  # fmt: skip
PROGRAMS["spectrum"] = lambda x, **_: jnp.abs(jnp.fft.fft(x))


def equal(results, expected, rtol):
    assert ferrax.tree.structure(results) == ferrax.tree.structure(expected)
    for a, b in zip(ferrax.tree.leaves(results), ferrax.tree.leaves(expected)):
        assert a.dtype == b.dtype and a.weak_type == b.weak_type
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_for_every_size_what_the_function_does(name):
    """The same bits, read back from a file, under jit, and inside of another program with symbolic sizes."""
    function = ferrax.jit(lambda args: PROGRAMS[name](**args))
    exported = export.export(function)(types())
    read = export.deserialize(exported.serialize())
    assert list(map(str, read.out_avals)) == list(map(str, exported.out_avals))
    nested = export.export(ferrax.jit(read.call))(types("a", "b + 1", constraints=("b >= 1",)))
    for sizes in SIZES:
        args = arguments(*sizes)
        expected = function(args)
        shapes = [leaf.shape for leaf in ferrax.tree.leaves(expected)]
        variables = dict(zip("pq", sizes))
        known = lambda d: d._evaluate(variables) if export.is_symbolic_dim(d) else d
        assert [tuple(map(known, a.shape)) for a in exported.out_avals] == shapes
        for call in (exported.call, read.call, ferrax.jit(read.call), nested.call):
            # a scale that is known before is computed in double precision
            equal(call(args), expected, rtol=1e-6 if name == "attention" else 0)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_pullbacks_have_symbolic_sizes_too(name):
    def loss(args):
        leaves = ferrax.tree.leaves(PROGRAMS[name](**args))
        return sum((jnp.sin(y) * (k + 1)).sum() for k, y in enumerate(leaves) if y.dtype == np.float32)

    def by_floats(f, args):
        floats = {k: a for k, a in args.items() if k != "i"}
        return ferrax.grad(lambda floats: f({**args, **floats}))(floats)

    exported = export.deserialize(export.export(ferrax.jit(loss))(types()).serialize(vjp_order=1))
    for sizes in SIZES:
        args = arguments(*sizes)
        expected = by_floats(ferrax.jit(loss), args)
        for k, slope in by_floats(exported.call, args).items():
            np.testing.assert_allclose(slope, expected[k], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "given", "what"),
    [
        (["b, b, 2*d"], [(3, 3, 5)], "Division had remainder 1 when computing the value of 'd'"),
        (["b, b, 2*d"], [(3, 4, 4)], r"inconsistency between dimension size args\[0\].shape\[1\] \(= 4\)"),
        (["b, b, 2*d"], [(0, 0, 4)], "Expected value >= 1 for dimension variable 'b'"),
        (["b, b, 2*d"], [(3, 3)], r"Rank mismatch for args\[0\]"),
        (["b, 4"], [(3, 5)], r"Shape mismatch for args\[0\].shape\[1\]"),
        (["b", "b + c", "c*b"], [(3,), (5,), (7,)], r"args\[2\].shape\[0\] \(= 7\) and the specification '.*' \(= 6\)"),
    ],
)
def test_arguments_of_other_sizes_are_told(shapes, given, what):
    scope = export.SymbolicScope()
    specs = [ferrax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), np.float32) for s in shapes]
    exported = export.export(ferrax.jit(lambda *xs: sum(x.sum() for x in xs)))(*specs)
    with pytest.raises(ValueError, match=what):
        exported.call(*(np.zeros(shape, np.float32) for shape in given))


def test_constraints_are_checked_by_calls_and_kept_in_files():
    spec = ferrax.ShapeDtypeStruct(export.symbolic_shape("a, b", constraints=("a >= b", "mod(b, 2) == 0")), np.float32)
    exported = export.export(ferrax.jit(lambda x: x[: x.shape[1], 0].reshape(2, -1)))(spec)
    for f in (exported, export.deserialize(exported.serialize())):
        assert f.call(np.ones((4, 2), np.float32)).shape == (2, 1)
        with pytest.raises(ValueError, match=r"constraint a >= b.*but found -1"):
            f.call(np.ones((3, 4), np.float32))
        with pytest.raises(ValueError, match=r"constraint mod\(b"):
            f.call(np.ones((4, 3), np.float32))


@pytest.mark.parametrize("method", ["linear", "lanczos3", "cubic", "cubic-pytorch", "area"])
@pytest.mark.parametrize("antialias", [True, False])
def test_images_of_symbolic_sizes(method, antialias):
    """Weights are of the image's precision: those of known sizes are of double precision."""
    f = lambda x: ferrax.image.resize(x, (7, 2 * x.shape[1] + 1), method, antialias=antialias)
    exported = export.export(ferrax.jit(f))(types()["x"])
    for p, q in [*SIZES, (1, 1)]:
        x = arguments(p, q)["x"]
        np.testing.assert_allclose(exported.call(x), f(x), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_exported_is_told():
    spec = lambda text: ferrax.ShapeDtypeStruct(export.symbolic_shape(text), np.float32)
    exporter = lambda f: export.export(ferrax.jit(f))
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{'a', 'b'\}"):
        exporter(lambda x: x)(spec("a + b"))
    (n,) = export.symbolic_shape("n")
    for f in (lambda x: lax.broadcast(x, (n,)), lambda x: jnp.ones((n, 2)), lambda x: jnp.array(n), lambda x: x + n):
        for x in (spec("a"), jnp.ones(5)):
            with pytest.raises(UnexpectedDimVar, match="dimension variable 'n' that is not appearing in the shapes"):
                exporter(f)(x)
    with pytest.raises(ValueError, match="mixing of symbolic scopes"):
        exporter(lambda x, y: (x, y))(spec("a"), spec("a"))
    with pytest.raises(InconclusiveDimensionOperation):
        exporter(lambda x: x if x.shape[0] > 3 else -x)(spec("a"))
    with pytest.raises(InconclusiveDimensionOperation, match=r"Cannot divide evenly .*The remainder mod\(a, 2\*a\)"):
        exporter(lambda x: x.reshape(x.shape[0], -1, 2))(spec("a"))
    with pytest.raises(NotImplementedError, match="symbolic"):
        exporter(ferrax.grad(jnp.prod))(spec("a"))
    with pytest.raises(NotImplementedError, match="StableHLO of programs with symbolic sizes"):
        exporter(jnp.sin)(spec("a")).mlir_module()
    with pytest.raises(TypeError, match="integer"):
        exporter(lambda x: sum(x))(spec("a"))


@pytest.mark.parametrize("seed", range(40))
def test_tampered_files_are_errors(seed):
    """Any change of a header's text: an error of ours, or a program."""
    rng = np.random.default_rng(seed)
    exported = export.export(ferrax.jit(lambda x: x[1:] * x.shape[0]))(
        ferrax.ShapeDtypeStruct(export.symbolic_shape("2*a, b", constraints=("a >= 2",)), np.float32)
    )
    header, parts = unpack(exported.serialize())
    program, consts = unpack(parts[0].tobytes())
    target = [header["function"], program][seed % 2]
    text = json.dumps(target)
    at = rng.integers(1, len(text) - 1)
    text = text[:at] + rng.choice(list('0123456789ab*$(),-[]"{')) + text[at + 1 :]
    try:
        changed = json.loads(text)
    except ValueError:
        return
    if seed % 2:
        parts = [np.frombuffer(bytes(pack(changed, consts)), np.uint8)]
    else:
        header["function"] = changed
    try:
        read = export.deserialize(bytes(pack(header, parts)))
        read.call(np.ones((6, 3), np.float32))
    except (ValueError, TypeError, NotImplementedError, InconclusiveDimensionOperation, ZeroDivisionError, MemoryError):
        pass


def test_marks_without_sizes_are_errors():
    exported = export.export(ferrax.jit(jnp.sin))(types()["x"])
    header, parts = unpack(exported.serialize())
    program, consts = unpack(parts[0].tobytes())
    program["sizes"].pop()
    with pytest.raises(ValueError, match="malformed: it has no sizes for"):
        export.deserialize(bytes(pack(header, [np.frombuffer(bytes(pack(program, consts)), np.uint8)])))


def test_programs_are_kept_for_so_many_sizes():
    exported = export.export(ferrax.jit(lambda x: x.sum()))(
        ferrax.ShapeDtypeStruct(export.symbolic_shape("n"), np.float32)
    )
    for n in range(1, 300):
        assert exported.call(np.ones(n, np.float32)) == n
    assert len(exported._programs) == 256


def test_top_k_of_a_symbolic_count():
    """As many entries as an argument has rows, and no more than there are."""
    (k,) = export.symbolic_shape("k", constraints=("k <= 10",))
    x = np.arange(40, dtype=np.int32).reshape(4, 10)
    rows = ferrax.ShapeDtypeStruct((k, 0), np.int32)
    exported = export.export(ferrax.jit(lambda rows, x: ferrax.lax.top_k(x, rows.shape[0])))(rows, x)
    assert [str(a) for a in exported.out_avals] == ["int32[4,k]", "int32[4,k]"]
    values, places = exported.call(np.zeros((3, 0), np.int32), x)
    np.testing.assert_array_equal(values, x[:, :6:-1])
    np.testing.assert_array_equal(places, [[9, 8, 7]] * 4)
