"""Foreign functions: the handlers of `handlers.cc` and `plain.c`, compiled here, against JAX's calls of them."""

import contextlib
import ctypes
import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.recorded import expected

HERE = pathlib.Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not (shutil.which("c++") and shutil.which("cc") and importlib.util.find_spec("jaxlib")),
    reason="needs compilers of C and C++, and XLA's headers",
)


@functools.cache
def library(name):
    """A library of handlers, compiled."""
    made = os.path.join(tempfile.mkdtemp(), "handlers.so")
    compiler = ["c++", "-std=c++17", "-I", ferrax.ffi.include_dir()] if name.endswith("cc") else ["cc"]
    subprocess.run([*compiler, "-w", "-O1", "-shared", "-fPIC", "-pthread", str(HERE / name), "-o", made], check=True)
    return ctypes.cdll.LoadLibrary(made)


def target(jax, handler, source="handlers.cc"):
    """A handler by its name, registered with a module."""
    if (jax.__name__, handler) not in registered():
        jax.ffi.register_ffi_target(handler, jax.ffi.pycapsule(getattr(library(source), handler)))
        registered().add((jax.__name__, handler))
    return handler


@functools.cache
def registered():
    return set()


def text_of(described):
    return bytes(np.asarray(described)).rstrip(b"\0").decode()


def same(got, wanted):
    """Equal arrays, of equal dtypes, or trees of such."""
    if isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            same(g, w)
        return
    assert got.dtype == wanted.dtype
    pair = [np.asarray(v) for v in (got, wanted)]
    # NumPy knows no NaN of the narrow formats
    np.testing.assert_array_equal(*(v.astype(np.float32) if v.dtype.kind == "V" else v for v in pair))


def holds(compute, *args):
    """Asserts that ferrax's result is JAX's, eagerly and in programs."""
    wanted = expected(compute, *args)
    same(compute(ferrax, *args), wanted)
    same(ferrax.jit(lambda *values: compute(ferrax, *values))(*args), wanted)


def fails(compute, *args):
    """Asserts that ferrax raises an error of JAX's class, and gives both texts."""
    with pytest.raises(Exception) as wanted:
        expected(compute, *args)
    with pytest.raises(Exception) as got:
        compute(ferrax, *args)
    names = lambda e: [c.__name__ for c in type(e.value).__mro__]
    assert names(wanted)[0] in names(got)
    return str(got.value), str(wanted.value)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def scaled(jax, x, factor=np.float32(2.5), **options):
    call = jax.ffi.ffi_call(target(jax, "Scale"), jax.ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, factor=factor)


def test_a_call():
    holds(scaled, X)


def norm(jax, x, method="broadcast_all"):
    call = jax.ffi.ffi_call(target(jax, "Norm"), jax.ShapeDtypeStruct(x.shape, x.dtype), vmap_method=method)
    return call(x, eps=np.float32(1e-5))


def sum_diff(jax, x, y, method=None):
    result = jax.ShapeDtypeStruct((3,), np.float32)
    return jax.ffi.ffi_call(target(jax, "SumDiff"), (result, result), vmap_method=method)(x, y)


def test_several_results():
    holds(sum_diff, X[0], X[1])
    result = ferrax.ShapeDtypeStruct((3,), np.float32)
    listed = ferrax.ffi.ffi_call(target(ferrax, "SumDiff"), [result, result])(X[0], X[1])
    assert isinstance(listed, list)
    same(listed[0], X[0] + X[1])


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_vmap(method, axes):
    x = np.arange(12, dtype=np.float32).reshape(3, 4) if axes[0] == 1 else np.arange(12, dtype=np.float32).reshape(4, 3)
    y = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    operands = [v[0] if axis is None else v for v, axis in zip((x, y), axes, strict=True)]
    if axes[0] is None:
        operands[0] = x[0]
    holds(lambda jax, x, y: jax.vmap(lambda a, b: sum_diff(jax, a, b, method), axes)(x, y), *operands)


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_what_the_handler_sees_under_vmap(method):
    def compute(jax, x, y):
        call = jax.ffi.ffi_call(
            target(jax, "Describe", "plain.c"), jax.ShapeDtypeStruct((1000,), np.uint8), vmap_method=method
        )
        # handlers of a whole batch write its first row alone
        return jax.vmap(call, (0, None))(x, y)[0]

    x, y = np.ones((2, 3), np.float32), np.ones((4, 5), np.int8)
    assert text_of(compute(ferrax, x, y)) == text_of(expected(compute, x, y))


