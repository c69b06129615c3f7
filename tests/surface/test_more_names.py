"""Names that JAX's modules hold besides their own: helpers of other modules, small classes, settings, contexts."""

import gc
import importlib
import threading

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._composites import Composite
from ferrax._src import debugging, util
from ferrax.ad_checkpoint import Offloadable, Recompute, Saveable
from ferrax.extend import linear_util as lu, source_info_util
from ferrax.interpreters import pxla
from tests.recorded import both, expected

#: By module, what it holds of others, and where they are: `here=there` where the names differ.
LENT = {
    "example_libraries.optimizers": {"_src.util": "map=safe_map safe_map safe_zip unzip2 zip=safe_zip"},
    "experimental.fused": {
        "_src.util": "map=safe_map safe_map safe_zip unzip2 weakref_lru_cache zip=safe_zip",
        "api_util": "debug_info flatten_fun_nokwargs",
        "tree_util": "tree_flatten tree_unflatten",
    },
    "experimental.jet": {
        "_src.util": "safe_zip unzip2 weakref_lru_cache",
        "tree_util": "register_pytree_node tree_flatten tree_structure tree_unflatten treedef_is_leaf",
    },
    "experimental.ode": {"_src.util": "map=safe_map safe_map zip=safe_zip", "tree_util": "tree_leaves tree_map"},
    "experimental.rnn": {"nn": "sigmoid", "numpy": "tanh", "custom_derivatives": "custom_vjp"},
    "experimental.scheduling_groups": {"_src.util": "split_list subs_list", "api_util": "debug_info"},
    "experimental.sparse.ad": {"_src.util": "safe_zip split_list wraps", "experimental.sparse": "JAXSparse"},
    "experimental.sparse.api": {"experimental.sparse": "todense_p"},
    "experimental.sparse.bcoo": {
        "experimental.sparse": "bcoo_dot_general_p bcoo_todense_p CuSparseEfficiencyWarning JAXSparse",
        "experimental.sparse.util": "nfold_vmap Shape SparseInfo",
        "lax": "GatherDimensionNumbers GatherScatterMode",
        "_src.util": "canonicalize_axis unzip2",
        "_src.lax.lax": "ranges_like remaining",
        "typing": "ArrayLike DTypeLike",
    },
    "experimental.sparse.bcsr": {"experimental.sparse": "bcsr_dot_general_p", "_src.util": "split_list"},
    "experimental.sparse.coo": {"experimental.sparse": "coo_matvec_p", "_src.numpy.util": "promote_dtypes"},
    "experimental.sparse.csr": {"experimental.sparse": "csr_matvec_p", "experimental.sparse.coo": "COOInfo"},
    "experimental.sparse.transform": {"tree_util": "tree_map", "api_util": "flatten_fun_nokwargs"},
    "experimental.sparse.util": {"api_util": "flatten_axes"},
    "random": {"random._gamma": "random_gamma_p"},
}


def module_of(name):
    return importlib.import_module(f"ferrax.{name}")


@pytest.mark.parametrize("name", LENT)
def test_what_modules_hold_of_others(name):
    module = module_of(name)
    for file, names in LENT[name].items():
        for entry in names.split():
            here, _, there = entry.partition("=")
            found, home = getattr(module, here), getattr(module_of(file), there or here)
            assert found is home or found.__name__ == home.__name__, here
    with pytest.raises(AttributeError, match="has no attribute 'nothing_at_all'"):
        _ = module.nothing_at_all


def lists(jax):
    """What small functions of lists give."""
    lax = importlib.import_module(f"{jax.__name__}._src.lax.lax")
    return [list(r) for r in lax.ranges_like("ab", "", "cde")], list(lax.remaining([3, 1, 2, 1], [1], [5]))


def test_small_functions_of_lists():
    assert lists(ferrax) == tuple(expected(lists))


# --- functions that are kept


class Key:
    pass


