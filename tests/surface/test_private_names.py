"""Private paths of JAX that tests import from: what they give, and what says that it means nothing here."""

import functools
import importlib
import pickle

import jax
import jax._src.lax.windowed_reductions as jax_windows
import jax._src.public_test_util
import numpy as np
import pytest
from jax._src import core as jax_core, lax_reference as jax_reference
from jax._src.random import prng as jax_prng

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import core as ferrax_core, hashable_array, lax_reference, public_test_util, test_util as jtu, util
from ferrax._src._flags import bool_env, enum_flag, int_flag
from ferrax._src.lax import windowed_reductions
from ferrax._src.random import prng
from ferrax.experimental.key_reuse import _core as key_reuse

NOTHING_HERE = [
    ("ferrax._src.op_shardings", "is_op_sharding_replicated"),
    ("ferrax._src.state.types", "StateEffect get_ref_state_effects"),
    ("ferrax._src.state.discharge", "register_discharge_rule"),
    ("ferrax._src.state.indexing", "NDIndexer Slice"),
    ("ferrax._src.hijax", "Box Ty new_box"),
    ("ferrax._src.debugger.cli_debugger", "run_cli"),
    ("ferrax._src.debugger.core", "Debugger"),
    ("ferrax._src.export.shape_poly", "ShapeConstraints symbolic_scope"),
    ("ferrax._src.compiler", "get_compile_options"),
    ("ferrax._src.cache_key", "get"),
    ("ferrax._src.compilation_cache", "is_cache_used"),
    ("ferrax._src.literals", "TypedNdArray"),
    ("ferrax.experimental.key_reuse._core", "call_impl_with_key_reuse_checks"),
]


@pytest.mark.parametrize(("module", "names"), NOTHING_HERE)
def test_names_without_meaning_are_imported_and_refuse_use(module, names):
    for name in names.split():
        thing = getattr(importlib.import_module(module), name)
        assert not isinstance(3, thing)
        for use in (thing, lambda thing=thing: thing(1, a=2), lambda thing=thing: thing.part):
            with pytest.raises(NotImplementedError, match=rf"{module}.{name}: \w+"):
                use()
        with pytest.raises(AttributeError):
            getattr(importlib.import_module(module), f"no_{name}")


def test_numbers_with_dtypes():
    from ferrax._src.literals import TypedComplex, TypedFloat, TypedInt

    for number, plain in (
        (TypedInt(5, "int8"), 5),
        (TypedFloat(0.5, "float16"), 0.5),
        (TypedComplex(1j, "complex64"), 1j),
    ):
        x = jnp.asarray(number)
        assert number == plain and x == plain and isinstance(number, type(plain))
        assert x.dtype == number.dtype == number.aval.dtype and x.weak_type and number.aval.weak_type
        assert pickle.loads(pickle.dumps(number)).dtype == number.dtype
        assert repr(number) == f"{type(number).__name__}({plain}, dtype={number.dtype})"
    assert (TypedInt(5, "int8") + jnp.ones(2, "int16")).dtype == "int16"
    assert str(TypedFloat(0.5, "float32")) == "0.5"


def test_the_transformation_at_work():
    from ferrax._src.core import trace_ctx

    assert trace_ctx.is_top_level()
    outside, seen = trace_ctx.trace, []

    @ferrax.jit
    def f(x):
        seen.append(trace_ctx.trace)
        assert trace_ctx.trace is seen[0] and not trace_ctx.is_top_level()
        return x + 1

    f(1.0)
    assert seen[0] is not outside and trace_ctx.trace is outside


def test_submodules_come_before_public_modules_of_their_name():
    from ferrax._src.lax import control_flow

    assert control_flow.__name__ == "ferrax._src.lax.control_flow" and control_flow.cummin is lax.cummin


def test_positions_as_halves():
    for shape in ((), (3,), (2, 3), (0, 2)):
        args = (shape,)
        if shape:
            for a, b in zip(prng.iota_2x32_shape(*args), jax_prng.iota_2x32_shape(*args), strict=True):
                assert a.dtype == b.dtype == np.uint32 and np.array_equal(a, b)
        jitted = ferrax.jit(lambda shape=shape: prng.iota_2x32_shape(shape))()
        assert [np.asarray(x).tolist() for x in jitted] == [
            np.zeros(shape, int).tolist(),
            np.arange(int(np.prod(shape))).reshape(shape).tolist(),
        ]
    with pytest.raises(NotImplementedError, match=r"2\*\*32"):
        prng.iota_2x32_shape((2**33,))