def test_vmap_without_a_method():
    got, wanted = fails(lambda jax, x: jax.vmap(lambda row: norm(jax, row, None))(x), X)
    assert got == wanted


def test_nested_vmap():
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    holds(lambda jax, x: jax.vmap(jax.vmap(lambda row: norm(jax, row), 1, 1))(x), x)


def test_in_loops():
    def compute(jax, x):
        def step(carry, row):
            carry = carry + scaled(jax, row)
            return carry, norm(jax, carry)

        return jax.lax.scan(step, x[0], x)

    holds(compute, X)


def test_a_custom_derivative():
    def compute(jax, x):
        @jax.custom_vjp
        def twice(x):
            return scaled(jax, x, np.float32(2))

        twice.defvjp(lambda x: (twice(x), x), lambda x, ct: (scaled(jax, ct, np.float32(2)),))
        return jax.grad(lambda x: (twice(x) ** 2).sum())(x)

    holds(compute, X)


def test_no_derivative():
    got, _ = fails(lambda jax, x: jax.grad(lambda x: scaled(jax, x).sum())(x), X)
    assert "The FFI call to `Scale` cannot be differentiated" in got


ATTRIBUTES = {
    "python numbers": dict(b=3, a=True, c=-1.5),
    "numpy numbers": dict(a=np.int8(-3), b=np.uint16(7), c=np.float32(0.5), d=np.float64(0.5), e=np.int32(1)),
    "text": dict(text="héllo", empty="", raw=b"\x01\x02"),
    "arrays": dict(a=np.array([1, 2, 3]), b=np.array([[1.5, 2], [3, 4]], np.float32), c=np.array([], np.int8)),
    "a dictionary": dict(d={"x": 1, "a": "b"}, e={}),
    "order": dict(zz=1, a=2, Z=3, m_1=4, m=5),
}


@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_attributes(kind):
    attributes = ATTRIBUTES[kind]

    def compute(jax, x):
        return jax.ffi.ffi_call(target(jax, "Describe", "plain.c"), jax.ShapeDtypeStruct((1000,), np.uint8))(
            x, **attributes
        )

    assert text_of(compute(ferrax, X)) == text_of(expected(compute, X))


def test_equal_attributes_of_different_dtypes_are_different():
    call = ferrax.ffi.ffi_call(target(ferrax, "Describe", "plain.c"), ferrax.ShapeDtypeStruct((1000,), np.uint8))
    texts = {text_of(call(a=a)) for a in (1, np.int8(1), np.float32(1), 1.0, True, np.array(1))}
    assert len(texts) == 6


def test_nested_dictionaries():
    call = ferrax.ffi.ffi_call(target(ferrax, "Describe", "plain.c"), ferrax.ShapeDtypeStruct((1000,), np.uint8))
    assert text_of(call(a={"b": {"c": 1, "d": "e"}})).endswith("|a={b={c=scalar 5 0100000000000000;d=text e;};};")


@pytest.mark.parametrize("value", [[1, 2], (1, 2), None, {1: 2}])
def test_attributes_that_are_none(value):
    with pytest.raises(TypeError, match="attribute"):
        ferrax.ffi.ffi_call(target(ferrax, "Describe", "plain.c"), ferrax.ShapeDtypeStruct((1000,), np.uint8))(a=value)