def explained(jax):
    """How many keys a function that explains its misses is told of, and its arguments, by call."""
    cache = importlib.import_module(f"{jax.__name__}._src.util").weakref_lru_cache
    told, x = [], Key()

    def explain(keys, first, *args, **kwargs):
        assert first is x
        told.append(
            [sorted((list(k[2]) + sorted(k[3].items()) for k in keys), key=str), list(args), sorted(kwargs.items())]
        )

    f = cache(lambda x, n, m=1: n + m, trace_context_in_key=False, explain=explain)
    f(x, 1)
    with jax.explain_cache_misses(True):
        results = [f(x, 1), f(x, 2, m=5), f(x, 2, m=5), f(x, 3)]
    return results, told


def test_misses_are_explained():
    plain = lambda x: [plain(y) for y in x] if isinstance(x, (list, tuple)) else x
    assert plain(explained(ferrax)) == plain(expected(explained))


def test_results_go_with_their_first_argument():
    calls = []

    @util.weakref_lru_cache(maxsize=2)
    def f(x, n):
        calls.append(n)
        return n

    x, y = Key(), Key()
    assert (f(x, 1), f(x, 1), f(y, 2)) == (1, 1, 2) and calls == [1, 2]
    f(x, 1), f(x, 3), f(y, 2)  # (y, 2) was the least recent
    assert calls == [1, 2, 3, 2]
    del x
    gc.collect()
    assert len(f._rows) == 1
    f.cache_clear()
    assert not f._rows


def test_transformations_take_arguments_of_their_own():
    flat, out_tree = ferrax.api_util.flatten_fun_nokwargs(
        lu.wrap_init(lambda x: [x] * x), ferrax.tree.structure((1,)), use_eq_store=True
    )
    assert flat.call_wrapped(1) == [1] == flat.call_wrapped(1) and out_tree().num_leaves == 1
    with pytest.raises(lu.StoreException):
        flat.call_wrapped(2)
    last, out_tree = ferrax.api_util.flatten_fun(lu.wrap_init(lambda x: [x] * x), ferrax.tree.structure(((1,), {})))
    last.call_wrapped(1), last.call_wrapped(2)
    assert out_tree().num_leaves == 2


def lifted(jax):
    """The derivative rule that `lift_jvp` makes, of a tangent that is zero and of one that is not."""
    custom = importlib.import_module(f"{jax.__name__}._src.custom_derivatives")
    wrap_init = importlib.import_module(f"{jax.__name__}.extend.linear_util").wrap_init
    asked = []

    def programs(*zeros):
        asked.append([bool(z) for z in zeros])
        if all(zeros):
            program = jax.make_jaxpr(lambda x: (x * 2,))(1.0)
            return program.jaxpr, program.consts, [True]
        program = jax.make_jaxpr(lambda x, t: (x * 2, t * 2))(1.0, 1.0)
        return program.jaxpr, program.consts, [False]

    debug = jax.api_util.debug_info("f", programs, (1.0,), {})
    rule = custom.lift_jvp(1, wrap_init(programs, debug_info=debug))
    zero = jax.custom_derivatives.SymbolicZero.from_primal_value(1.0)
    moving = rule.call_wrapped(7.0, 3.0, zero, 5.0)
    still = rule.call_wrapped(7.0, 3.0, zero, zero)
    return asked, [float(x) for x in moving], float(still[0]), type(still[1]).__name__, str(zero.dtype)


def test_lifted_derivative_rules():
    plain = lambda x: [plain(y) for y in x] if isinstance(x, (list, tuple)) else x
    assert plain(lifted(ferrax)) == plain(expected(lifted))


# --- arrays


def of_arrays(jax):
    """What members of arrays give, or which error."""
    np_ = jax.numpy

    def told(f):
        try:
            return f()
        except TypeError as error:
            return type(error).__name__

    with pytest.warns(DeprecationWarning, match="Implicit conversion"):
        dtype = str(np_.ones(2, "int8").__numpy_dtype__)
    module = np_.ones(2).__array_module__([np.ndarray, type(np_.ones(2))])
    return [
        *(told(np_.array(17).__hex__), told(np_.array(-9, "int8").__oct__), told(np_.array(1.5).__hex__)),
        *(told(np_.ones(2, int).__oct__), dtype, module.__name__.split(".")[-1]),
        np_.ones(2).__array_module__([dict]) is NotImplemented,
    ]


