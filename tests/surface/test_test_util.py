"""The test case and helpers with which JAX's own tests are written."""

import unittest
import warnings

import ml_dtypes
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._src import test_util as jtu
from ferrax._src.public_test_util import check_close
from ferrax.test_util import check_grads

CASE = type("Case", (jtu.JaxTestCase,), {"runTest": lambda self: None})


def outcomes(cls):
    """{name of a test: None, or the text of its failure} of a class."""
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(cls)
    names = [test._testMethodName for test in suite]
    suite.run(result)
    bad = {t._testMethodName: text for t, text in [*result.failures, *result.errors, *result.skipped]}
    return {name: bad.get(name) for name in names}


F32 = np.ones(3, np.float32)
CLOSE = [
    (1.0, np.float32(1)),
    (np.float32(1), np.float64(1)),
    ([1, {"a": F32}], [1, {"a": F32}]),
    ([1], (1,)),
    ("a", "a"),
    (None, None),
    (F32, F32 + np.float32(5e-7)),
    (np.nan, np.nan),
    (np.ones(2, ml_dtypes.bfloat16), np.full(2, 1.005, ml_dtypes.bfloat16)),
]
FAR = [
    ({"a": 1}, {"b": 1}),
    (F32, np.ones(4, np.float32)),
    (1, 1.0),
    (F32, F32 + np.float32(1e-5)),
    ([1], [1, 2]),
    ("a", "b"),
    (F32, "a"),
]


@pytest.mark.parametrize("pair", CLOSE)
def test_close(pair):
    CASE().assertAllClose(*pair)


@pytest.mark.parametrize("pair", FAR)
def test_far(pair):
    with pytest.raises(AssertionError):
        CASE().assertAllClose(*pair)


def test_arrays():
    case = CASE()
    case.assertAllClose(1, 1.0, check_dtypes=False)
    case.assertAllClose(F32, F32 + np.float32(1e-3), atol=1e-2, rtol=0)
    case.assertAllClose(F32, F32 + np.float32(1e-3), atol={np.float32: 1e-2})
    case.assertArraysEqual(jnp.ones(3), F32)
    case.assertArraysEqual(ferrax.random.key(0), ferrax.random.key(0))
    for a, b in ((jnp.ones(3), 2 * F32), (jnp.ones(3, int), F32), (ferrax.random.key(0), ferrax.random.key(1))):
        with pytest.raises(AssertionError):
            case.assertArraysEqual(a, b)
    case.assertMultiLineStrippedEqual("a  \nb", "a\nb  ")
    with case.assertNoWarnings():
        pass
    with pytest.raises(UserWarning), case.assertNoWarnings():
        warnings.warn("text", stacklevel=1)


def test_compiled_and_reference_functions():
    case = CASE()
    args = lambda: [F32]
    case._CheckAgainstNumpy(np.sin, jnp.sin, args)
    case._CompileAndCheck(jnp.sin, args)
    with pytest.raises(AssertionError):
        case._CheckAgainstNumpy(np.cos, jnp.sin, args)
    calls = []

    def changing(x):
        calls.append(x)
        return x + len(calls)

    with pytest.raises(AssertionError):
        case._CompileAndCheck(changing, args)


def test_sampled_cases():
    @jtu.with_config(jax_numpy_dtype_promotion="strict")
    class Sampled(jtu.JaxTestCase):
        @jtu.sample_product([{"a": 1}, {"a": 2}], b=[3, 4])
        def test_product(self, a, b):
            assert (a, b) != (2, 4)

        @jtu.sample_product(i=range(100))
        @jtu.skip_on_devices("tpu")
        def test_many(self, i):
            assert ferrax.config.jax_numpy_dtype_promotion == "strict"

        @jtu.parameterized_filterable(kwargs=[{"n": 1}, {"n": 2}], testcase_name=lambda k: f"_of_{k['n']}")
        def test_named(self, n):
            assert n == 1

        @jtu.skip_on_devices(jtu.device_under_test())
        def test_elsewhere(self):
            raise AssertionError

        @jtu.run_on_devices("tpu", skip_reason="no tpu")
        def test_tpu(self):
            raise AssertionError

        def test_generator(self):
            assert self.rng() is self.rng() and self.rng().rand() < 1

    found = outcomes(Sampled)
    assert [name for name in found if name.startswith("test_product")] == [f"test_product{i}" for i in range(4)]
    assert len([name for name in found if name.startswith("test_many")]) == 10
    bad = {name for name, text in found.items() if text}
    assert bad == {"test_product3", "test_named_of_2", "test_elsewhere", "test_tpu"}
    assert found["test_tpu"] == "no tpu"
    assert ferrax.config.jax_numpy_dtype_promotion == "standard"