def test_classes_of_keys():
    key = ferrax.random.key(0)
    assert isinstance(key, prng.PRNGKeyArray) and isinstance(key.dtype, prng.KeyTy)
    assert prng.random_bits_p.name == "random_bits"


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool", "bfloat16"])
@pytest.mark.parametrize("select", ["ge_p", "le_p"])
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [((2, 2), (1, 1), ((0, 0), (0, 0))), ((2, 3), (2, 1), ((1, 0), (1, 2))), ((1, 3), (1, 3), ((0, 1), (0, 0)))],
)
def test_choices_in_windows_like_jax(dtype, select, window, strides, padding):
    rng = np.random.RandomState(0)
    dtype = jnp.dtype(dtype)
    x = (rng.permutation(20).reshape(4, 5) - 5).astype(dtype)
    ones = (1, 1)
    ours = windowed_reductions._select_and_gather_add
    theirs = jax_windows._select_and_gather_add
    if dtype.kind != "b":
        t = rng.randint(-8, 8, (4, 5)).astype(dtype)
        sizes = (window, strides, padding, ones, ones)
        got = ours(t, x, getattr(lax, select), *sizes)
        want = theirs(t.astype(np.float32), x.astype(np.float32), getattr(jax.lax, select), *sizes)
        assert got.dtype == dtype and np.array_equal(np.asarray(got, float), np.asarray(want, float))
    shape = lax.reduce_window_shape_tuple(x.shape, window, strides, padding)
    source = rng.randint(-3, 3, shape).astype(dtype)
    if padding[0] == (0, 0):
        args = (source, x)
        got = windowed_reductions._select_and_scatter_add(*args, getattr(lax, select), window, strides, padding)
        want = jax_windows._select_and_scatter_add(*args, getattr(jax.lax, select), window, strides, padding)
        assert got.dtype == want.dtype and np.array_equal(np.asarray(got, float), np.asarray(want, float))


def test_choices_in_windows_by_other_comparisons_are_refused():
    x = np.ones((2, 2), np.float32)
    with pytest.raises(NotImplementedError, match="by lt"):
        windowed_reductions._select_and_scatter_add(x, x, lax.lt_p, (1, 1), (1, 1), ((0, 0), (0, 0)))


def test_reference_operations_like_jax():
    rng = np.random.RandomState(1)
    f = rng.randn(3, 4).astype(np.float32)
    i = rng.randint(-9, 9, (3, 4)).astype(np.int16)
    j = np.where(i == 0, 2, i[::-1] | 1).astype(np.int16)
    cases = [
        *[
            (name, (f,))
            for name in (
                "neg",
                "exp",
                "sin",
                "asinh",
                "atan",
                "cosh",
                "sort",
                "real",
                "square",
                "logistic",
                "conj",
                "erf",
                "round",
                "tanh",
            )
        ],
        *[(name, (np.abs(f) + 1,)) for name in ("lgamma", "rsqrt", "digamma", "bessel_i0e")],
        *[(name, (i, j)) for name in ("add", "sub", "mul", "div", "rem", "max", "min", "eq", "lt", "bitwise_xor")],
        *[(name, (i,)) for name in ("bitwise_not", "sign", "abs")],
        *[(name, (i.astype(np.int32).view(np.uint32),)) for name in ("population_count", "clz")],
        ("complex", (f, f)),
        ("div", (f, f + 3)),
        ("clamp", (np.float32(-0.5), f, np.float32(0.5))),
        ("concatenate", ([f, f], 1)),
        ("broadcast", (f, (2,))),
        ("broadcast_in_dim", (f, (3, 2, 4), (0, 2))),
        ("reshape", (f, (2, 6), (1, 0))),
        ("rev", (f, (0,))),
        ("pad", (f, np.float32(7), ((1, -1, 2), (-2, 3, 0)))),
        ("slice", (f, (0, 1), (3, 4), (2, 1))),
        ("dynamic_slice", (f, (1, 2), (2, 2))),
        ("dynamic_update_slice", (f, np.zeros((2, 2), np.float32), (1, 1))),
        ("mulhi", (i, j * 999)),
        ("bitcast_convert_type", (f, np.int32)),
        ("reduce", (i, np.int16(3), jax.lax.max, (1,))),
        ("reduce", (f, np.float32(0), jax.lax.add, (0, 1))),
        ("reduce_window", (f, np.float32(1), jax.lax.mul, (2, 2), (1, 2), "SAME", (2, 1))),
        ("conv", (f[None, None], f[None, None, :2, :2], (2, 1), "SAME")),
        (
            "conv_general_dilated",
            (
                f[None, ..., None],
                f[:2, :2, None, None],
                (1, 2),
                ((0, 1), (2, 1)),
                (1, 2),
                (2, 1),
                ("NHWC", "HWIO", "NHWC"),
            ),
        ),
        ("dot_general", (f.reshape(2, 2, 3), f.reshape(3, 2, 2), (((2,), (0,)), ((0,), (1,))))),
        ("ragged_dot", (f, f.reshape(1, 4, 3).repeat(2, 0), np.int32([1, 2]))),
    ]
    for name, args in cases:
        got, want = getattr(lax_reference, name)(*args), getattr(jax_reference, name)(*args)
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=name)
        assert got.dtype == want.dtype and got.shape == want.shape, name
    assert lax_reference.padtype_to_pads((9,), (4,), (2,), "SAME") == [(1, 2)]
    for name, args in [("top_k", (i, 2)), ("sort_key_val", (f, i, 0))]:
        for got, want in zip(getattr(lax_reference, name)(*args), getattr(jax_reference, name)(*args), strict=True):
            assert got.dtype == want.dtype and np.array_equal(got, want), name
    assert lax_reference.shift_right_logical(np.int8([-1]), np.int8(4)).tolist() == [15]