def test_members_of_arrays():
    assert of_arrays(ferrax) == list(expected(of_arrays))


# --- policies


def kept_by(jax, answer):
    """How many sines of a chain a checkpointed function computes again, by what its policy answers."""
    names = importlib.import_module(f"{jax.__name__}.ad_checkpoint")
    case = {
        "saveable": names.Saveable,
        "recompute": names.Recompute,
        "true": True,
        "false": False,
    }[answer]
    f = jax.checkpoint(lambda x: jax.numpy.sin(jax.numpy.sin(x)), policy=lambda *_, **__: case)
    text = str(jax.make_jaxpr(jax.grad(f))(1.0))
    return text.count("= sin") + text.count(":f32[] = sin")


@pytest.mark.parametrize(("answer", "same"), [("saveable", "true"), ("recompute", "false")])
def test_answers_of_policies(answer, same):
    assert kept_by(ferrax, answer) == kept_by(ferrax, same)
    assert kept_by(ferrax, "saveable") < kept_by(ferrax, "recompute")


def test_other_answers_of_policies():
    assert repr(Saveable) == "Saveable" and repr(Recompute) == "Recompute"
    assert Offloadable("device", "pinned_host") == Offloadable(src="device", dst="pinned_host")

    def slope(policy):
        return ferrax.grad(ferrax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy))(1.0)

    wanted = ferrax.grad(lambda x: jnp.sin(jnp.sin(x)))(1.0)
    both = ferrax.checkpoint_policies.save_from_both_policies
    for policy in (
        lambda *_, **__: Offloadable("device", "pinned_host"),
        both(lambda *_, **__: Recompute, lambda *_, **__: Saveable),
    ):
        np.testing.assert_allclose(slope(policy), wanted, rtol=1e-6)
    asked = []
    p = Composite("named_for_policies", lambda x: 2 * x, linear=(0,))
    ferrax.grad(ferrax.checkpoint(lambda x: p.bind(jnp.sin(x)), policy=lambda *a, **_: bool(asked.append(a[0]))))(1.0)
    assert asked[0] is ferrax.lax.sin_p and p in asked
    for case in ("yes", Offloadable):
        with pytest.raises(TypeError, match="remat policy should be a bool"):
            slope(lambda *_, case=case, **__: case)


# --- contexts of users, settings


def test_contexts_of_users_are_in_the_key_of_programs():
    context, traces = ferrax.make_user_context(1), []

    @ferrax.jit
    def f(x):
        traces.append(context.value)
        return x * context.value

    assert float(f(2.0)) == 2.0
    with context(5):
        assert context.value == 5 and float(f(2.0)) == 10.0
        with context(7):
            assert float(f(2.0)) == 14.0
        assert float(f(2.0)) == 10.0
        with context(1):  # what it is at the start
            assert float(f(2.0)) == 2.0
    assert float(f(2.0)) == 2.0 and traces == [1, 5, 7]


def test_contexts_of_users_on_threads():
    context, other = ferrax.make_user_context("a"), ferrax.make_user_context("b")
    seen = []

    @ferrax.jit
    def f(x):
        seen.append((context.value, other.value))
        return x

    def on_a_thread():
        f(1.0)

    with context("mine"), pytest.raises(KeyError), other("too"):
        thread = threading.Thread(target=on_a_thread)
        thread.start()
        thread.join()
        f(1.0)
        raise KeyError
    assert seen == [("a", "b"), ("mine", "too")] and context.value == "a"
    context.set_global("everywhere")
    assert context.get_global() == context.value == "everywhere"
    with context("mine"):
        assert context.get_global() == "everywhere" and context.value == "mine"
    thread = threading.Thread(target=on_a_thread)
    thread.start()
    thread.join()
    assert seen[-1] == ("everywhere", "b")
    context.set_global("a")
    for wrong in (lambda: ferrax.make_user_context([]), lambda: context({}), lambda: context.set_global([])):
        with pytest.raises(TypeError, match="unhashable"):
            wrong()


