"""Private modules of JAX that tests import: which there are, and that their helpers do what JAX's do."""

import collections
import dataclasses
import importlib
import pickle
import subprocess
import sys

import jax
import jax.numpy
import numpy as np
import pytest
from jax._src import (
    core as jax_core,
    custom_api_util as jax_api_util,
    dtypes as jax_dtypes,
    effects as jax_effects,
    jaxpr_util as jax_jaxpr_util,
)
from jax._src.random import prng as jax_prng, threefry2x32 as jax_threefry
from jax._src.tree_util import broadcast_flattened_prefix_with_treedef as jax_broadcast

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import (
    core as ferrax_core,
    custom_api_util,
    dispatch,
    dtypes,
    effects,
    jaxpr_util,
    traceback_util,
    xla_bridge,
)
from ferrax._src.internal_test_util import deprecation_module, lax_test_util as cases, lazy_loader_module
from ferrax._src.numpy.util import promote_args
from ferrax._src.random import prng, threefry2x32
from ferrax._src.tree_util import broadcast_flattened_prefix_with_treedef

WITH_MEANING = [
    ("compute_on", "compute_on"),
    ("custom_partitioning", "custom_partitioning"),
    ("custom_partitioning_sharding_rule", "ArrayMapping BATCHING CompoundFactor SdyShardingRule"),
    ("buffer_callback", "buffer_callback"),
    ("xla_metadata", "set_xla_metadata"),
    ("shard_alike", "shard_alike"),
    ("ffi", "ffi_call ffi_lowering build_ffi_lowering_function register_ffi_target pycapsule include_dir"),
    ("pmap", "pmap"),
    ("random.core", "key split fold_in uniform PRNGImpl wrap_key_data"),
    ("random.rbg", "rbg_prng_impl unsafe_rbg_prng_impl"),
    ("random.stateful_rng", "StatefulPRNG stateful_rng"),
    ("extend.random", "define_prng_impl"),
    ("numpy.array_api_metadata", "__array_namespace_info__"),
    ("scipy.sparse.linalg", "cg gmres bicgstab"),
    ("scipy.optimize.minimize", "minimize OptimizeResults"),
    ("scipy.cluster.vq", "vq"),
    ("third_party.scipy.interpolate", "RegularGridInterpolator"),
    ("array", "make_array_from_single_device_arrays make_array_from_process_local_data ArrayImpl"),
    ("sharding_impls", "array_mapping_to_axis_resources NonUniformShardingError num_addressable_indices"),
    ("abstract_arrays", "ShapedArray array_types numpy_scalar_types"),
]
WITHOUT = [
    ("clusters", "ClusterEnv"),
    ("clusters.cluster", "ClusterEnv"),
    ("compilation_cache_interface", "CacheInterface"),
    ("debugger.web_debugger", "WebDebugger"),
    ("cudnn.scaled_matmul_stablehlo", "quantize shape_normalization"),
    ("cudnn.fused_attention_stablehlo", "dot_product_attention"),
    ("numpy.util", "_broadcast_arrays _where"),
    ("tree_util", "tracing_registry dispatch_registry"),
    ("export.serialization", "serialize deserialize"),
    ("indexing", "Slice"),
    ("interpreters.batching", "BatchTrace to_elt"),
    ("interpreters.mlir", "delegate_lowering refine_polymorphic_shapes"),
    ("interpreters.partial_eval", "partial_eval_jaxpr_custom"),
    ("lib", "gpu_sparse lapack"),
    ("pickle_util", "dumps"),
    ("random", "PRNGSpec"),
    ("shard_map", "shard_map_p"),
    ("xla_metadata_lib", "XlaMetadata"),
]


@pytest.mark.parametrize(("module", "names"), WITH_MEANING)
def test_names_of_public_modules_at_private_paths(module, names):
    found = importlib.import_module(f"ferrax._src.{module}")
    theirs = importlib.import_module(f"jax._src.{module}")
    for name in names.split():
        assert getattr(found, name) is not None and hasattr(theirs, name)