def test_settings_of_test_runs(monkeypatch):
    monkeypatch.setenv("CASES_X", "7")
    monkeypatch.setenv("CASES_Y", "maybe")
    assert int_flag("cases_x", 3).value == 7 and int_flag("cases_z", 3, "how many").value == 3
    assert bool_env("CASES_Z", True) is True
    with pytest.raises(ValueError, match="maybe"):
        bool_env("CASES_Y", True)
    with pytest.raises(ValueError, match="one of a, b"):
        enum_flag("cases_y", "a", enum_values=["a", "b"]).value
    assert jtu.NUM_GENERATED_CASES.value == 10


def test_samples_of_the_complex_plane():
    grid = jtu.complex_plane_sample(np.complex64, 2, 3)
    assert grid.shape == (9, 7) and grid.dtype == np.complex64
    big, tiny = np.finfo(np.float32).max, np.finfo(np.float32).tiny
    np.testing.assert_allclose(grid.real[4], [-np.inf, -big, -tiny, 0, tiny, big, np.inf], rtol=1e-5)
    assert (np.diff(grid.imag[:, 3]) > 0).all() and grid.imag[4, 3] == 0 and np.isposinf(grid.imag[-1, 3])
    assert jtu.complex_plane_sample(np.complex128, 0).shape == (3, 3)


def test_helpers_that_mean_nothing_refuse():
    for block in (jtu.count_internal_device_puts, jtu.collect_lowered_jaxprs, jtu.count_events("trace")):
        with pytest.raises(NotImplementedError, match=r"count|collect"), block():
            pass
    for reference in (jtu.numpy_with_mpmath, jtu.vectorize_with_mpmath):
        with pytest.raises(NotImplementedError, match="arbitrary precision"):
            reference(None)


def test_programs_of_a_derivative():
    forward, backward = jtu.fwd_bwd_jaxprs(jnp.sin, np.ones(3, np.float32))
    (kept,) = [v.aval.shape for v in backward.jaxpr.invars[:1]]
    assert kept == (3,) and {e.primitive.name for e in forward.jaxpr.eqns} >= {"sin", "cos"}


def test_changed_settings_are_found():
    with jtu.assert_global_configs_unchanged():
        jnp.ones(1)
    before = ferrax.config.jax_numpy_rank_promotion
    try:
        with pytest.raises(AssertionError, match="jax_numpy_rank_promotion"), jtu.assert_global_configs_unchanged():
            ferrax.config.update("jax_numpy_rank_promotion", "warn" if before != "warn" else "raise")
    finally:
        ferrax.config.update("jax_numpy_rank_promotion", before)


def test_hashable_arrays():
    a, b = hashable_array.HashableArray([1.0, np.nan]), hashable_array.HashableArray(np.array([1.0, np.nan]))
    assert a == b and hash(a) == hash(b) and a != hashable_array.HashableArray([1.0, 2.0]) and a != 1


def test_tolerances_like_jax():
    theirs = jax._src.public_test_util.default_tolerance()
    ours = public_test_util.default_tolerance()
    for dtype, value in ours.items():
        assert theirs[dtype] == value, dtype
    for dtype, value in public_test_util.default_gradient_tolerance.items():
        assert jax._src.public_test_util.default_gradient_tolerance[dtype] == value, dtype
    drawn = public_test_util.rand_like(np.random.RandomState(0), np.ones(3, np.complex64))
    assert drawn.dtype == np.complex64 and (drawn.imag != 0).all()