def test_settings_that_nothing_reads():
    for state, value in (
        (ferrax.auto_pcast, True),
        (ferrax.jax2tf_associative_scan_reductions, False),
        (ferrax.remove_size_one_mesh_axis_from_type, False),
    ):
        assert state.value is value
        with state(value):
            pass
        with pytest.raises(NotImplementedError), state(not value):
            pass


def test_former_names():
    with pytest.warns(UserWarning, match="renamed to jax.process_indices"):
        assert ferrax.host_ids() == [0]
    with pytest.warns(DeprecationWarning, match="deprecated"):
        pjit = ferrax.experimental.pjit.pjit
    f = pjit(fun=lambda x, n: x * n, static_argnums=1)
    assert float(f(2.0, 3)) == 6.0
    with pytest.raises(TypeError):
        pjit()


# --- effects, places


def test_effects_of_prints_have_classes():
    debug = ferrax.debug
    (effect,) = ferrax.make_jaxpr(lambda x: debug.print("{}", x))(1.0).effects
    assert isinstance(effect, debug.DebugEffect) and not isinstance(effect, debug.OrderedDebugEffect)
    ordered = ferrax.make_jaxpr(lambda x: debug.print("{}", x, ordered=True))(1.0).effects
    assert any(isinstance(e, debug.OrderedDebugEffect) for e in ordered)
    assert not any(isinstance(e, debug.DebugEffect) for e in ordered)
    assert effect is debugging.debug_effect and ordered == {debugging.ordered_debug_effect}
    for made, text in ((debugging.debug_effect, "Debug"), (debugging.ordered_debug_effect, "OrderedDebug")):
        assert str(made) == text and isinstance(made, type(made)) and isinstance(made, ferrax.extend.core.Effect)

    class Own(debug.DebugEffect):
        pass

    assert not isinstance(effect, Own) and isinstance(Own(), debug.DebugEffect)


EFFECTS = [
    (lambda jax, x: jax.debug.print("{}", x), "Debug"),
    (lambda jax, x: jax.debug.callback(lambda _: None, x, ordered=True), "OrderedDebug"),
    (lambda jax, x: jax.experimental.io_callback(lambda _: None, None, x), "IO"),
    (lambda jax, x: jax.experimental.io_callback(lambda _: None, None, x, ordered=True), "OrderedIO"),
    (lambda jax, x: jax.pure_callback(lambda x: x, x, x), ""),
]


@pytest.mark.parametrize("inside", [lambda f: f, ferrax.jit, "scan", "cond", "while"])
@pytest.mark.parametrize(("f", "text"), EFFECTS)
def test_effects_of_programs_are_objects(f, text, inside):
    def call(x):
        f(ferrax, x)
        return x

    around = {
        "scan": lambda x: ferrax.lax.scan(lambda c, _: (call(c), None), x, None, length=2),
        "cond": lambda x: ferrax.lax.cond(x > 0, call, lambda x: x, x),
        "while": lambda x: ferrax.lax.while_loop(lambda c: c < 2, lambda c: call(c) + 1, x),
    }
    program = ferrax.make_jaxpr(around.get(inside) or inside(call))(1.0)
    assert [str(e) for e in program.effects] == ([text] if text else [])
    assert {e for eqn in program.eqns for e in eqn.effects} == program.effects
    assert all(isinstance(e, ferrax.extend.core.Effect) for e in program.effects)


def _allowed(jax):
    """By set of effects, which of the core's are in it."""
    effects, debugging, callback = (
        importlib.import_module(f"{jax.__name__}._src.{name}") for name in ("effects", "debugging", "callback")
    )
    kinds = debugging.debug_effect, debugging.ordered_debug_effect, callback._IOEffect, callback._OrderedIOEffect
    sets = {name: value for name, value in vars(effects).items() if isinstance(value, effects.EffectTypeSet)}
    return {name: [sets[name].contains(e) for e in kinds] for name in sorted(sets)}


def test_sets_of_effects_know_those_of_the_core():
    ours, theirs = both(_allowed)
    assert ours == theirs


