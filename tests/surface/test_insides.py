"""Modules under JAX's private paths: they are there, have what they say, and do it."""

import importlib
import inspect
import pkgutil
import warnings

import numpy as np
import pytest

import ferrax as jax
import ferrax._src
import ferrax.numpy as jnp
from ferrax._src import api_util, config, core, deprecations, dtypes, monitoring, util
from ferrax._src.numpy.util import check_arraylike, promote_dtypes, promote_dtypes_inexact

MODULES = sorted(m.name for m in pkgutil.walk_packages(ferrax._src.__path__, "ferrax._src."))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_imported_and_knows_what_it_lacks(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert getattr(module, public) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name


@pytest.mark.parametrize(
    ("module", "name", "public"),
    [
        ("api", "jit", jax.jit),
        ("api", "ShapeDtypeStruct", jax.ShapeDtypeStruct),
        ("lax.lax", "add", jax.lax.add),
        ("lax.control_flow", "scan", jax.lax.scan),
        ("lax.control_flow.loops", "while_p", jax.lax.while_p),
        ("lax.slicing", "GatherScatterMode", jax.lax.GatherScatterMode),
        ("numpy.lax_numpy", "arange", jnp.arange),
        ("numpy.linalg", "svd", jnp.linalg.svd),
        ("nn.functions", "relu", jax.nn.relu),
        ("sharding_impls", "NamedSharding", jax.sharding.NamedSharding),
        ("typing", "Array", jax.Array),
        ("errors", "UnexpectedTracerError", jax.errors.UnexpectedTracerError),
    ],
)
def test_names_are_the_public_ones(module, name, public):
    assert getattr(importlib.import_module(f"ferrax._src.{module}"), name) is public


def test_settings_are_objects_with_values():
    assert config.enable_x64.value is jax.config.jax_enable_x64
    assert config.use_direct_linearize.value is True
    with config.random_seed_offset(3):
        assert config.random_seed_offset.value == jax.config.jax_random_seed_offset == 3
    with config.disable_jit(True):
        assert config.disable_jit.value
    assert config._read("jax_numpy_rank_promotion") == jax.config.jax_numpy_rank_promotion
    with pytest.raises(AttributeError, match="no_such_setting"):
        config.no_such_setting


def test_lists_are_split_and_put_together_again():
    flags, values = [True, False, True], [1, 2, 3]
    assert util.partition_list(flags, values) == ([2], [1, 3])
    assert util.merge_lists(flags, [2], [1, 3]) == values
    assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
    assert util.unflatten(util.concatenate([[1], [2, 3]]), [1, 2]) == [[1], [2, 3]]
    assert util.unzip2([]) == ((), ())
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
    assert util.subvals(values, [(0, 9)]) == (9, 2, 3)
    assert util.subs_list([None, 0], [7], [8]) == [8, 7]
    assert util.safe_zip([1, 2], [3, 4]) == [(1, 3), (2, 4)]
    for wrong in (
        lambda: util.partition_list([True], values),
        lambda: util.merge_lists([True, False], [1], []),
        lambda: util.split_list_checked(values, [1]),
        lambda: util.unflatten(values, [1]),
    ):
        with pytest.raises(AssertionError):
            wrong()
    with pytest.raises(ValueError, match=r"safe_zip\(\) argument 1 has length 1 but argument 0 has length 2"):
        util.safe_zip([1, 2], [1])
    with pytest.raises(ValueError, match="argument 2 is shorter than argument 1"):
        util.safe_map(lambda a, b: a, [1, 2], [1])


def test_axes_are_counted_from_the_front():
    assert util.canonicalize_axis(-1, 3) == 2
    assert util.canonicalize_axis_tuple(None, 2) == (0, 1)
    with pytest.raises(ValueError, match="axis 3 is out of bounds for array of dimension 2"):
        util.canonicalize_axis(3, 2)
    with pytest.raises(ValueError, match="repeated axis"):
        util.canonicalize_axis_tuple((0, -2), 2)


def test_caches_keep_results_by_arguments_and_settings():
    calls = []

    @util.cache()
    def f(x):
        calls.append(x)
        return x

    assert [f(1), f(1), len(calls)] == [1, 1, 1]
    with jax.numpy_rank_promotion("raise"):
        f(1)
    assert len(calls) == 2

    class Key:
        pass

    @util.weakref_lru_cache
    def g(key, x):
        calls.append(key is not None)
        return x

    key = Key()
    assert [g(key, 1), g(key, 1), g(Key(), 1)] == [1, 1, 1]
    assert len(calls) == 4


def test_hashable_functions_compare_by_code_and_closure():
    functions = [util.HashableFunction(lambda x: x, (n,)) for n in (1, 1, 2)]
    assert functions[0] == functions[1] != functions[2]
    assert len(set(functions)) == 2


def test_deprecations_warn_and_raise_once_accelerated():
    with pytest.raises(ValueError, match="not registered"):
        deprecations.accelerate("ferrax-test")
    deprecations.register("ferrax-test")
    try:
        with pytest.warns(DeprecationWarning, match="goes away"):
            deprecations.warn("ferrax-test", "goes away", stacklevel=1)
        deprecations.accelerate("ferrax-test")
        assert deprecations.is_accelerated("ferrax-test")
        with pytest.raises(ValueError, match="goes away"):
            deprecations.warn("ferrax-test", "goes away", stacklevel=1)
    finally:
        deprecations.unregister("ferrax-test")
    lookup = deprecations.deprecation_getattr("m", {"old": ("m.old is old", 3), "gone": ("m.gone is gone", None)})
    with pytest.warns(DeprecationWarning, match=r"m\.old is old"):
        assert lookup("old") == 3
    for name, text in (("gone", "m.gone is gone"), ("never", "module 'm' has no attribute 'never'")):
        with pytest.raises(AttributeError, match=text):
            lookup(name)


def test_dtypes_answer_as_jax_does():
    assert dtypes.dtype(1.0) == jnp.result_type(float)
    assert dtypes.to_inexact_dtype("int8") == jnp.sin(jnp.int8(1)).dtype
    assert dtypes.to_complex_dtype("float32") == np.dtype("complex64")
    assert dtypes.to_numeric_dtype(bool) == jnp.result_type(int)
    assert [dtypes.short_dtype_name(np.dtype(d)) for d in ("float32", "uint8", jnp.bfloat16, "bool")] == [
        *("f32", "u8", "bf16", "bool")
    ]
    assert dtypes.supports_inf("float32")
    assert not dtypes.supports_inf(jnp.float8_e4m3fn)
    assert dtypes.is_weakly_typed(1)
    assert not dtypes.is_weakly_typed(np.float32(1))


def test_arguments_are_promoted_together():
    a, b = promote_dtypes(np.int8(1), 2.0)
    assert (a.dtype, b.dtype) == (jnp.result_type(np.int8(1), 2.0),) * 2
    (c,) = promote_dtypes_inexact(3)
    assert c.dtype == jnp.result_type(float)
    assert c.weak_type
    with pytest.raises(TypeError, match="f requires ndarray or scalar arguments, got <class 'str'> at position 1"):
        check_arraylike("f", 1, "x")


def test_argument_numbers_and_names_are_completed():
    def f(x, /, y, *, z=1):
        pass

    signature = inspect.signature(f)
    assert api_util.infer_argnums_and_argnames(signature, None, None) == ((), ())
    assert api_util.infer_argnums_and_argnames(signature, (0, 1), None) == ((0, 1), ("y",))
    assert api_util.infer_argnums_and_argnames(signature, None, ("y", "z")) == ((1,), ("y", "z"))
    assert api_util.infer_argnums_and_argnames(signature, 0, "z") == ((0,), ("z",))
    assert api_util.resolve_argnums(int, None, None, None, None, None) == ((), (), (), ())


def test_shapes_are_tuples_of_integers():
    assert core.canonicalize_shape([np.int32(2), 3]) == (2, 3)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
        core.canonicalize_shape([1.5])
    assert core.is_empty_shape((0, 2))
    assert core.typematch(jax.typeof(1.0), jax.typeof(jnp.float32(1))) == (not jax.config.jax_enable_x64)


def test_listeners_can_be_listed():
    def listener(*_, **__):
        pass

    jax.monitoring.register_event_listener(listener)
    try:
        assert listener in monitoring.get_event_listeners()
        assert listener not in monitoring.get_scalar_listeners()
    finally:
        jax.monitoring.unregister_event_listener(listener)


def test_warnings_are_ignored_by_text():
    from ferrax._src.test_warning_util import ignore_warning

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ignore_warning(message="fine", category=UserWarning):
            warnings.warn("fine, this one", UserWarning, stacklevel=1)
            with pytest.raises(UserWarning, match="other"):
                warnings.warn("other", UserWarning, stacklevel=1)


@pytest.mark.parametrize("tree", [None, [1], {"a": 1.0}, ()])
def test_trees_have_no_type(tree):
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        jax.typeof(tree)


def test_the_cache_on_disk_is_the_public_one():
    from ferrax._src import compilation_cache
    from ferrax.experimental.compilation_cache import compilation_cache as public

    assert compilation_cache.set_cache_dir is public.set_cache_dir
    assert compilation_cache.is_persistent_cache_enabled() == bool(jax.config.jax_compilation_cache_dir)