def test_draws():
    r = lambda: np.random.RandomState(0)
    ranges = {
        "rand_positive": (1, 3),
        "rand_small": (-0.01, 0.01),
        "rand_small_positive": (0, 2e-5),
        "rand_uniform": (0, 1),
        "rand_bool": (0, 1),
    }
    for name in [
        name
        for name in dir(jtu)
        if name.startswith("rand_") and name not in ("rand_indices_unique_along_axis", "rand_like")
    ]:
        for dtype in (np.float32, ml_dtypes.bfloat16, np.int32, np.uint8, np.complex64, np.bool_):
            if name in ("rand_int", "rand_unique_int") and dtype is np.bool_:
                continue
            draw = getattr(jtu, name)(r(), **({"high": 50} if name == "rand_int" else {}))
            x = draw((4, 10), dtype)
            assert x.shape == (4, 10) and x.dtype == dtype, name
            if name in ranges and dtype is np.float32:
                low, high = ranges[name]
                assert (x >= low).all() and (x <= high).all(), name
    x = jtu.rand_default(r())((3,), np.float32)
    np.testing.assert_array_equal(x, (3 * np.random.RandomState(0).randn(3)).astype(np.float32))
    assert (np.abs(jtu.rand_not_small(r())((99,), np.float32)) >= 10).all()
    assert jtu.rand_nonzero(r())((99,), np.int32).all()
    x = jtu.rand_some_inf_and_nan(r())((99,), np.float32)
    assert np.isnan(x).any() and np.isinf(x).any() and np.isfinite(x).sum() > 50
    x = jtu.rand_some_equal(r())((99,), np.float32)
    assert (x == x[np.argmax(np.unique(x, return_counts=True)[1])]).sum() > 20 or np.unique(x).size < 80
    assert len(set(jtu.rand_unique_int(r())((9,), np.int32).tolist())) == 9
    i = jtu.rand_indices_unique_along_axis(r())(5, (4, 3), 0) % 5
    assert all(len(set(column)) == 4 for column in i.T.tolist())
    assert type(jtu.rand_default(r())(jtu.PYTHON_SCALAR_SHAPE, np.float32)) is float
    assert type(jtu.rand_default(r())(jtu.NUMPY_SCALAR_SHAPE, np.float32)) is np.float32


def test_names_and_dtypes():
    assert jtu.format_shape_dtype_string((2, 3), np.float32) == "float32[2,3]"
    assert jtu.format_shape_dtype_string((), np.float32) == "float32[]"
    assert jtu.format_shape_dtype_string(jtu.NUMPY_SCALAR_SHAPE, np.float32) == "float32"
    assert jtu.format_shape_dtype_string(jtu.PYTHON_SCALAR_SHAPE, np.float32) == "pyfloat32"
    assert jtu.sanitize_test_name("a b[c]") == "a_b_c_"
    names = lambda group: [np.dtype(d).name for d in group]
    assert names(jtu.dtypes.all_floating) == ["bfloat16", "float16", "float32"]
    assert names(jtu.dtypes.numeric) == ["float32", "int32", "uint32", "complex64"]
    assert names(jtu.dtypes.supported([np.float64, np.float32])) == ["float32"]
    with ferrax.enable_x64(True):
        assert names(jtu.dtypes.floating) == ["float32", "float64"]
    with pytest.raises(AttributeError, match="group of dtypes"):
        jtu.dtypes.odd
    assert jtu.tolerance(np.float32) == 1e-6 and jtu.tolerance(np.float32, {np.float32: 0.5}) == 0.5
    assert jtu.join_tolerance(1e-3, {np.float32: 1e-2})[np.dtype(np.float32)] == 1e-2
    assert jtu.device_under_test() == ferrax.default_backend() and jtu.test_device_matches([ferrax.default_backend()])
    assert not jtu.test_device_matches(["tpu"]) and jtu.numpy_version() == tuple(
        map(int, np.__version__.split(".")[:3])
    )
    promoted = jtu.promote_like_jnp(np.add)(np.int8(1), np.float16(2))
    assert promoted.dtype == np.float16