def test_classes_of_scopes():
    scopes = source_info_util

    @scopes.extend_name_stack("outer")
    def f(n):
        return [str(scopes.current_name_stack()), *(f(n - 1) if n else [])]

    assert f(1) == ["outer", "outer/outer"]
    assert str(scopes.current_name_stack()) == ""
    with scopes.set_name_stack(scopes.new_name_stack("a")) as nothing, scopes.transform_name_stack("vmap") as inner:
        assert nothing is None and str(inner) == "a/vmap()"
        context = scopes.user_context(None, name_stack=scopes.new_name_stack("b"))
        with context:
            assert str(scopes.current().name_stack) == "b"
        assert str(context.prev.name_stack) == "a/vmap()"
    for cls, names in (
        (scopes.extend_name_stack, ("name", "prev")),
        (scopes.set_name_stack, ("name_stack", "prev")),
        (scopes.user_context, ("name_stack", "prev", "traceback")),
        (scopes.SourceInfo, ("name_stack", "traceback")),
    ):
        assert all(hasattr(cls, name) for name in names)


# --- types, shardings, buffers


def of_types(jax):
    """What members of types give."""
    aval = jax.core.ShapedArray((2, 3), np.dtype("float32"))
    mesh = jax.make_mesh((1, 1), ("a", "b"))
    specs = [aval.nospec(mesh, False, ("a", "b")), aval.nospec(mesh, True, ("a", "b")), aval.nospec(mesh, False, ())]
    return aval.array_abstraction_level, [str(s) for s in specs]


def test_members_of_types():
    (level, specs), (wanted, shown) = of_types(ferrax), expected(of_types)
    assert level == wanted
    assert [s.replace("PartitionSpec", "P") for s in specs] == [s.replace("PartitionSpec", "P") for s in shown]
    assert ferrax.core.ShapedArray.broadcast.fun(jnp.ones(3), (2,)).shape == (2, 3)


MAPPINGS = [{}, {"x": 0}, {"x": 1, "y": 1}, {"y": 2, "x": 0}, {"y": 0, "z": 2, "x": 0}]


def specs_of_mappings(jax):
    with pytest.warns(DeprecationWarning):
        found = importlib.import_module(f"{jax.__name__}.interpreters.pxla").array_mapping_to_axis_resources
    return [[list(e) if isinstance(e, tuple) else e for e in found(mapping)] for mapping in MAPPINGS]


def test_specs_of_mappings():
    assert specs_of_mappings(ferrax) == [list(x) for x in expected(specs_of_mappings)]
    for name in ("ArrayMapping", "Index", "MeshAxisName", "_UNSPECIFIED"):
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(pxla, name) is not None
    with pytest.warns(DeprecationWarning):
        none = pxla._UNSPECIFIED
    assert float(ferrax.jit(lambda x: x + 1, in_shardings=none, out_shardings=none)(1.0)) == 2.0


def test_small_classes():
    info = ferrax.stages.ArgInfo(ferrax.typeof(1.0), True)
    assert ferrax.stages.ArgInfo.donated is not None and info.donated and info.shape == ()
    partial = ferrax.interpreters.partial_eval.PartialVal
    assert partial(xs=(None, 3)).get_known() == 3 and not partial((ferrax.typeof(1.0), None)).is_known()
    assert callable(ferrax.core.Atom)
    buffer = ferrax.experimental.buffer_callback.Buffer(np.zeros(2), True)
    assert buffer.writeable and isinstance(type(buffer).writeable, property)
    layout = ferrax.experimental.layout.Layout((0,))
    assert ferrax.experimental.layout.with_layout_constraint(jnp.ones(2), layouts=layout).shape == (2,)


# --- gamma


def gammas(jax):
    p, keys = jax.random.random_gamma_p, jax.random.split(jax.random.key(3), 2)
    a = jax.numpy.array([[0.5, 2.0, 7.5]] * 2, "float32")
    slope = jax.grad(lambda a: p.bind(keys, a, log_space=False).sum())(a)
    names = [
        e.primitive.name
        for e in jax.make_jaxpr(lambda k, a: jax.random.gamma(k, a))(keys[0], a).eqns[0].params["jaxpr"].eqns
    ]
    return p.bind(keys, a, log_space=False), p.bind(keys[0], a[0], log_space=True), slope, "random_gamma" in names


