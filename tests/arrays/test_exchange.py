"""Arrays exchanged with other libraries: NumPy, the buffer protocol, DLPack, pickles, copies."""

import copy
import gc
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

DTYPES = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "complex64"]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e3m4"]
SHAPES = [(), (1,), (5,), (2, 3), (0, 3), (2, 1, 4)]


def live():
    return ferrax.devices()[0].memory_stats()["bytes_in_use"]


def sample(shape, dtype):
    n = int(np.prod(shape))
    return jnp.asarray((np.arange(n) % 7).reshape(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW, "int4", "uint4"])
@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_shares_the_memory(shape, dtype):
    x = sample(shape, dtype)
    a, b = np.asarray(x), np.asarray(x)
    assert a.dtype == x.dtype and a.shape == shape
    assert not a.flags.writeable
    assert a.ctypes.data == b.ctypes.data
    np.testing.assert_array_equal(jnp.asarray(a), x)
    assert np.array(x).flags.writeable


def test_a_numpy_view_outlives_the_array():
    x = jnp.arange(5.0) + 1
    view = np.asarray(x)
    x.delete()
    del x
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(5.0) + 1)


def test_numpy_arrays_are_copied_in():
    a = np.arange(5, dtype=np.float32)
    x = jnp.asarray(a)
    a[:] = 9
    np.testing.assert_array_equal(x, np.arange(5))


@pytest.mark.parametrize("order", ["C", "F", "reversed", "strided", "broadcast"])
def test_numpy_layouts_in(order):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    a = {
        "C": base,
        "F": np.asfortranarray(base),
        "reversed": base[::-1, ::-1],
        "strided": base[::2, 1::2],
        "broadcast": np.broadcast_to(base[0], (4, 6)),
    }[order]
    np.testing.assert_array_equal(jnp.asarray(a), a)
    np.testing.assert_array_equal(jnp.from_dlpack(a.copy(order="K")), a)


@pytest.mark.parametrize("letter", "?bBhHiIlLqQpPefdFD")
def test_every_c_type(letter):
    """NumPy has several dtypes of one width: `long` and `long long`."""
    a = np.array([[1, 0, 1], [1, 1, 0]], letter)
    swapped = a.astype(a.dtype.newbyteorder())
    for x64 in (False, True):
        with ferrax.enable_x64(x64):
            for given in (a, a.T, swapped, a.astype(a.dtype.newbyteorder("<")), a[0, 0]):
                x = jnp.asarray(given)
                np.testing.assert_array_equal(x, given)
                assert np.asarray(x).dtype.char in "?bBhHiIlLefdFD"
            assert ferrax.jit(lambda x: x)(a).dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_buffer_protocol(shape, dtype):
    x = sample(shape, dtype)
    view = memoryview(x)
    expected = memoryview(np.asarray(x))
    assert view.readonly and view.shape == expected.shape and view.strides == expected.strides
    assert view.itemsize == expected.itemsize and view.tobytes() == expected.tobytes()
    if dtype != "complex64":
        assert np.dtype(view.format) == x.dtype
    if dtype not in ("complex64", "float16"):  # which memoryview does not read
        assert view.tolist() == expected.tolist()


def test_a_buffer_keeps_the_memory():
    x = jnp.arange(4, dtype=jnp.int32)
    view = memoryview(x)
    x.delete()
    assert view.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s != (0, 3)])
def test_dlpack_out_shares_the_memory(shape, dtype):
    x = sample(shape, dtype)
    a = np.from_dlpack(x)
    assert a.dtype == x.dtype and a.shape == shape and not a.flags.writeable
    assert a.ctypes.data == np.asarray(x).ctypes.data
    del x
    gc.collect()
    np.testing.assert_array_equal(a, sample(shape, dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW])
@pytest.mark.parametrize("shape", SHAPES)
def test_dlpack_between_our_own_arrays_shares(shape, dtype):
    x = sample(shape, dtype)
    y = jnp.from_dlpack(x)
    assert y.dtype == x.dtype and y.shape == shape
    np.testing.assert_array_equal(y, x)
    if x.size:
        assert np.asarray(y).ctypes.data == np.asarray(x).ctypes.data
    copied = jnp.from_dlpack(x, copy=True)
    np.testing.assert_array_equal(copied, x)
    if x.size:
        assert np.asarray(copied).ctypes.data != np.asarray(x).ctypes.data


def test_dlpack_in_copies_memory_that_can_be_written():
    a = np.arange(6, dtype=np.float32)
    x, shared = jnp.from_dlpack(a), jnp.from_dlpack(a, copy=False)
    a[0] = 9
    assert x[0] == 0 and shared[0] == 9


def test_dlpack_copies_what_does_not_lie_row_by_row():
    a = np.arange(12, dtype=np.int32).reshape(3, 4).T
    np.testing.assert_array_equal(jnp.from_dlpack(a), a)
    with pytest.raises(BufferError, match="do not lie row by row"):
        jnp.from_dlpack(a, copy=False)


def test_dlpack_narrows_as_every_input():
    assert jnp.from_dlpack(np.arange(3.0)).dtype == np.float32
    with ferrax.enable_x64(True):
        assert jnp.from_dlpack(np.arange(3.0)).dtype == np.float64


def test_dlpack_returns_memory():
    before = live()
    for _ in range(3):
        x = jnp.ones(1000)
        x.__dlpack__()  # a capsule that nobody takes
        a = np.from_dlpack(x)
        y = jnp.from_dlpack(a)
        x.__dlpack__(max_version=(1, 0), copy=True)
        del x, a, y
    gc.collect()
    assert live() == before