def test_counts():
    f = ferrax.jit(lambda x: x * 2)
    with jtu.count_jit_tracing_cache_miss() as count:
        f(1.0), f(2.0), f(1)
    assert count() == count[0] == 2
    with jtu.count_jit_and_pmap_lowerings() as count:
        f(1.0)
    assert count() == 0 and not ferrax.config.jax_log_compiles
    # a program inside of another is traced, and neither lowered nor compiled by itself
    for counter, programs in ((jtu.count_jit_tracing_cache_miss, 2), (jtu.count_jit_and_pmap_lowerings, 1)):
        with counter() as count:
            ferrax.jit(lambda x: ferrax.jit(lambda y: y * 2)(x) + 1)(1.0)
        assert count() == programs
    with pytest.raises(AssertionError), jtu.assert_num_jit_and_pmap_compilations(0):
        f(jnp.ones(2))
    with jtu.count_device_put() as count:
        ferrax.device_put(1.0)
    assert count() == 1
    with jtu.capture_stdout() as text:
        print("a")
    assert text() == "a\n"


def test_programs_and_meshes():
    program = ferrax.make_jaxpr(ferrax.jit(lambda x: jnp.sin(x) + 1))(1.0)
    assert {"sin", "add"} <= {e.primitive.name for e in jtu.iter_eqns(program.jaxpr)}
    jtu.assert_dot_precision(None, jnp.dot, F32, F32)
    with pytest.raises(AssertionError):
        jtu.assert_dot_precision(ferrax.lax.Precision.HIGHEST, jnp.dot, F32, F32)
    high, preset = ferrax.lax.Precision.HIGHEST, ferrax.lax.DotAlgorithmPreset.F32_F32_F32
    for precision, wanted in ((high, (high, high)), (preset, preset)):
        (equation,) = ferrax.make_jaxpr(lambda x: jnp.dot(x, x, precision=precision))(np.ones((2, 2))).eqns
        assert equation.params["precision"] == wanted
        again = ferrax.make_jaxpr(lambda x: equation.primitive.bind(x, x, **equation.params))(np.ones((2, 2), "f"))
        assert again.eqns[-1].params["precision"] == wanted
    jtu.assert_dot_precision(high, lambda x: jnp.dot(x, x, precision="highest"), F32)
    assert jtu.create_mesh((1,), ("x",)).shape == {"x": 1}
    with pytest.raises(unittest.SkipTest):
        jtu.create_mesh((1000,), ("x",))
    with jtu.with_mesh([("x", 1)]):
        pass
    jtu.check_raises(lambda: jnp.zeros(2)[0, 0], IndexError, "Too many")
    with jtu.set_env(FERRAX_NOTHING="1"):
        pass


def shifted(by):
    """A function of two elements that is off by so much from its derivative."""

    @ferrax.custom_jvp
    def f(x):
        return x * x

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0] + by))
    return f


@pytest.mark.parametrize("key", [np.float32, "float32", jnp.float32, np.dtype("float32")], ids=repr)
def test_tolerances_by_dtype(key):
    x = jnp.array([0.5, 1.5])
    for modes in ("fwd", "rev"):
        check_grads(lambda x: jnp.sin(x), (x,), 1, modes, atol={key: 1e-2}, rtol={key: 1e-2}, eps=1e-2)
    check_grads(shifted(0.05), (x,), 1, "fwd", atol={key: 0.1, np.float64: 0.1}, eps=1e-2)
    for given in (None, 1e-4, {key: 1e-4}, {np.float64: 1.0}, {}):
        with pytest.raises(AssertionError):
            check_grads(shifted(0.05), (x,), 1, "fwd", atol=given, eps=1e-2)


def test_check_close_knows_dtypes_and_shapes():
    one = jnp.ones(3)
    for near in ({}, {"atol": {"float32": 1e-3}}, {"rtol": {np.float32: 1e-3, np.float64: 1e-9}}):
        check_close({"a": one}, {"a": one}, **near)
    check_close(one, one + 1e-3, atol={"float32": 1e-3})
    check_close({"a": np.arange(3.0), "b": (one, 1.0)}, {"a": [0.0, 1.0, 2.0], "b": ([1.0, 1.0, 1.0], 1.0)})
    with pytest.raises(AssertionError):
        check_close(np.arange(3.0), [0.0, 1.0, 3.0])
    with pytest.raises(ValueError):
        check_close([one, one], [one])
    for pair in ((one, one + 1e-3), (one, jnp.ones((1, 3))), (one, jnp.ones(()))):
        with pytest.raises(AssertionError):
            check_close(*pair)