DTYPES = """
bool int2 int4 int8 int16 int32 uint2 uint4 uint8 uint16 uint32 float4_e2m1fn float8_e3m4 float8_e4m3fn float8_e5m2
float8_e8m0fnu bfloat16 float16 float32 complex64
""".split()  # noqa: SIM905


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    """Handlers see XLA's numbers of dtypes, and elements as XLA stores them; what they write comes back."""
    values = np.array([1, 0, 1, 2, 1, 3, 0], np.dtype(getattr(ml_dtypes, dtype, dtype)))
    if dtype.startswith("int"):
        values = values - np.array(1).astype(values.dtype)

    def described(jax, x):
        return jax.ffi.ffi_call(target(jax, "Describe", "plain.c"), jax.ShapeDtypeStruct((1000,), np.uint8))(x)

    def copied(jax, x):
        return jax.ffi.ffi_call(target(jax, "Bytes", "plain.c"), jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def first_bytes(jax, x):
        return jax.ffi.ffi_call(target(jax, "Bytes", "plain.c"), jax.ShapeDtypeStruct((1,), np.uint8))(x)

    assert text_of(described(ferrax, values)) == text_of(expected(described, values))
    same(first_bytes(ferrax, values), expected(first_bytes, values))
    same(copied(ferrax, values), values)


def test_wide_dtypes_without_x64():
    call = ferrax.ffi.ffi_call(target(ferrax, "Bytes", "plain.c"), ferrax.ShapeDtypeStruct((1,), np.float64))
    assert call(np.array([0, 1], np.int32)).dtype == np.float64


def test_keys_are_words():
    def compute(jax):
        return jax.ffi.ffi_call(target(jax, "Describe", "plain.c"), jax.ShapeDtypeStruct((1000,), np.uint8))(
            jax.random.split(jax.random.key(0), 3)
        )

    assert text_of(compute(ferrax)) == text_of(expected(compute))


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_layouts(layout):
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)

    def read(jax, x):
        result = jax.ShapeDtypeStruct((24,), np.int8)
        return jax.ffi.ffi_call(target(jax, "Bytes", "plain.c"), result, input_layouts=[layout])(x)

    def written(jax, x):
        result = jax.ShapeDtypeStruct((2, 3, 4), np.int8)
        return jax.ffi.ffi_call(target(jax, "Bytes", "plain.c"), result, output_layouts=layout)(x.reshape(24))

    def batched(jax, x):
        result = jax.ShapeDtypeStruct((3, 4), np.int8)
        rest = [axis - 1 for axis in layout if axis]
        call = jax.ffi.ffi_call(
            target(jax, "Bytes", "plain.c"),
            [result],
            input_layouts=[rest],
            output_layouts=[None],
            vmap_method="broadcast_all",
        )
        return jax.vmap(call)(x)

    for compute in (read, written, batched):
        holds(compute, x)


def test_layouts_that_do_not_fit():
    call = functools.partial(
        ferrax.ffi.ffi_call, target(ferrax, "Bytes", "plain.c"), ferrax.ShapeDtypeStruct((6,), np.int8)
    )
    with pytest.raises(ValueError, match=r"number of input arguments \(1\) must equal"):
        call(input_layouts=[])(X)
    for layout in ((0,), (0, 0), (0, 2)):
        with pytest.raises(ValueError, match="must name each of its 2 axes once"):
            call(input_layouts=[layout])(X)
    layout = ferrax.experimental.layout.Layout((0, 1), ((8, 128),))
    with pytest.raises(ValueError, match="tiling"):
        call(input_layouts=[layout])(X)


def test_side_effects():
    count = ferrax.ffi.ffi_call
    result = ferrax.ShapeDtypeStruct(X.shape, X.dtype)
    calls = library("handlers.cc").Calls

    @ferrax.jit
    def f(x):
        count(target(ferrax, "Count"), result, has_side_effect=True)(x)
        return x

    @ferrax.jit
    def g(x):
        count(target(ferrax, "Count"), result)(x)
        return x

    before = calls()
    f(X), f(X), g(X)
    ferrax.effects_barrier()
    assert calls() == before + 2