@pytest.mark.parametrize(("module", "names"), WITHOUT)
def test_names_that_say_that_they_mean_nothing_here(module, names):
    found = importlib.import_module(f"ferrax._src.{module}")
    for name in names.split():
        with pytest.raises(NotImplementedError, match=rf"ferrax\._src\.{module}\.{name}: \w+"):
            getattr(found, name)(1)

        class Derived(getattr(found, name)):
            pass


@pytest.mark.parametrize("package", [ferrax, jax], ids=["ferrax", "jax"])
def test_a_registry_in_which_none_is_a_leaf(package):
    tree_util = importlib.import_module(f"{package.__name__}._src.tree_util")
    registry = tree_util.none_leaf_registry
    leaves, structure = registry.flatten({"a": None, "b": [1, None]})
    assert leaves == [None, 1, None]
    assert str(structure) == "PyTreeDef({'a': *, 'b': [*, *]})"
    assert structure.unflatten("xyz") == {"a": "x", "b": ["y", "z"]}
    assert registry.flatten([None, (1, None)], lambda x: isinstance(x, tuple))[0] == [None, (1, None)]
    assert [leaf for _, leaf in registry.flatten_with_path((None, 3))[0]] == [None, 3]
    assert registry.flatten_one_level(None) is None
    assert list(registry.flatten_one_level((None, 1))[0]) == [None, 1]
    assert [child for _, child in registry.flatten_one_level_with_keys([None])[0]] == [None]
    assert not registry.is_node(type(None)) and registry.is_node(list)
    assert pickle.loads(pickle.dumps(registry)) is registry


@pytest.mark.parametrize("package", [ferrax, jax], ids=["ferrax", "jax"])
def test_shardings_that_are_asked_for(package):
    canonicalize = importlib.import_module(f"{package.__name__}._src.sharding_impls").canonicalize_sharding
    sharding, kinds = package.sharding, package.sharding.AxisType
    assert canonicalize(None, "f") is None
    assert canonicalize(package.typeof(package.numpy.ones(3)).sharding, "f") is None
    for kind in (kinds.Explicit, kinds.Auto):
        mesh = package.make_mesh((1,), ("x",), axis_types=(kind,))
        found = canonicalize(sharding.NamedSharding(mesh, sharding.PartitionSpec(None)), "f")
        assert found == sharding.NamedSharding(mesh.abstract_mesh, sharding.PartitionSpec(None))
    with pytest.raises(ValueError, match="f cannot contain axis names that are of type Auto or Manual"):
        canonicalize(sharding.NamedSharding(mesh, sharding.PartitionSpec("x")), "f")
    with pytest.raises(TypeError, match="`out_sharding` argument of f only supports"):
        canonicalize("x", "f")
    with pytest.raises(ValueError):
        canonicalize(sharding.PartitionSpec("x"), "f")


@pytest.mark.parametrize("package", [ferrax, jax], ids=["ferrax", "jax"])
def test_types_of_nodes_with_what_takes_them_apart(package):
    registry = importlib.import_module(f"{package.__name__}._src.tree_util")._registry

    @package.tree_util.register_dataclass
    @dataclasses.dataclass
    class Scaled:
        value: int
        scale: int = dataclasses.field(metadata={"static": True})

    for node in ((1, "a"), [2], {"b": 1, "a": 2}, None, collections.OrderedDict(b=1, a=2), Scaled(3, 4)):
        to_iter, from_iter = registry[type(node)]
        children, data = to_iter(node)
        assert list(children) == package.tree_util.tree_leaves(node)
        assert from_iter(data, children) == node
    assert dict in registry and int not in registry and registry.get(int) is None
    with pytest.raises(KeyError, match="int"):
        registry[int]


@pytest.mark.parametrize("package", [ferrax, jax], ids=["ferrax", "jax"])
def test_a_prefix_that_is_none_is_named(package):
    broadcast_prefix = importlib.import_module(f"{package.__name__}._src.tree_util").broadcast_prefix
    with pytest.raises(ValueError, match="the prefix pytree broadcast_prefix prefix_tree has a subtree"):
        broadcast_prefix((1, 2), (3, 4, 5))