def test_dlpack_capsule_is_used_once():
    class Twice:
        def __init__(self):
            self.capsule = jnp.ones(3).__dlpack__()

        def __dlpack__(self):  # of before version 1: takes no arguments
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    twice = Twice()
    np.testing.assert_array_equal(jnp.from_dlpack(twice), np.ones(3))
    with pytest.raises(TypeError, match="one that was used before"):
        jnp.from_dlpack(twice)


class OnGpu:
    def __dlpack__(self, **_):
        raise AssertionError("not asked for")

    def __dlpack_device__(self):
        return (2, 1)


DLPACK_ERRORS = {
    "stream": (lambda: jnp.ones(2).__dlpack__(stream=1), ValueError, "stream must be None"),
    "device": (lambda: jnp.ones(2).__dlpack__(dl_device=(2, 0)), BufferError, "cannot be handed out on device"),
    "dtype": (lambda: jnp.ones(2, jnp.int4).__dlpack__(), BufferError, "int4 has no DLPack type"),
    "tracer": (lambda: ferrax.jit(lambda x: x.__dlpack__())(jnp.ones(2)), TypeError, "__dlpack__"),
    "deleted": (lambda: deleted().__dlpack__(), RuntimeError, "has been deleted"),
    "no array": (lambda: jnp.from_dlpack(3), TypeError, "must have __dlpack__ and __dlpack_device__ methods"),
    "on a GPU": (lambda: jnp.from_dlpack(OnGpu()), RuntimeError, r"on DLPack device \(2, 1\)"),
}


def deleted():
    x = jnp.ones(2)
    x.delete()
    return x


@pytest.mark.parametrize("name", DLPACK_ERRORS)
def test_dlpack_errors(name):
    call, kind, text = DLPACK_ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW, "int4"])
def test_pickle(dtype, protocol):
    x = sample((2, 3), dtype)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype == x.dtype and y.weak_type == x.weak_type
    np.testing.assert_array_equal(y, x)


def test_pickle_keeps_weak_types_and_refuses_tracers():
    assert pickle.loads(pickle.dumps(jnp.asarray(1.0))).weak_type
    with pytest.raises(TypeError):
        ferrax.jit(pickle.dumps)(1.0)


def test_copies():
    x = jnp.ones(3)
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert y is not x
        np.testing.assert_array_equal(y, x)


def test_array_namespace():
    assert jnp.ones(1).__array_namespace__() is jnp
    assert jnp.ones(1).__array_namespace__(api_version="2024.12") is jnp
    with pytest.raises(ValueError, match="1999"):
        jnp.ones(1).__array_namespace__(api_version="1999")


SCALARS = [*DTYPES, *NARROW, "int64", "uint64", "float64", "complex128", "int4", "uint4", "int2"]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", SCALARS)
def test_scalars_of_every_dtype(dtype, x64):
    """NumPy's scalars and those of ml_dtypes, wherever a number is taken."""
    make = getattr(ml_dtypes, dtype, None) or getattr(np, dtype if dtype != "bool" else "bool_")
    with ferrax.enable_x64(x64):
        for number in (0, 1):
            scalar = make(number)
            zero = jnp.asarray(np.zeros((), scalar.dtype))
            taken = {
                "asarray": jnp.asarray(scalar), "array": jnp.array(scalar), "list": jnp.array([scalar, scalar])[1],
                "jit": ferrax.jit(lambda x: x)(scalar), "closure": ferrax.jit(lambda: jnp.asarray(scalar))(),
                "where": jnp.where(True, scalar, zero), "full": jnp.full(2, scalar)[0],
                "put": ferrax.device_put(scalar), "set": jnp.zeros(2, zero.dtype).at[0].set(scalar)[0],
                "maximum": jnp.maximum(zero, scalar),
            }  # fmt: skip
            for way, x in taken.items():
                assert x.dtype == zero.dtype, way
                np.testing.assert_array_equal(np.asarray(x).astype(np.complex128), number, err_msg=way)


def test_truth_values_of_any_byte():
    """What others hold for true may be any byte but 0."""
    odd = np.array([0, 1, 2, 255, 3, 128], np.uint8).view(bool)
    state = list(jnp.asarray([True] * 6).__reduce__())
    state[1] = (odd.tobytes(), *state[1][1:])
    taken = [
        jnp.asarray(odd), jnp.asarray(odd.repeat(2)[::2]), jnp.frombuffer(odd.tobytes(), jnp.bool_),
        jnp.from_dlpack(odd), ferrax.jit(lambda x: x)(odd), ferrax.device_put(odd), state[0](*state[1]),
    ]  # fmt: skip
    for x in taken:
        np.testing.assert_array_equal(np.asarray(x).view(np.uint8), [0, 1, 1, 1, 1, 1])
        assert int(jnp.sum(x)) == 5


def test_methods_need_no_import_and_the_first_program_no_warning():
    code = """
import numpy as np
import ferrax
x = ferrax.device_put(np.ones((50, 50), "float32"))
assert x.astype("int32").sum() == 2500
assert ferrax.jit(lambda x: (x @ x * x).mean())(x) == 50
"""
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "the CPU engine" not in done.stderr, "an instruction set of this machine failed its test"


def test_jitted_functions_of_no_module_are_kept_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")
    double = ferrax.jit(lambda x, n: x * n, static_argnums=1)
    outer = ferrax.jit(lambda z: double(z, 2) + z)
    assert pickle.loads(cloudpickle.dumps(outer))(32) == 96
    again = pickle.loads(cloudpickle.dumps(double))
    assert again(jnp.arange(2), 3).tolist() == [0, 3] and again.lower(1, 2).args_info[0][0].shape == ()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(double)