def test_aliases():
    def compute(jax, x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call(target(jax, "InPlace"), result, input_output_aliases={0: 0})(x)

    holds(compute, X)
    x = jnp.array(X)
    compute(ferrax, x)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("aliases", [{1: 0}, {0: 1}, {0: 0}])
def test_aliases_that_do_not_fit(aliases):
    def compute(jax, x):
        result = jax.ShapeDtypeStruct((3, 2), x.dtype)
        return jax.ffi.ffi_call(target(jax, "InPlace"), result, input_output_aliases=aliases)(x)

    got, wanted = fails(compute, X)
    assert got == wanted


@pytest.mark.parametrize("code", range(1, 17))
def test_errors_of_handlers(code):
    def compute(jax, x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call(target(jax, "Fail"), result)(x, code=code, message="what went wrong")

    got, wanted = fails(compute, X)
    assert got.splitlines()[0] == wanted.splitlines()[0]
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="what went wrong"):
        ferrax.jit(lambda x: compute(ferrax, x))(X).block_until_ready()


def test_errors_of_decoding():
    def compute(jax, x):
        return jax.ffi.ffi_call(target(jax, "Scale"), jax.ShapeDtypeStruct(x.shape, np.int32))(x, factor=1.0)

    got, wanted = fails(compute, X)
    assert got.splitlines()[0] == wanted.splitlines()[0]


def test_no_such_target():
    got, wanted = fails(lambda jax: jax.ffi.ffi_call("nobody", jax.ShapeDtypeStruct((), np.int32))())
    assert got.startswith(wanted.split(" (canonical")[0])


@contextlib.contextmanager
def runtime_error(text):
    with pytest.raises(ferrax.errors.JaxRuntimeError, match=text):
        yield


def test_registration():
    plain = library("plain.c")
    register, capsule = ferrax.ffi.register_ffi_target, ferrax.ffi.pycapsule
    with runtime_error(r"API version \(0.0\) is incompatible"):
        register("silent", capsule(plain.Silent))
    with runtime_error(r"API version \(0.99\) is incompatible"):
        register("newer", capsule(plain.Newer))
    target(ferrax, "Bytes", "plain.c")
    register("Bytes", capsule(plain.Bytes), traits=1)
    with runtime_error("Duplicate FFI handler registration for Bytes"):
        register("Bytes", capsule(plain.Describe))
    register("Bytes", capsule(plain.Describe), platform="CUDA")
    with runtime_error("must provide an execute implementation"):
        register("part", {"instantiate": capsule(plain.Bytes)})
    with pytest.raises(ValueError, match="no stage"):
        register("part", {"exec": capsule(plain.Bytes)})
    with pytest.raises(TypeError, match=r"jax\.ffi\.pycapsule"):
        register("bare", plain.Bytes)
    register("old", capsule(plain.Bytes), api_version=0)
    with pytest.raises(NotImplementedError, match=r"'old' is of the untyped .*api_version=0"):
        ferrax.ffi.ffi_call("old", ferrax.ShapeDtypeStruct((), np.int32))()
    with runtime_error("API version 3"):
        register("odd", capsule(plain.Bytes), api_version=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sides'"):
        register("odd", capsule(plain.Bytes), sides=3)
    with pytest.raises(NotImplementedError, match="untyped"):
        ferrax.ffi.ffi_call("Bytes", ferrax.ShapeDtypeStruct((), np.int32), custom_call_api_version=2)
    with pytest.raises(ValueError, match="legacy_backend_config"):
        ferrax.ffi.ffi_call("Bytes", ferrax.ShapeDtypeStruct((), np.int32), legacy_backend_config="")


def test_tokens_are_refused():
    for token in (ferrax.extend.core.Token, ferrax.extend.core.AbstractToken()):
        with pytest.raises(NotImplementedError, match="tokens"):
            ferrax.ffi.ffi_call("Bytes", token)


def test_state():
    """State is made once a call site, found by each call, and ended with its program."""
    lib, capsule = library("handlers.cc"), ferrax.ffi.pycapsule
    for name in ("CounterId", "CounterInfo"):
        getattr(lib, name).restype = ctypes.c_void_p
    address = lambda name: capsule(ctypes.c_void_p(getattr(lib, name)()))
    registration = {"type_id": address("CounterId"), "type_info": address("CounterInfo")}
    ferrax.ffi.register_ffi_type("Counter", registration)
    ferrax.ffi.register_ffi_type("Counter", registration)
    with runtime_error("is that of Counter already"):
        ferrax.ffi.register_ffi_type("Other", registration)
    stages = {"instantiate": capsule(lib.CounterInstantiate), "execute": capsule(lib.CounterExecute)}
    ferrax.ffi.register_ffi_target("Counter", stages)
    call = ferrax.ffi.ffi_call("Counter", ferrax.ShapeDtypeStruct((), np.int32), has_side_effect=True)
    f = ferrax.jit(lambda: call(start=10))
    g = ferrax.jit(lambda: call(start=20))
    assert [int(f()), int(f()), int(g()), int(f())] == [10, 11, 20, 12]
    ended = lib.Calls()
    del f, g
    ferrax.clear_caches()
    assert lib.Calls() == ended + 2


def test_tasks_and_futures():
    def tasks(jax, x):
        return jax.ffi.ffi_call(target(jax, "Tasks"), jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def later(jax, x, fails=False):
        return jax.ffi.ffi_call(target(jax, "Later"), jax.ShapeDtypeStruct(x.shape, x.dtype))(x, fails=fails)

    holds(tasks, X)
    holds(later, X)
    got, wanted = fails(lambda jax, x: later(jax, x, True).block_until_ready(), X)
    assert got.splitlines()[0] == wanted.splitlines()[0] == "DATA_LOSS: too late"


def test_empty_arrays():
    holds(scaled, np.zeros((0, 3), np.float32))


def test_a_lowering_of_a_primitive():
    def compute(jax, x):
        norm_p = importlib.import_module(f"{jax.__name__}.extend.core").Primitive("norm")
        norm_p.def_abstract_eval(lambda x, eps: jax.core.ShapedArray(x.shape, x.dtype))
        jax.interpreters.mlir.register_lowering(norm_p, jax.ffi.ffi_lowering(target(jax, "Norm")), platform="cpu")
        return jax.jit(lambda x: norm_p.bind(x, eps=np.float32(1e-5)))(x)

    same(compute(ferrax, X), expected(compute, X))
    with pytest.raises(NotImplementedError, match="MLIR"):
        ferrax.ffi.ffi_lowering("Norm", result_types=[])


def test_the_printed_program():
    text = str(ferrax.make_jaxpr(lambda x: scaled(ferrax, x, vmap_method="sequential"))(X))
    for part in ("ffi_call[", "attributes=(('factor', 2.5),)", "target_name=Scale", "vmap_method=sequential"):
        assert part in text


def test_the_program_of_an_interpreter():
    """Equations bind again, with several results; a program as a file refuses them."""
    program = ferrax.make_jaxpr(lambda x, y: sum_diff(ferrax, x, y))(X[0], X[1])
    (eqn,) = program.eqns
    same(list(eqn.primitive.bind(X[0], X[1], **eqn.params)), [X[0] + X[1], X[0] - X[1]])
    same(ferrax.core.eval_jaxpr(program.jaxpr, program.consts, X[0], X[1]), [X[0] + X[1], X[0] - X[1]])
    with pytest.raises(NotImplementedError, match="ffi_call"):
        ferrax.export.export(ferrax.jit(lambda x, y: sum_diff(ferrax, x, y)))(X[0], X[1]).serialize()


def test_sharded_operands():
    """Devices of the embedded engine share one memory: the handler gets the whole."""
    mesh = ferrax.make_mesh((1,), ("i",))
    x = ferrax.device_put(X, ferrax.NamedSharding(mesh, ferrax.P("i")))
    same(scaled(ferrax, x), X * np.float32(2.5))
    mapped = ferrax.shard_map(lambda x: scaled(ferrax, x), mesh=mesh, in_specs=ferrax.P("i"), out_specs=ferrax.P("i"))
    same(mapped(x), X * np.float32(2.5))
