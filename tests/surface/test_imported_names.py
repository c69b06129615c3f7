"""Names of JAX's insides that libraries import: what they do here, or which error says why not."""

import functools
import gzip
import warnings

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.experimental import buffer_callback, compute_on, scheduling_groups, shard_alike, xla_metadata
from ferrax.extend import backend, lowering, xla
from ferrax.interpreters import pxla
from tests.recorded import expected

X = np.arange(3, dtype=np.float32)
X_ARRAY = jnp.asarray(X)


def test_caches_of_users_are_cleared():
    squares = functools.lru_cache(lambda n: n * n)
    backend.register_backend_cache(squares, "squares")
    for clear in (ferrax.clear_caches, backend.clear_backends, lambda: backend.clear_backends(_crash=True)):
        squares(2)
        assert squares.cache_info().currsize == 1
        clear()
        assert squares.cache_info().currsize == 0
    with pytest.raises(TypeError, match="cache_clear"):
        backend.register_backend_cache({}, "nothing")


def test_backends():
    assert backend.backend_xla_version() is None
    with pytest.raises(RuntimeError):
        backend.backend_xla_version("rocket")
    with pytest.raises(NotImplementedError, match="compiler_options"):
        backend.get_compile_options(1, 1)
    with pytest.raises(NotImplementedError, match="register_plugin"):
        backend.register_backend_factory("rocket", lambda: None, priority=3)


def test_what_a_backend_tells():
    client = backend.get_backend("cpu")
    x = jnp.full((7, 45), 2.5)
    assert b"float32[7,45]" in gzip.decompress(client.heap_profile())
    assert x.shape in [a.shape for a in client.live_arrays()]
    assert client.host_id() == client.task_id() == client.process_index()
    assert client.device_from_local_hardware_id(0) == ferrax.devices()[0]
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="local_hardware_id 9999"):
        client.device_from_local_hardware_id(9999)


def test_devices():
    device = ferrax.devices()[0]
    x = jnp.full(7, 2.5)
    with pytest.warns(DeprecationWarning, match=r"jax\.live_arrays"):
        assert any(a is x or a.shape == (7,) for a in device.live_buffers())
    assert device.poison_execution(1, "text") is False
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="UNIMPLEMENTED"):
        device.get_stream_for_external_ready_events()


def test_variables_have_no_states():
    aval = ferrax.core.ShapedArray((), "float32")
    for arguments in ({}, {"initial_qdd": None}, {"initial_qdd": None, "final_qdd": None}):
        assert ferrax.extend.core.Var(aval, **arguments).aval == aval
    for name in ("initial_qdd", "final_qdd"):
        with pytest.raises(NotImplementedError, match="quasi-dynamic"):
            ferrax.extend.core.Var(aval, **{name: 1})


def test_lowerings_for_mlir():
    with pytest.raises(NotImplementedError, match="lower_fun"):
        lowering.JaxIrContext()
    with pytest.raises(NotImplementedError, match=r"upstream_dialects\.append"):
        lowering.upstream_dialects.append(1)
    with pytest.raises(NotImplementedError, match="compiler"):
        xla.register_hlo_module_transformation(lambda module: None, name="nothing")
    assert not xla.clear_hlo_module_transformation("nothing", xla.PipelineStage.POST_SCHEDULER)
    context = lowering.LoweringRuleContext(None, None, None, None, [], [1], None, None, None)
    assert context.replace(avals_out=[2]).avals_out == [2] and context.avals_out == [1]


def test_names_of_the_core():
    found = {}
    for name in (
        "OutputType",
        "abstract_token",
        "concretization_function_error",
        "custom_typechecks",
        "is_concrete",
        "is_constant_dim",
        "is_constant_shape",
        "literalable_types",
        "no_axis_name",
    ):
        with pytest.warns(DeprecationWarning, match=f"jax.core.{name} is deprecated"):
            found[name] = getattr(ferrax.core, name)
    assert found["is_constant_shape"]((2, np.int64(3))) and not found["is_constant_dim"]("a")
    assert {float, np.float32, bool} <= found["literalable_types"] and str not in found["literalable_types"]
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match="`float` function"):
        ferrax.jit(lambda x: found["concretization_function_error"](float, True)(None, x))(1.0)