def test_gamma_values_are_a_primitive():
    for found, wanted in zip(gammas(ferrax), expected(gammas), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5)
    keys = ferrax.random.split(ferrax.random.key(3), 2)
    rows = ferrax.vmap(lambda k: ferrax.random.gamma(k, 2.0))(keys)
    np.testing.assert_allclose(rows, [ferrax.random.gamma(k, 2.0) for k in keys], rtol=1e-6)
    with pytest.raises(ferrax.errors.KeyReuseError), ferrax.debug_key_reuse(True):
        ferrax.jit(lambda k: ferrax.random.gamma(k, 2.0) + ferrax.random.gamma(k, 3.0))(keys[0])


# --- flat trees


def flat_trees(jax):
    """What flat trees give, as trees of numbers and texts."""
    FlatTree = importlib.import_module(f"{jax.__name__}._src.tree_util").FlatTree
    tree = FlatTree.flatten({"a": 1, "b": (2, 3)})
    marked = FlatTree.flatten_static_argnums_argnames((1, "s", (2, 3)), {"k": 4, "m": "x"}, (-2,), ("m",))
    pair = FlatTree.pack((tree, (FlatTree.singleton([5]), tree)))
    big = tree.filter(lambda x: x > 1)
    first, second = tree.enumerate().unzip2()
    auxiliary, aux = tree.with_aux("note").unpack_aux()
    return {
        "mapped": tree.map(lambda x: x * 10).unflatten(),
        "two": list(tree.map2(lambda x, y: x + y, [1, 1, 1])),
        "three": list(tree.map3(lambda x, y, z: x + y * z, [1, 1, 1], (2, 2, 2))),
        "numbers": [list(first), second.unflatten()],
        "marked": [list(marked), marked.unflatten(), len(marked), str(marked.tree_without_statics)],
        "parts": [part.unflatten() for part in marked.unpack()],
        "packed": [list(pair), pair.unflatten(), len(FlatTree.pack({}))],
        "filtered": [list(big), big.map(lambda x: -x).unfilter().unflatten()],
        "masked": tree.filter_with_mask([True, False, True]).unfilter().unflatten(),
        "auxiliary": [auxiliary.unflatten(), aux],
        "paths": [[jax.tree_util.keystr(p) for p in tree.paths], [str(jax.tree_util.keystr(p)) for p in marked.paths]],
        "arguments": [list(FlatTree.flatten_args(1, (2,))), list(FlatTree.pack_args(tree, tree))],
        "equal": [tree == FlatTree.flatten({"a": 1, "b": (2, 3)}), tree == tree.map(str), hash(tree) == hash(tree)],
    }


def test_flat_trees():
    plain = lambda x: (
        {k: plain(v) for k, v in x.items()}
        if isinstance(x, dict)
        else [plain(y) for y in x]
        if isinstance(x, (list, tuple))
        else x
    )
    found, wanted = flat_trees(ferrax), expected(flat_trees)
    for name in wanted:
        assert plain(found[name]) == plain(wanted[name]), name
    FlatTree = ferrax._src.tree_util.FlatTree
    assert ferrax.experimental.scheduling_groups.FlatTree is FlatTree
    with pytest.raises(AssertionError):
        FlatTree.flatten([1]).update([1, 2])
    with pytest.raises(TypeError, match="tuples"):
        FlatTree.pack([1])


def test_kernels_for_tpus_are_names():
    """Libraries import them where they may run on a TPU (Keras); what they do on other devices needs none."""
    from ferrax.experimental.pallas.ops.tpu import splash_attention
    from ferrax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask

    assert splash_attention.SegmentIds(1, kv=2) == splash_attention_kernel.SegmentIds(q=1, kv=2)
    for make in (splash_attention.CausalMask, splash_attention_mask.NumpyMask, splash_attention_kernel.make_splash_mha):
        with pytest.raises(NotImplementedError, match="kernel for TPUs"):
            make((2, 2))