def test_sets_of_effects_like_jax():
    shown = []
    for module in (effects, jax_effects):

        class One(module.Effect):
            pass

        class Two(One):
            pass

        kinds = module.EffectTypeSet()
        kinds.add_type(Two)
        one, two = One(), Two()
        shown.append([kinds.contains(one), kinds.contains(two), kinds.filter_in([one, two]) == [two]])
        assert kinds.filter_not_in([one, two]) == [one]
        assert not module.EffectTypeSet().contains(one) and module.no_effects == frozenset()
    assert shown[0] == shown[1] == [False, True, True]


def test_waiting_for_effects():
    seen = []
    ferrax.jit(lambda x: ferrax.debug.callback(seen.append, x))(2.0)
    dispatch.runtime_tokens.block_until_ready()
    assert [float(x) for x in seen] == [2.0]
    dispatch.runtime_tokens.clear()
    assert dispatch.runtime_tokens.current_tokens == {}
    jaxpr = ferrax.make_jaxpr(ferrax.jit(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)))(1.0).jaxpr
    assert dispatch.jaxpr_has_primitive(jaxpr, "sin") and not dispatch.jaxpr_has_primitive(jaxpr, "tan")


def test_modules_for_tests_of_modules():
    assert lazy_loader_module.lazy_test_submodule.a_function() == 42
    assert dir(lazy_loader_module) == lazy_loader_module.__all__ == ["lazy_test_submodule"]
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        lazy_loader_module.other
    with pytest.warns(DeprecationWarning, match="Please use x"):
        assert deprecation_module.y == 101
    with pytest.raises(AttributeError, match="Please do not use z"):
        deprecation_module.z


def test_frames_of_users():
    def raised(function):
        try:
            function()
        except Exception as error:
            return error.__traceback__
        return None

    def lines(tb):
        return [] if tb is None else [tb.tb_frame.f_code.co_filename, *lines(tb.tb_next)]

    kept = lines(traceback_util.filter_traceback(raised(lambda: jnp.zeros(3) + jnp.zeros(2))))
    assert kept and all(name == __file__ for name in kept)
    assert traceback_util.filter_traceback(None) is None


def test_attributes_of_decorators_like_jax():
    def asked(module):
        class Inner:
            defjvp = "rule"
            other = 1

        module.register_custom_decorator_type(Inner)

        class Outer:
            def __init__(self, fun):
                self.fun = fun

        out = [module.forward_attr(Outer(Inner()), "defjvp")]
        for fun, name in ((Inner(), "other"), (len, "defjvp")):
            with pytest.raises(AttributeError):
                module.forward_attr(Outer(fun), name)
        return out

    assert asked(custom_api_util) == asked(jax_api_util)


def test_prefixes_by_structures_like_jax():
    full = {"a": (1, 2), "b": [3, (4, 5)]}
    out = []
    for tree, broadcast in ((ferrax.tree, broadcast_flattened_prefix_with_treedef), (jax.tree, jax_broadcast)):
        leaves, prefix = tree.flatten({"a": 10, "b": [20, 30]})
        out.append(broadcast(leaves, prefix, tree.structure(full)))
    assert out[0] == out[1] == [10, 10, 20, 30, 30]


def test_generators_like_jax():
    # those of Pallas are there once its modules were imported, by whatever test
    known = {name for name in jax_prng.prngs if "pallas" not in name}
    assert {*prng.prngs} == known and prng.UINT_DTYPES == jax_prng.UINT_DTYPES
    for name, impl in prng.prngs.items():
        assert (impl.key_shape, impl.tag) == (jax_prng.prngs[name].key_shape, jax_prng.prngs[name].tag)
    with pytest.raises(ValueError, match="already registered"):
        prng.register_prng(prng.prngs["rbg"])
    keys = ferrax.random.split(ferrax.random.key(3), (2, 3))
    theirs = jax.random.split(jax.random.key(3), (2, 3))
    ours = ferrax.random.key_data(prng.random_split(keys, (2,)))
    assert np.array_equal(ours, jax.random.key_data(jax_prng.random_split(theirs, (2,))))
    data = np.array([1, 2], np.uint32)
    for name, arguments in {
        "threefry_seed": (np.int32(7),),
        "threefry_split": (data, (3,)),
        "threefry_fold_in": (data, np.uint32(5)),
        "threefry_2x32": (data, np.arange(6, dtype=np.uint32)),
        "threefry_random_bits": (data, 16, (2, 5)),
    }.items():
        results = []
        for module, asarray in ((threefry2x32, jnp.asarray), (jax_threefry, jax.numpy.asarray)):
            args = [asarray(a) if isinstance(a, np.ndarray | np.generic) else a for a in arguments]
            results.append(np.asarray(getattr(module, name)(*args)))
        assert results[0].dtype == results[1].dtype and np.array_equal(*results)