def test_a_lock_of_readers_and_writers():
    lock = util.Mutex()
    lock.reader_lock()
    lock.reader_lock()
    lock.assert_reader_held()
    lock.reader_unlock()
    lock.reader_unlock()
    lock.writer_lock()
    with pytest.raises(AssertionError):
        lock.assert_reader_held()
    lock.writer_unlock()


def test_keys_used_and_fresh():
    with ferrax.debug_key_reuse(True):
        key = ferrax.random.key(0)
        key_reuse.assert_unconsumed(key)
        with pytest.raises(AssertionError):
            key_reuse.assert_consumed(key)
        key_reuse.consume(key)
        key_reuse.assert_consumed(key)
        with pytest.raises(ferrax.errors.KeyReuseError):
            key_reuse.consume(key)


@pytest.mark.parametrize("value", [lambda jax: jax.random.split(jax.random.key(0)), lambda jax: jax.numpy.ones(3)])
def test_types_of_the_numbers_that_stand_for_values(value):
    got, wanted = (
        core.physical_aval(library.typeof(value(library))) for core, library in [(ferrax_core, ferrax), (jax_core, jax)]
    )
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)


def test_classes_and_names_that_libraries_import():
    from ferrax import lib
    from ferrax._src import cloud_tpu_init, numpy as private_numpy
    from ferrax._src.lax.lax import DTypeLike
    from ferrax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef
    from ferrax._src.numpy.index_tricks import CClass, RClass
    from ferrax._src.pallas import cost_estimate
    from ferrax._src.random import Shape

    assert isinstance(jnp.c_, CClass) and isinstance(jnp.r_, RClass) and not isinstance(jnp.r_, CClass)
    assert isinstance(jnp.ones(2).at, _IndexUpdateHelper) and isinstance(jnp.ones(2).at[0], _IndexUpdateRef)
    assert ferrax_core.safe_map(abs, [-1]) == [1] and ferrax_core.safe_zip([1], [2]) == [(1, 2)]
    assert ferrax_core.full_lower(3) == 3 and lib.__version__ == ferrax.__version__
    assert DTypeLike is ferrax.typing.DTypeLike and Shape
    assert private_numpy.array is jnp.array
    assert cost_estimate.estimate_cost(jnp.exp, jnp.ones(3)).transcendentals == 3
    assert cloud_tpu_init.cloud_tpu_init() is None and cloud_tpu_init.running_in_cloud_tpu_vm is False


@pytest.mark.parametrize("library", [ferrax, jax])
def test_updates_of_types_that_hold_arrays_extend_those_of_arrays(library):
    # as of a quantity, an array with a unit, whose `x.at[i].set(y)` keeps the unit
    module = importlib.import_module(f"{library.__name__}._src.numpy.array_methods")

    class Ref(module._IndexUpdateRef):
        def set(self, values, **kwargs):
            return [super().set(-values, **kwargs)]

    class Helper(module._IndexUpdateHelper):
        def __getitem__(self, index):
            return Ref(self.array, index)

    at = Helper(np.arange(3.0, dtype=np.float32))
    assert repr(at).startswith("_IndexUpdateHelper(") and repr(at[1]).startswith("_IndexUpdateRef(")
    assert at[1].index == 1 and at[1].array is at.array
    (changed,) = at[1].set(5.0, mode="drop")
    assert isinstance(changed, library.Array) and changed.tolist() == [0, -5, 2]
    assert at[2].get() == 2 and at[:2].apply(library.numpy.negative).tolist() == [0, -1, 2]
    for name in ("add", "mul", "multiply", "power", "divide", "subtract", "min", "max"):
        assert np.array_equal(getattr(at[1:], name)(2.0), getattr(library.numpy.asarray(at.array).at[1:], name)(2.0))
    with pytest.raises(TypeError):
        module._IndexUpdateRef("text", 0).set(1)


def test_dtypes_in_annotations_take_the_type_of_their_elements():
    from ferrax._src import typing as private_typing

    assert private_typing.DType is np.dtype and private_typing.DType[np.float32]


def test_checkpoints_by_their_other_names():
    from ferrax._src.ad_checkpoint import checkpoint_name3, remat3, saved_residuals

    named = ferrax.checkpoint_policies.save_only_these_names("kept")
    f = lambda x: jnp.sin(checkpoint_name3("kept", jnp.sin(x)))
    assert len(saved_residuals(remat3(f, named), jnp.ones(3))) == 2
    assert len(saved_residuals(remat3(f), jnp.ones(3))) == 1
    powers = remat3(static_argnames="n")(lambda x, n: x**n)
    assert float(ferrax.grad(lambda x: powers(x, n=3))(2.0)) == 12


