"""Modules under JAX's private paths: they are there, have what they say, and do it."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import warnings

import jax._src.util as jax_util
import numpy as np
import pytest

import ferrax as jax
import ferrax._src
import ferrax.numpy as jnp
from ferrax._src import api_util, config, core, deprecations, dtypes, monitoring, util
from ferrax._src.numpy.util import check_arraylike, promote_dtypes, promote_dtypes_inexact, promote_dtypes_numeric

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
        ("array", "make_array_from_callback", jax.make_array_from_callback),
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
    with pytest.raises(ValueError, match=r"foreach\(\) argument 2 is longer than argument 1"):
        util.foreach(lambda a, b: a, [1], [1, 2])
    with pytest.raises(TypeError, match=r"foreach\(\) requires at least 2 arguments"):
        util.foreach(print)


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


def test_weak_caches_count_and_forget():
    class Key:
        pass

    f, keys = util.weakref_lru_cache(lambda key, x, y=0: x, maxsize=4), [Key(), Key()]
    for key in keys:
        assert [f(key, 1), f(key, 1), f(key, 1, y=2)] == [1, 1, 1]
    assert str(f.cache_info()) == "WeakrefLRUCache(hits=2, misses=4, maxsize=4, currsize=4)"
    f.evict_weakref(keys[0])
    assert [key[0]() for key in f.cache_keys()] == [keys[1]] * 2
    del keys[1], key
    assert f.cache_info() == (2, 4, 4, 0) and f(keys[0], 1) == 1
    f.cache_clear()
    assert f.cache_info() == (0, 0, 4, 0)


def test_caches_that_keep_no_argument_alive():
    import gc

    class Key:
        def __init__(self, x):
            self.x = x

        def __eq__(self, other):
            return self.x == other.x

        def __hash__(self):
            return hash(self.x)

    def info(f):
        found = f.cache_info()
        return found.hits, found.misses, found.maxsize, found.currsize

    def results(of):
        calls = []

        def count(*args, **kwargs):
            calls.append(args)
            return len(calls)

        of.weakref_cache_key_types.add(Key)
        f, one, two = of.multi_weakref_lru_cache(count, maxsize=4), Key(1), Key(2)
        found = [f(one), f(Key(1)), f(two, one), f((one, 2)), f((one, 2)), f({"a": one}), f(k=one), f(frozenset("a"))]
        found.append(info(f))
        calls.clear()
        del one
        gc.collect()
        found.append(info(f))
        found += [f(two), f(two), info(f)]
        f.cache_clear()
        with pytest.raises(TypeError):
            f([1])
        return [*found, f.cache_info().currsize]

    assert results(util) == results(jax_util)


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
    assert dtypes.to_numeric_dtype("uint8") == np.dtype("uint8")
    for wide in (False, True):
        with jax.enable_x64(wide):
            assert dtypes.to_numeric_dtype(bool) == np.dtype("int32")
            for integers, floats in (
                ("bool", "float32"),
                ("int32", "float32"),
                (jnp.int4, "float32"),
                ("uint64", "float64"),
            ):
                assert dtypes.to_inexact_dtype(integers) == np.dtype(floats)
            assert dtypes.to_complex_dtype("int32") == np.dtype("complex64")
            assert promote_dtypes_inexact(np.int32(1))[0].dtype == jnp.sin(np.int32(1)).dtype == np.dtype("float32")
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
    d, e = promote_dtypes_numeric(True, np.array([False]))
    assert d.dtype == e.dtype == np.dtype("int32")
    assert e.tolist() == [0]
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


def test_places_where_trees_differ():
    from ferrax._src import tree_util
    from ferrax._src.tree_util import broadcast_prefix, equality_errors, prefix_errors

    def texts(prefix, full):
        return [str(e("in_axes")) for e in prefix_errors(prefix, full)]

    assert texts((1, (2, 3)), ([1, 2], (3, 4))) == []
    assert texts(((1,), (2,)), ([3], [4]))[1].startswith(
        "pytree structure error: different types at key path\n    in_axes[1]\n"
        "At that key path, the prefix pytree in_axes has a subtree of type\n    <class"
    )
    assert texts([(1,)], [(1, 2)])[0].startswith("pytree structure error: different lengths of tuple at key path")
    assert texts({"a": 1}, {"a": 1, "b": 2})[0].endswith("the symmetric difference on key sets is\n    b")
    assert "different pytree metadata" in texts({1: 2}, {3: 4})[0]
    assert texts(None, 1) and not texts(1, None)
    ((path, left, right, why),) = equality_errors([(1,)], [(1, 2)])
    assert jax.tree_util.keystr(path) == "[0]" and (left, right) == ("tuple of length 1", "tuple of length 2")
    assert why == "the lengths do not match"
    ((*_, why),) = equality_errors({"a": 1}, {"a": 1, "b": 2})
    assert why.endswith("with the symmetric difference of key sets: {'b'}")
    assert list(equality_errors((1, None), (2, None))) == []
    pairs = [((1, [2]), {"a": 1}), ([1], [1, 2]), ({}, {"a": 1}), ({"a": 1}, {"b": 1}), ([1], [(2,)]), (None, 1)]
    theirs = pytest.importorskip("jax._src.tree_util")
    for one, other in pairs:
        same = [[str(e("x")) for e in module.prefix_errors(one, other)] for module in (tree_util, theirs)]
        assert same[0] == same[1]
        same = [
            [
                tuple(map(str, e))
                for e in module.equality_errors_pytreedef(module.tree_structure(one), module.tree_structure(other))
            ]
            for module in (tree_util, theirs)
        ]
        assert same[0] == same[1]
    assert tree_util.treedef_is_strict_leaf(jax.tree.structure(1))
    assert not tree_util.treedef_is_strict_leaf(jax.tree.structure(None))
    assert tree_util.generate_key_paths({"a": 1}) == [((jax.tree_util.DictKey("a"),), 1)]
    assert tree_util.tree_leaves_checked(jax.tree.structure([0, 0]), [1, 2]) == [1, 2]
    with pytest.raises(AssertionError):
        tree_util.tree_leaves_checked(jax.tree.structure([0, 0]), [1])
    assert broadcast_prefix((1, 2), ([3, 4], 5)) == [1, 1, 2]


def test_states_of_references():
    from ferrax._src.state.discharge import run_state
    from ferrax._src.state.primitives import ref_addupdate, ref_get, ref_set, ref_swap
    from ferrax._src.state.types import shaped_array_ref

    def body(refs):
        x, y = refs
        ref_addupdate(x, (0,), ref_get(y, 1))
        ref_set(y, (0,), ref_swap(x, 1, 9.0))

    x, y = jax.jit(run_state(body))((jnp.arange(2.0), jnp.array([3.0, 4.0])))
    np.testing.assert_array_equal(x, [4.0, 9.0])
    np.testing.assert_array_equal(y, [1.0, 4.0])
    assert str(shaped_array_ref((2,), "float32")) == "Ref{float32[2]}"


def test_meshes_in_use():
    from ferrax._src import mesh

    assert mesh.get_concrete_mesh().empty and mesh.thread_resources.env.physical_mesh.empty
    assert mesh.get_abstract_mesh() == mesh.empty_abstract_mesh
    used = jax.make_mesh((1,), ("x",))
    with jax.set_mesh(used):
        assert mesh.get_concrete_mesh() == used


def test_what_programs_keep_is_listed():
    from ferrax._src.ad_checkpoint import saved_residuals

    kept = saved_residuals(lambda x, y: jnp.sin(x) * y, 2.0, jnp.ones(3))
    assert {aval.shape for aval, _ in kept} == {(), (3,)}
    assert kept[0][1] == "from the argument y"
    assert any(words.startswith("output of cos from ") for _, words in kept)


@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap, jax.jit])
def test_constants_are_in_the_order_of_their_use(transform):
    array, other = jnp.arange(3.0), jnp.ones((2, 1))
    found = []

    def traced(f):
        """What a program gives, whose constants are of two kinds, less what its function gives."""
        program = jax.make_jaxpr(f)(1.0)
        found.append([np.shape(c) for c in program.consts])
        assert found[-1] == [v.aval.shape for v in program.jaxpr.constvars]
        closed = [
            jax.extend.core.ClosedJaxpr(program.jaxpr, c) for c in (program.consts, [0 * c for c in program.consts])
        ]
        first, zeros = (jax.extend.core.jaxpr_as_fun(c)(2.0)[0] for c in closed)
        again = jax.core.eval_jaxpr(program.jaxpr.replace(), program.consts, 2.0)[0]
        return first - f(2.0), zeros, again - f(2.0)

    def both(y):
        return traced(lambda x: x * array + y * other), traced(lambda x: y * x * array - other)

    for difference in jax.tree.leaves(transform(both)(jnp.full(1, 5.0) if transform is jax.vmap else jnp.float32(5))):
        assert not np.any(difference)
    assert found == [[(3,), (), (2, 1)], [(), (3,), (2, 1)]]


def test_members_of_programs_are_there_before_anything_is_imported():
    lines = (
        "import ferrax",
        "program = ferrax.make_jaxpr(lambda x: 2 * x)(1.0)",
        "print(program.jaxpr.debug_info.func_name, program.eqns[0].ctx.compute_type, program.replace() == program)",
        "print(hasattr(program, 'no_such_member'), hasattr(program.eqns[0].invars[1], 'no_such_member'))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["<lambda>", "None", "True", "False", "False"], done.stderr


def test_arrays_show_what_they_hold():
    x = jnp.arange(3.0)
    assert isinstance(x._value, np.ndarray) and not x._value.flags.writeable
    np.testing.assert_array_equal(x._value, [0.0, 1.0, 2.0])
    (part,) = x._arrays
    assert part.sharding == x.sharding == x._sharding

    def untold(x):
        with pytest.raises(AttributeError, match="Tracer has no attribute _value"):
            x._value
        return x * 2

    for transformed in (ferrax.jit(untold), ferrax.vmap(untold), ferrax.grad(lambda x: untold(x).sum())):
        transformed(x)


def test_dtypes_of_absolute_values():
    from ferrax._src.lax.lax import _complex_basetype

    for dtype, real in (("complex64", "float32"), ("complex128", "float64"), ("float16", "float16")):
        assert _complex_basetype(np.dtype(dtype)) == real


def test_parents_come_first():
    class Node:
        def __init__(self, *parents):
            self.parents = parents

    first = Node()
    second, third = Node(first), Node(first)
    last = Node(third, second)
    order = util.toposort([last])
    assert order[0] is first and order[-1] is last and len(order) == 4
    first.parents = (last,)
    with pytest.raises(ValueError, match="leads to itself"):
        util.toposort([last])


def test_frozen_dictionaries():
    from ferrax._src.frozen_dict import FrozenDict

    d = FrozenDict({"a": 1})
    assert d == FrozenDict({"a": 1}) and hash(d) == hash(FrozenDict({"a": 1}))
    assert dict(d) == {"a": 1} and len(d) == 1 and "b" not in d


@pytest.mark.parametrize(
    "module", ["ir", "passmanager", "dialects.func", "dialects.sdy", "dialects.chlo", "dialects.mhlo"]
)
def test_there_is_no_mlir(module):
    with pytest.raises(AttributeError, match="ferrax has no MLIR"):
        importlib.import_module(f"ferrax._src.lib.mlir.{module}").Module