def test_what_tests_say_of_their_classes():
    from ferrax._src import config

    assert [jit._name for jit in jtu.JIT_IMPLEMENTATION] == ["jit", "noop"]
    for jit in jtu.JIT_IMPLEMENTATION:
        assert jit(lambda x: x + 1, static_argnums=())(1) == 2

    def test(self):
        return 7

    assert jtu.device_supports_buffer_donation()(test)(None) == 7
    before = ferrax.device_count()
    jnp.ones(1)
    jtu.request_cpu_devices(before + 7)  # too late: a mesh of so many is what skips
    assert ferrax.device_count() == before
    # a test may be decorated by a setting that is not here; it is what fails
    decorated = config.use_simplified_jaxpr_constants(True)(test)
    with pytest.raises(NotImplementedError, match="jax_use_simplified_jaxpr_constants"):
        decorated(None)
    with pytest.raises(ValueError):
        config.numpy_rank_promotion("perhaps")


def test_what_becomes_of_64_bits_by_name():
    from ferrax._src import config

    modes = config.ExplicitX64Mode
    for mode, becomes in ((modes.WARN, UserWarning), (modes.ERROR, ValueError), (modes.ALLOW, None)):
        with config.explicit_x64_dtypes(mode):
            assert config.explicit_x64_dtypes.value == mode
            if becomes is UserWarning:
                with pytest.warns(UserWarning, match="Explicitly requested dtype"):
                    assert jnp.ones(3, "float64").dtype == np.float32
            elif becomes is ValueError:
                with pytest.raises(ValueError, match="Explicitly requested dtype"):
                    jnp.ones(3, "float64")
            else:
                assert jnp.ones(3, "float64").dtype == np.float64


def test_the_global_value_of_a_setting():
    with ferrax.numpy_rank_promotion("raise"):
        assert ferrax.numpy_rank_promotion.value == "raise"
        assert ferrax.numpy_rank_promotion.get_global() == "allow"
    with pytest.raises(NotImplementedError, match="jax_enable_x64"):
        ferrax.enable_x64.get_global()


def test_harnesses():
    from ferrax._src.internal_test_util import test_harnesses as harnesses

    none = harnesses.Limitation("nowhere", devices="cpu", dtypes=[np.float32])
    cases = [
        harnesses.Harness(
            "sum",
            f"n={n}",
            lambda x, axis, y: x.sum(axis) + y,
            [harnesses.RandArg((n, 2), np.float32), harnesses.StaticArg(1), harnesses.CustomArg(lambda rng: 3.0)],
            dtype=np.float32,
            jax_unimplemented=[none] if n == 2 else [],
            n=n,
        )
        for n in (1, 2, 3)
    ]
    assert [str(c) for c in cases] == ["sum_n_1", "sum_n_2", "sum_n_3"] and cases[0].params == {"n": 1}
    seen = []

    class Tests(jtu.JaxTestCase):
        @harnesses.parameterized(cases)
        def test_sum(self, harness):
            args = harness.args_maker(self.rng())
            assert [getattr(a, "shape", a) for a in args] == [(harness.params["n"], 2), 1, 3.0]
            dynamic = harness.dyn_args_maker(self.rng())
            seen.append(np.shape(harness.dyn_fun(*dynamic)))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert result.wasSuccessful() and seen == [(1,), (3,)]
    with pytest.raises(ValueError, match="no case"):
        harnesses.parameterized(cases, one_containing="product")


def test_sizes_that_are_symbols_inside():
    from ferrax._src import core
    from ferrax._src.export import shape_poly

    a, _ = shape_poly.symbolic_shape("a, b", constraints=("a <= 7",))
    assert shape_poly._bounds_decision(a, shape_poly.BoundsPrecision.BEST) == (1, 7)
    assert shape_poly._bounds_decision(a - a + 3, shape_poly.BoundsPrecision.BEST) == (3, 3)
    # no elements stay none, however far they come apart
    for size in range(4):
        assert core.dilate_dim(a - 1, 2)._evaluate({"a": size + 1}) == core.dilate_dim(size, 2)
    assert [core.dilate_dim(n, 3) for n in (0, 1, 2)] == [0, 1, 4]


def test_dtypes_that_tests_use():
    assert {np.float32, np.int8, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4} <= jtu.supported_dtypes()
    assert np.float64 not in jtu.supported_dtypes()


def test_equal_floats_may_differ_in_the_last_digit():
    jtu.check_eq([np.float32(2), 3], [np.nextafter(np.float32(2), np.float32(1)), 3])
    for xs, ys in (([2.0], [2.00001]), ([2], [3])):
        with pytest.raises(AssertionError):
            jtu.check_eq(xs, ys)