def test_generators_refuse():
    with pytest.raises(TypeError, match="must be a scalar"):
        threefry2x32.threefry_seed(np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="8-, 16-, 32- or 64-bit"):
        threefry2x32.threefry_random_bits(np.zeros(2, np.uint32), 24, (2,))
    with pytest.raises(TypeError, match="uint32"):
        threefry2x32.threefry_split(np.zeros(3, np.uint32), (2,))
    assert threefry2x32.threefry_random_bits(np.zeros(2, np.uint32), 8, (0, 2)).shape == (0, 2)


def test_operations_of_tests_run():
    for record in cases.lax_ops():
        for dtype in record.dtypes:
            draw = record.rng_factory(np.random.RandomState(0))
            out = getattr(lax, record.op)(*(draw((2, 3), dtype) for _ in range(record.nargs)))
            assert out.shape == (2, 3)
    assert len(cases.lax_ops()) == 69 and cases.lax_out_dtype_ops()[0].op == "mul"


def test_reductions_of_tests_run():
    for record in cases.lax_reduce_ops():
        for dtype in record.dtypes:
            x = np.ones((2, 3), dtype)
            out = lax.reduce(x, np.asarray(record.init_val).astype(dtype), record.op, (0,))
            assert np.array_equal(np.asarray(out), record.reference_op.reduce(x, axis=0, initial=None))
    for named in cases.lax_named_reduce_ops():
        for dtype in named.dtypes:
            assert named.op(np.ones((2, 3), dtype), axes=(0,)).shape == (3,)


def test_batched_axes_of_tests():
    assert [*cases.all_bdims((2,), ())] == [
        (None, 0), (0, None), (0, 0), (1, None), (1, 0)
    ]  # fmt: skip
    assert cases.add_bdim(5, 1, (2, 3)) == (2, 5, 3) and cases.add_bdim(5, None, [2, 3]) == (2, 3)
    x, y = np.arange(6).reshape(2, 3), np.arange(3)
    first, second = cases.args_slicer([x, y], [1, None])(2)
    assert np.array_equal(first, x[:, 2]) and second is y


@pytest.mark.parametrize("x64", [False, True])
def test_what_the_namespace_says_like_jax(x64):
    with ferrax.enable_x64(x64), jax.enable_x64(x64):
        ours, theirs = jnp.__array_namespace_info__(), jax.numpy.__array_namespace_info__()
        floats = ("real floating", "complex floating")
        kinds = ("bool", "integral", "signed integer", "unsigned integer", *floats, "numeric")
        for kind in (None, ("bool", "integral"), *kinds):
            assert ours.dtypes(kind=kind) == theirs.dtypes(kind=kind)
        assert ours.default_dtypes() == theirs.default_dtypes()
    assert ours.capabilities() == theirs.capabilities() and ours.default_device() is None
    assert ours.devices() == [None, *ferrax.devices()]
    with pytest.raises(KeyError):
        ours.dtypes(kind="rational")


def test_statistics_of_programs_like_jax():
    out = []
    for package, util in ((ferrax, jaxpr_util), (jax, jax_jaxpr_util)):

        def f(x, package=package):
            inner = package.jit(lambda y: package.numpy.sin(y) * y)
            return inner(inner(x)) + package.numpy.sin(x).sum()

        jaxpr = package.make_jaxpr(f)(np.ones(3, np.float32)).jaxpr
        lines = util.source_locations(jaxpr)
        assert sum(lines.values()) == util.count_eqns(jaxpr)
        assert sum(util.primitives_by_source(jaxpr).values()) == util.count_eqns(jaxpr)
        groups = util.collect_eqns(jaxpr, lambda eqn: eqn.primitive.name)
        out.append([util.primitives(jaxpr), util.primitives_by_shape(jaxpr), len(groups["sin"])])
    assert out[0] == out[1]