def concrete_in(jax):
    """What `is_concrete` says of traced values, by transformation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_concrete = jax.core.is_concrete
    found = []

    def f(x):
        found.append(is_concrete(x))
        return x

    jax.jvp(f, (1.0,), (1.0,))
    jax.vmap(f)(np.ones(2))
    jax.jit(f)(1.0)
    jax.grad(f)(1.0)
    return [*found, is_concrete(1.0), is_concrete(jax.numpy.ones(2))]


def test_what_is_concrete():
    assert concrete_in(ferrax) == expected(concrete_in)


def test_the_mesh_of_a_thread():
    mesh = ferrax.make_mesh((1,), ("x",))
    with pytest.warns(DeprecationWarning):
        env = pxla.thread_resources.env
    assert env.physical_mesh.empty and env.empty
    with ferrax.set_mesh(mesh):
        assert env.physical_mesh.empty
    with pytest.warns(DeprecationWarning), mesh:
        assert env.physical_mesh is mesh and "'x': 1" in repr(env)
    assert env.physical_mesh.empty


def test_primitives_of_linear_algebra():
    program = ferrax.make_jaxpr(ferrax.lax.linalg.cholesky)(np.eye(2, dtype=np.float32))
    assert ferrax.lax.linalg.cholesky_p in [e.primitive for e in program.eqns]
    assert ferrax.lax.linalg.triangular_solve_p.name == "triangular_solve"
    with pytest.raises(AttributeError):
        ferrax.lax.linalg.nothing_p


def test_places_and_notes():
    @ferrax.jit
    @compute_on.compute_on("device_host")
    def f(x):
        with xla_metadata.set_xla_metadata(note=1), compute_on.compute_on("gpu_stream:3"):
            return xla_metadata.set_xla_metadata({"y": 2 * x}, note="b")

    np.testing.assert_array_equal(f(X)["y"], 2 * X)
    for place in ("foo", "gpu_stream:", None):
        with pytest.raises(ValueError, match="Invalid compute type"), compute_on.compute_on(place):
            pass
    space = ferrax.memory.Space.Device
    twice = compute_on.compute_on2(compute_type="device_host", out_memory_spaces=space)(lambda x: 2 * x)
    np.testing.assert_array_equal(ferrax.jit(twice)(X), 2 * X)
    assert scheduling_groups.scheduling_group("a")(lambda x: x + 1)(1) == 2
    with pytest.raises(TypeError):
        xla_metadata.set_xla_metadata(lambda x: x)


def test_shard_alike():
    x, y = shard_alike.shard_alike({"a": X}, {"a": X + 1})
    np.testing.assert_array_equal(x["a"] + y["a"], 2 * X + 1)
    np.testing.assert_array_equal(ferrax.jit(lambda x: shard_alike.shard_alike(x, 2 * x)[1])(X), 2 * X)
    with pytest.raises(ValueError, match="leaves shapes"):
        shard_alike.shard_alike(X, X[1:])
    with pytest.raises(ValueError, match="Trees"):
        shard_alike.shard_alike(X, [X])


def add_one(context, out, x):
    assert context.stage.name == "EXECUTE" and out.writeable and not x.writeable
    assert not np.asarray(x).flags.writeable and (out.shape, out.dtype) == (x.shape, x.dtype)
    np.asarray(out)[...] = np.asarray(x) + 1


def test_buffer_callback():
    struct = ferrax.ShapeDtypeStruct((3,), np.float32)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        f = buffer_callback.buffer_callback(add_one, struct, vmap_method=method)
        rows = np.stack([X, 2 * X])
        np.testing.assert_array_equal(f(X), X + 1)
        np.testing.assert_array_equal(ferrax.jit(ferrax.vmap(f))(rows), rows + 1)
    with pytest.raises(ValueError, match="JVP"):
        ferrax.grad(lambda x: f(x).sum())(X)

    def increment(context, out, x):
        np.asarray(out["y"])[...] += 1

    aliased = buffer_callback.buffer_callback(increment, {"y": struct}, input_output_aliases={0: 0})
    np.testing.assert_array_equal(aliased(X)["y"], X + 1)
    with pytest.raises(ValueError, match="input_output_aliases"):
        buffer_callback.buffer_callback(increment, {"y": struct}, input_output_aliases={1: 0})(X)
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="return None"):
        buffer_callback.buffer_callback(lambda context, out, x: 5, struct)(X)
    with pytest.raises(ferrax.errors.JaxRuntimeError, match="UNIMPLEMENTED"):
        buffer_callback.buffer_callback(lambda context, out, x: print(context.stream), struct)(X)

    seen = []

    def note(context, out, x):
        seen.append(np.asarray(x).sum())

    g = ferrax.jit(lambda x: (buffer_callback.buffer_callback(note, (), has_side_effect=True)(x), x)[1])
    g(X), g(X)
    ferrax.effects_barrier()
    assert seen == [3.0, 3.0]


def test_processes_as_libraries_read_them():
    from ferrax._src import distributed

    state = distributed.global_state
    assert (state.process_id, state.num_processes, state.client, state.service) == (0, 1, None, None)
    assert distributed.initialize is ferrax.distributed.initialize


def test_checkpoints_are_an_interface():
    from ferrax.experimental.array_serialization import serialization
    from ferrax.extend import ifrt_programs

    class Manager(serialization.GlobalAsyncCheckpointManagerBase):
        check_for_errors = wait_until_finished = serialize = deserialize = lambda self: None

    Manager().check_for_errors()
    with pytest.raises(TypeError, match="abstract"):
        serialization.GlobalAsyncCheckpointManagerBase()
    assert serialization.is_remote_storage({"driver": "zarr", "kvstore": {"driver": "gcs", "bucket": "b"}})
    assert not serialization.is_remote_storage("/tmp/gs:")
    for use in (
        lambda: serialization.get_tensorstore_spec("/tmp/x"),
        lambda: ifrt_programs.ifrt_programs.make_plugin_program("x"),
    ):
        with pytest.raises(NotImplementedError, match=r"TensorStore|IFRT"):
            use()


def test_functions_beside_devices():
    from ferrax.experimental import colocated_python as beside

    double = beside.colocated_python(lambda x: x * 2)
    assert double(X_ARRAY).tolist() == [0, 2, 4]
    told = double.specialize(
        in_specs=((ferrax.ShapeDtypeStruct((3,), "float32"),), {}), out_specs_fn=lambda x: x, devices=ferrax.devices()
    )
    assert told(X_ARRAY).tolist() == [0, 2, 4]
    made = []

    @beside.colocated_python_class
    class Counter:
        def __init__(self, start):
            made.append(start)
            self.count = start

        def add(self, x):
            self.count = self.count + x
            return self.count

    counter = Counter(5)
    assert not made
    assert [counter.add(jnp.int32(1)).item(), counter.add(jnp.int32(2)).item(), made] == [6, 8, [5]]
    mesh = ferrax.make_mesh((1,), ("x",))
    assert beside.colocated_cpu_devices(mesh).shape == mesh.shape
    with pytest.raises(ValueError, match="No devices found"):
        beside.colocated_python(lambda: X_ARRAY)()
    assert beside.colocated_python(lambda: X_ARRAY).specialize(devices=ferrax.devices())().shape == (3,)
    with pytest.raises(ValueError, match="devices already specified"):
        told.specialize(devices=ferrax.devices())
    with pytest.raises(ValueError, match="of type int"):
        double(3)
    with pytest.raises(ValueError, match="must match"):
        told(X_ARRAY[:2])
    with pytest.raises(ValueError, match="out_specs_fn"):
        beside.colocated_python(lambda x: x[:1]).specialize(out_specs_fn=lambda x: x)(X_ARRAY)


def test_libraries_exclude_their_frames():
    import sys

    from ferrax._src import traceback_util

    frame = sys._getframe()
    assert traceback_util.include_frame(frame)
    traceback_util._exclude_paths.append(__file__)
    try:
        assert not traceback_util.include_frame(frame)
    finally:
        traceback_util._exclude_paths.remove(__file__)


def test_types_that_libraries_register_are_arrays():
    class Variable:
        def __init__(self, value):
            self.value = value

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.value, dtype)

    handlers = ferrax.interpreters.xla.canonicalize_dtype_handlers
    handlers[Variable] = handlers[np.ndarray]
    with pytest.raises(TypeError):
        jnp.sin(Variable(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        mappings = ferrax.core.pytype_aval_mappings
    mappings[Variable] = mappings[np.ndarray]
    assert np.array_equal(jnp.sin(Variable(X)), jnp.sin(X))
    assert np.array_equal(ferrax.jit(lambda x: x * 2)(Variable(X)), X * 2)
    assert mappings[np.float32](np.float32(3)) == ferrax.typeof(np.float32(3))
    assert handlers[np.ndarray](np.ones(2)).dtype == np.float32


def test_primitives_have_jaxs_names_and_numbers_of_results():
    for name in (n for n in dir(jax.lax) if n.endswith("_p")):
        ours, theirs = getattr(ferrax.lax, name), getattr(jax.lax, name)
        assert (ours.name, ours.multiple_results) == (theirs.name, theirs.multiple_results), name