def test_programs_as_operations():
    from ferrax._src.lax.eval_jaxpr import eval_jaxpr_p

    program = ferrax.make_jaxpr(lambda x: [jnp.sin(x) * 2])(1.0)
    run = lambda x: eval_jaxpr_p.bind(x, jaxpr=program)[0]
    for transform in (lambda f: f, ferrax.jit, ferrax.grad, ferrax.vmap):
        x = jnp.arange(3.0) if transform is ferrax.vmap else 0.5
        np.testing.assert_allclose(transform(run)(x), transform(lambda x: jnp.sin(x) * 2)(x))
    assert [e.primitive.name for e in ferrax.make_jaxpr(run)(1.0).eqns] == ["sin", "mul"]


def test_calls_of_wrapped_functions():
    from ferrax._src import core, linear_util as lu

    wrapped = lu.wrap_init(lambda x: [x + 1], debug_info=ferrax.api_util.debug_info("test", lambda x: [x], (1,), {}))
    assert core.call(wrapped, 2)[0] == core.call(2, subfuns=(wrapped,), name="f")[0] == 3


def test_what_pullbacks_give_has_one_class():
    from ferrax._src import api

    _, pullback = ferrax.vjp(jnp.sin, 3.0)
    assert isinstance(pullback.args_res[0], api.NotNeeded)
    assert (api.GradRef, api.GradValue, api.DontWant) == (ferrax.ad.GradRef, ferrax.ad.GradValue, ferrax.ad.DontWant)


@pytest.mark.parametrize("value", [1, 1.0, True, 1j, np.float32(1), np.zeros((2, 3), np.int8)])
def test_arguments_of_jitted_functions_as_signatures(value):
    from jaxlib import _jax

    from ferrax._src.lib import jax_jit

    ours, theirs = (m._ArgSignatureOfValue(value, False) for m in (jax_jit, _jax.jax_jit))
    assert (ours.dtype, ours.shape, ours.weak_type) == (theirs.dtype, theirs.shape, theirs.weak_type)


def test_parts_are_put_on_devices_together():
    from ferrax._src.interpreters import pxla

    device = ferrax.devices()[0]
    one = ferrax.sharding.SingleDeviceSharding(device)
    x = np.arange(4, dtype=np.float32)
    put = pxla.batched_device_put(ferrax.typeof(x), one, [x], [device])
    assert put.committed and put.sharding == one and put.tolist() == x.tolist()
    assert not pxla.batched_device_put(ferrax.typeof(x), one, [x], [device], committed=False).committed
    mesh = ferrax.sharding.Mesh(ferrax.devices()[:1], "x")
    rows = ferrax.sharding.NamedSharding(mesh, ferrax.P("x"))
    assert pxla.batched_device_put(ferrax.typeof(x), rows, [x], [device]).sharding == rows


@pytest.mark.parametrize("axis", [0, 1])
def test_where_along_a_mapped_axis_an_extreme_is(axis):
    from ferrax._src.lax import parallel

    x = jnp.asarray([[3, 1, 2], [0, 5, 9], [0, 5, 9]])
    for find, same in ((parallel.pargmax, jnp.argmax), (parallel.pargmin, jnp.argmin)):
        rows = ferrax.vmap(lambda row, find=find: find(row, "i"), in_axes=axis, out_axes=None, axis_name="i")
        assert rows(x).tolist() == ferrax.jit(rows)(x * 1.5).tolist() == same(x, axis).tolist()
        with pytest.raises(TypeError, match="along one axis"):
            ferrax.vmap(lambda row, find=find: find(row, ("i",)), axis_name="i")(x)


def test_backends_of_devices_and_dtypes_of_arrays():
    from ferrax._src import dtypes, util, xla_bridge

    device = ferrax.devices()[0]
    assert xla_bridge.get_device_backend(device).platform == xla_bridge.get_device_backend().platform == device.platform
    assert xla_bridge.process_indices() == xla_bridge.host_ids() == [0]
    dtypes.check_valid_dtype(np.dtype("float32"))
    dtypes.check_valid_dtype(ferrax.dtypes.float0)
    with pytest.raises(TypeError, match="Dtype object is not a valid JAX array type"):
        dtypes.check_valid_dtype(np.dtype("O"))
    inner = test_backends_of_devices_and_dtypes_of_arrays
    assert util.fun_qual_name(functools.partial(functools.partial(inner))) == inner.__name__
    assert util.fun_qual_name(lambda: 0) == f"{inner.__name__}.<locals>.<lambda>"