def test_groups_of_dtypes_like_jax():
    for name in ("_float8_dtypes", "_float6_dtypes", "_float4_dtypes", "_dtype_to_32bit_dtype", "_int2_dtype", "bool_"):
        assert getattr(dtypes, name) == getattr(jax_dtypes, name)
    for kind, dtype in dtypes.python_scalar_types_to_dtypes.items():
        assert jax_dtypes.python_scalar_types_to_dtypes[kind] == dtype
    names = ["bool", "int8", "uint16", "int64", "bfloat16", "float32", "float64", "complex64"]
    for one in names:
        assert dtypes.to_floating_dtype(one) == jax_dtypes.to_floating_dtype(one)
        for other in names:
            assert dtypes.safe_to_cast(one, other) == jax_dtypes.safe_to_cast(one, other), (one, other)
    assert dtypes.is_weakly_typed_scalar(1.0) and not dtypes.is_weakly_typed_scalar(np.float32(1))


def test_sizes_like_jax():
    for core in (ferrax_core, jax_core):
        assert core.definitely_equal(3, 3) and not core.definitely_equal(3, 4)
        assert core.definitely_equal_shape((1, 2), [1, 2]) and not core.definitely_equal_shape((1,), (1, 1))
        assert [core.is_dim(3), core.is_dim("a"), core.is_symbolic_dim(3)] == [True, False, False]
        assert core.divide_shape_sizes((4, 6), (3,)) == 8 and core.divide_shape_sizes((0,), (0, 2)) == 1
        with pytest.raises(core.InconclusiveDimensionOperation):
            core.divide_shape_sizes((4,), (3,))
        assert [core.dilate_dim(d, 3) for d in (0, 1, 4)] == [0, 1, 10]
        assert [core.stride_dim(d, 3, 2) for d in (0, 2, 3, 8)] == [0, 0, 1, 3]
        assert core.shaped_abstractify(np.ones(2, np.int8)).str_short() == "int8[2]"
    assert isinstance(ferrax_core.get_token_aval(), ferrax.extend.core.AbstractToken)


def test_platforms():
    assert xla_bridge.is_known_platform(ferrax.default_backend()) and not xla_bridge.is_known_platform("abacus")
    assert xla_bridge.host_id() == ferrax.process_index() and xla_bridge.host_count() == ferrax.process_count()
    assert xla_bridge.expand_platform_alias("gpu") == ["cuda", "rocm", "oneapi"]
    assert xla_bridge.using_pjrt_c_api() in (False, True)


def test_default_generators():
    from ferrax._src import random
    from ferrax._src.random import core

    assert core.default_prng_impl() is random.resolve_prng_impl("threefry2x32") is prng.prngs["threefry2x32"]
    with pytest.raises(ValueError, match="dice"):
        random.resolve_prng_impl("dice")


def test_policies_and_sizes_inside():
    from ferrax._src import ad_checkpoint, core, linear_util as lu, util
    from ferrax._src.lax import control_flow
    from ferrax._src.state.primitives import pin

    assert ad_checkpoint.everything_saveable is ferrax.checkpoint_policies.everything_saveable
    assert ad_checkpoint.saved_residuals and ad_checkpoint.name_p.name == "name"
    with pytest.raises(AttributeError):
        _ = ad_checkpoint.save_what_is_red
    (a,) = ferrax.export.symbolic_shape("a")
    assert core.definitely_equal_one_of_dim(a, [2, a]) and not core.definitely_equal_one_of_dim(a, [2, 3])
    assert core.canonicalize_dim(np.int64(3)) == 3 and core.dimension_as_value(3) == 3
    with pytest.raises(TypeError):
        core.canonicalize_dim("three")
    assert core.call(lu.wrap_init(lambda x, y: [x, x * y]), 2.0, 3.0) == [2.0, 6.0]
    f = ferrax.jit(lambda x: x + 1)
    f(1.0)
    util.clear_all_caches()
    assert f._cache_size() == 0
    control_flow.common._dedup_consts.cache_clear()
    for name in (pin, control_flow.common._pad_constvars):
        with pytest.raises(NotImplementedError):
            name(1)


def test_names_of_platforms():
    from jax._src import xla_bridge as jax_bridge

    from ferrax._src import xla_bridge

    for platform in ("cpu", "cuda", "tpu", "nothing"):
        assert xla_bridge.canonicalize_platform(platform) == jax_bridge.canonicalize_platform(platform) == platform
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu' requested"):
        xla_bridge.canonicalize_platform("gpu")


def test_helpers_of_classes_and_texts():
    from jax._src import util as jax_util

    from ferrax._src import util

    for n in (0, -1, 1, 999, 1000, 123456789, 2.5, 1e18):
        assert util.pprint_bytes(n) == jax_util.pprint_bytes(n)
    held = [1]
    assert util.HashableWrapper(held) == util.HashableWrapper(held) != util.HashableWrapper([1])
    assert {util.HashableWrapper("a"), util.HashableWrapper("a")} == {util.HashableWrapper("a")}
    with pytest.raises(NotImplementedError, match="does not support virtual subclasses"):
        util.StrictABC.register(int)


def test_modules_are_there_without_being_imported():
    files = "interpreters/batching lax/lax lax/control_flow/loops numpy/util random/prng export/_export lib/mlir/ir"
    paths = ["ferrax._src." + file.replace("/", ".") for file in files.split()]
    program = f"import ferrax; print([{', '.join(f'{path}.__name__' for path in paths)}])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(paths)


#: Collectives that are started, and the arguments besides the array.
STARTED = {
    "all_gather": dict(tiled=True),
    "all_to_all": dict(split_axis=0, concat_axis=0, tiled=True),
    "ppermute": dict(perm=[(0, 1), (1, 2), (2, 0)]),
    "psum": {},
    "psum_scatter": dict(scatter_dimension=0, tiled=True),
}


@pytest.mark.parametrize("name", STARTED)
def test_collectives_that_are_started(name):
    from ferrax._src.lax import parallel

    start = getattr(parallel, f"{name}_start")
    rows = jnp.arange(18.0).reshape(3, 6)
    found, wanted = (
        ferrax.vmap(f, axis_name="i")(rows)
        for f in (
            lambda x: start(x, "i", **STARTED[name]).done(),
            lambda x: getattr(lax, name)(x, "i", **STARTED[name]),
        )
    )
    np.testing.assert_array_equal(found, wanted)
    assert start.__name__ == f"{name}_start" and "Future(" in repr(parallel.Future(1))


PROMOTED = {
    "promote_args": [(1.0, np.ones(3, np.int32)), (np.ones(3), np.ones((2, 3), np.int32)), (2, 3), (np.ones(2),)],
    "promote_args_inexact": [(1, 2), (np.ones(3, np.int32), np.ones((2, 3), np.float16))],
    "promote_args_numeric": [(True, np.ones(2, bool)), (np.ones((1, 2), bool), 2.5)],
    "promote_shapes": [(1, np.ones(3), np.ones((2, 3))), (np.ones(3), 2)],
}


@pytest.mark.parametrize("name", PROMOTED)
def test_promoted_operands_like_jax(name):
    def said(package, mode):
        function = getattr(importlib.import_module(f"{package.__name__}._src.numpy.util"), name)
        out = []
        for args in PROMOTED[name]:
            try:
                with package.numpy_rank_promotion(mode):
                    got = function("f", *map(package.numpy.asarray, args))
                out.append([(x.shape, str(x.dtype), x.weak_type) for x in got])
            except ValueError as error:
                out.append(str(error)[:60])
        return out

    for mode in ("allow", "raise"):
        assert said(ferrax, mode) == said(jax, mode)
    with pytest.raises(TypeError, match="f does not accept dtype"):
        promote_args("f", ferrax.random.key(0), 1)
