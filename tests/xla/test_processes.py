"""Arrays and programs over the devices of several processes, on XLA's CPU client: `make test-xla`.

The plugin's devices exchange what they have through the coordinator's keys (`plugin/processes.h`), as those of NVIDIA's
GPUs find each other by it. Each test is a program that two or four processes run, with two devices each.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.processes import printed

pytestmark = pytest.mark.skipif(
    os.environ.get("FERRAX_PLATFORMS") != "xla_cpu", reason="needs a plugin of XLA's CPU client: make test-xla"
)

ARRAYS = """
    jnp = jax.numpy
    P, Named = jax.P, jax.NamedSharding
    gathered = lambda x: multihost_utils.process_allgather(x, tiled=True)
    mesh = jax.make_mesh((jax.device_count(),), ("x",))
    by_x = Named(mesh, P("x"))
    auto = (jax.sharding.AxisType.Auto,) * 2
    table = jax.make_mesh((count, 2), ("p", "d"), auto)
    numbers = np.arange(16, dtype=np.float32)
    x = jax.make_array_from_callback((16,), by_x, lambda index: numbers[index])
"""


def lines_of(text: str, count: int = 2, **options: object) -> list[list[str]]:
    """What each process prints of a program that has arrays over all of them."""
    return printed(ARRAYS + text, count, **options)


@pytest.mark.parametrize("count", [2, 4])
def test_parts_are_where_their_devices_are(count):
    lines = lines_of(
        """
    print([d.process_index for d in jax.devices()], jax.devices()[2 * index] == jax.local_devices()[0])
    print(x.is_fully_addressable, x.sharding == by_x, x.shape, repr(x), str(x))
    print([(s.device.id, s.index[0].start, s.data.tolist()) for s in x.addressable_shards])
    print([(s.device.process_index, s.data is None) for s in x.global_shards])
    print(error(lambda: np.asarray(x)))
    print(np.array_equal(gathered(x), numbers), x.addressable_data(1).devices() == {jax.local_devices()[1]})
    """,
        count,
    )
    size = 8 // count
    for index, (devices, whole, own, parts, fetched, same) in enumerate(lines):
        assert devices == f"{[i // 2 for i in range(2 * count)]} True"
        assert whole == "False True (16,) Array(shape=(16,), dtype=float32) Array(shape=(16,), dtype=float32)"
        starts = [(2 * index + i) * size for i in range(2)]
        ids = [2048 * index + i for i in range(2)]
        assert own == str(
            [(i, at, [float(n) for n in range(at, at + size)]) for i, at in zip(ids, starts, strict=True)]
        )
        assert parts == str([(i // 2, i // 2 != index) for i in range(2 * count)])
        assert fetched.startswith("JaxRuntimeError: Fetching value for `jax.Array` that spans non-addressable")
        assert "started at" not in fetched
        assert same == "True True"


def test_programs_have_the_results_of_one_process():
    lines = lines_of(
        """
    def same(name, out, want):
        whole = np.asarray(out) if out.is_fully_replicated else gathered(out)
        print(name, whole.dtype == want.dtype, np.allclose(whole, want, rtol=1e-5, atol=1e-5))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    put = lambda v, *spec: jax.device_put(v, Named(table, P(*spec)))
    same("eager", x * 2 + 1, numbers * 2 + 1)
    same("sum", jax.jit(lambda v: v.sum())(x), numbers.sum())
    same("product", jax.jit(jnp.matmul)(put(a, "p", "d"), put(b, "d", "p")), a @ b)
    same("moved", jax.device_put(put(a, "p", "d"), Named(table, P("d", "p"))), a)
    same("whole", jax.device_put(put(a, "p", "d"), Named(table, P())), a)
    same("sorted", jax.jit(lambda v: jnp.sort(v, axis=0))(put(a, "p", "d")), np.sort(a, axis=0))
    same("loop", jax.jit(lambda v: jax.lax.fori_loop(0, 3, lambda i, v: v @ v / 8, v))(put(a, "p")), loop(a))
    same("grad", jax.grad(lambda v: (v ** 3).sum())(put(a, None, "p")), 3 * a ** 2)
    same("vmap", jax.vmap(lambda r: r.max())(put(a, "p", "d")), a.max(1))
    same("int", jax.jit(lambda v: (v % 5).cumsum())(jnp.arange(16, device=Named(table, P()))),
         (np.arange(16, dtype=np.int32) % 5).cumsum(dtype=np.int32))
    same("bool", jax.jit(lambda v: (v > 0).any(axis=0))(put(a, "p")), (a > 0).any(axis=0))
    halves = jax.jit(lambda v: v.astype(jnp.bfloat16).sum(axis=0).astype(jnp.float32))
    same("bfloat16", halves(put(np.ones((8, 4)), "p")), np.full(4, 8, np.float32))
    same("complex", jax.jit(lambda v: (v * 1j).sum(axis=0))(put(a, "p")), (a * 1j).sum(axis=0).astype(np.complex64))
    def mapped(v):
        i = jax.lax.axis_index("x")
        right = jax.lax.ppermute(v, "x", [(k, (k + 1) % 4) for k in range(4)])
        total = jax.lax.all_gather(v, "x", tiled=True).sum()[None]
        scattered = jax.lax.psum_scatter(jnp.tile(v, 4), "x", tiled=True)
        return right + jax.lax.psum(v, "x") * i, total, scattered, jax.lax.all_to_all(v, "x", 0, 0, tiled=True)
    shift, total, scattered, turned = jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(x)
    parts = numbers.reshape(4, 4)
    shifted = np.roll(parts, 1, 0) + np.outer(np.arange(4), parts.sum(0))
    same("ppermute", shift, shifted.ravel().astype(np.float32))
    same("all_gather", total, np.full(4, numbers.sum(), np.float32))
    same("psum_scatter", scattered, np.tile(parts.sum(0), 4).astype(np.float32))
    same("all_to_all", turned, parts.T.ravel())
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), by_x)
    want = np.asarray(jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(0), 8)))
    same("random", jax.jit(jax.vmap(jax.random.normal))(keys), want)
    """.replace("loop(a)", "np.float32(1) * (lambda v: [v := v @ v / 8 for _ in range(3)][-1])(a)")
    )
    for lines_of_one in lines:
        assert len(lines_of_one) == 18
        assert all(line.endswith("True True") for line in lines_of_one), lines_of_one


def test_arrays_are_made_of_what_processes_have():
    lines = lines_of("""
    own = np.arange(8, dtype=np.float32) + 100 * index
    y = jax.make_array_from_process_local_data(by_x, own)
    print(y.shape, gathered(y).tolist())
    z = jax.make_array_from_process_local_data(Named(table, P("p", "d")), np.full((2, 4), index), (4, 4))
    print(z.shape, gathered(z).tolist())
    w = jax.make_array_from_process_local_data(Named(table, P(None, "p")), np.full((2, 3), index, np.int8))
    print(w.shape, w.dtype, gathered(w).tolist())
    parts = [jax.device_put(np.full(4, d.id % 7), d) for d in jax.local_devices()]
    v = jax.make_array_from_single_device_arrays((16,), by_x, parts)
    print(gathered(v).tolist())
    u = multihost_utils.host_local_array_to_global_array(own, table, P("p"))
    back = multihost_utils.global_array_to_host_local_array(u, table, P("p"))
    print(u.shape, back.shape, np.array_equal(back, own), back.sharding.mesh.devices.shape)
    print(multihost_utils.global_array_to_host_local_array(jnp.stack([x, x]), mesh, P()).shape)
    print(jnp.zeros((8, 2), device=by_x).addressable_data(0).shape, jnp.ones_like(x).sharding == by_x)
    keys = jax.make_array_from_callback((4,), by_x, lambda i: jax.random.split(jax.random.key(1), 4)[i])
    words = jax.random.key_data(jax.random.split(jax.random.key(1), 4))
    print(keys.dtype, np.array_equal(gathered(jax.random.key_data(keys)), words))
    """)
    tenths = [float(n) for n in [*range(8), *range(100, 108)]]
    for line in lines:
        assert line[0] == f"(16,) {tenths}"
        assert line[1] == "(4, 4) [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]"
        assert line[2] == "(2, 6) int8 [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]]"
        assert line[3] == str([n for d in (0, 1, 2048 % 7, 2049 % 7) for n in [d] * 4])
        assert line[4] == "(16,) (8,) True (1, 2)"
        assert line[5] == "(2, 16)"
        assert line[6] == "(2, 2) True"
        assert line[7] == "key<fry> True"


def test_misuse_is_an_error():
    lines = lines_of("""
    there = jax.devices()[2 * (1 - index)]
    print(repr(jax.device_put(np.ones(2), there)))
    print(error(lambda: multihost_utils.process_allgather(x)))
    print(error(lambda: jax.jit(lambda v: v + x)(jnp.ones(16))))
    print(error(lambda: jax.device_put(np.full(16, index), by_x)).splitlines()[0])
    print(error(lambda: jax.make_array_from_process_local_data(by_x, np.ones(5))))
    print(error(lambda: jax.make_array_from_process_local_data(by_x, np.ones(4), (16,))))
    print(error(lambda: jax.make_array_from_single_device_arrays((16,), by_x, [jnp.ones(4)])))
    print(error(lambda: jax.device_get(x)), error(lambda: x.tolist()))
    jax.distributed.shutdown()
    print(error(lambda: jax.distributed.initialize(f"localhost:{port}", 2, index)))
    """)
    for line in lines:
        assert line[0] == "Array(shape=(2,), dtype=float32)"  # nothing of it is here
        assert line[1] == "ValueError: Gathering global non-fully-addressable arrays only supports tiled=True"
        assert line[2].startswith("JaxRuntimeError: Closing over jax.Array that spans non-addressable")
        assert line[3].startswith("AssertionError: <class 'numpy.ndarray'> passed to device_put is not the same")
        assert "IndivisibleError" in line[4]
        assert line[5] == (
            "ValueError: local_data has 4 elements along axis 0, and the devices of this process have 2 of 4 parts of "
            "16 there: 8 elements"
        )
        assert line[6].startswith("ValueError: Expected 2 per-device arrays")
        assert line[7].count("Fetching value for `jax.Array`") == 2
        assert "jax.distributed.initialize() must be called before any JAX calls" in line[8]


def test_host_calls_run_in_every_process():
    lines = lines_of("""
    y = jax.jit(lambda v: jax.debug.print("sum {}", v.sum()) or v * 2)(x)
    like = jax.ShapeDtypeStruct((16,), np.float32)
    z = jax.jit(lambda v: jax.pure_callback(np.flip, like, v) + v)(jax.device_put(x, Named(mesh, P())))
    print(np.array_equal(gathered(y), numbers * 2), np.asarray(z).tolist() == [15.0] * 16)
    """)
    for line in lines:
        assert line == ["sum 120.0", "True True"]


TRAINING = """
    def loss(w, inputs, targets):
        return ((jnp.tanh(inputs @ w["in"]) @ w["out"] - targets) ** 2).mean()
    rng = np.random.default_rng(1)
    start = {"in": rng.standard_normal((8, 16)).astype(np.float32) * 0.3, "out": np.zeros((16, 2), np.float32)}
    specs = {"in": P(None, "d"), "out": P("d")}
    inputs, targets = rng.standard_normal((32, 8)).astype(np.float32), rng.standard_normal((32, 2)).astype(np.float32)
    step = jax.jit(lambda w, i, t: jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w, i, t)), donate_argnums=0)
    w = jax.tree.map(lambda p, spec: jax.device_put(p, Named(table, spec)), start, specs)
    own = slice(index * 32 // count, (index + 1) * 32 // count)
    batch = [jax.make_array_from_process_local_data(Named(table, P("p")), v[own]) for v in (inputs, targets)]
"""


def test_training_over_processes_is_that_of_one():
    lines = lines_of(
        TRAINING
        + """
    for _ in range(30):
        w = step(w, *batch)
    alone = jax.tree.map(jnp.asarray, start)
    for _ in range(30):
        alone = step(alone, inputs, targets)
    print(w["in"].sharding.spec, float(jax.jit(loss)(w, *batch)) < float(loss(start, inputs, targets)))
    print(all(np.allclose(gathered(w[k]), alone[k], rtol=1e-4, atol=1e-5) for k in w))
    """,
        2,
    )
    assert lines == [["P(None, 'd') True", "True"]] * 2


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize(("end", "code"), [("os._exit(9)", 9), ("raise OSError('no data')", 1)])
def test_a_process_that_ends_while_training_is_an_error_of_the_others(end, code, victim):
    begun = time.monotonic()
    codes = [1, 1]
    codes[victim] = code
    lines = lines_of(
        TRAINING
        + f"""
    for n in range(1000):
        if index == {victim} and n == 5:
            {end}
        try:
            w = step(w, *batch)
            jax.block_until_ready(w)
        except Exception as e:
            print(f"{{type(e).__name__}}: {{e}}".splitlines()[0], flush=True)
            raise
    """,
        codes=tuple(codes),
    )
    assert time.monotonic() - begun < 60
    (line,) = lines[1 - victim]
    assert line.startswith("JaxRuntimeError: UNAVAILABLE:") and f"process {victim}" in line, line


def test_arrays_go_from_processes_to_others():
    """A pipeline whose stages are on devices of different processes, as JAX's page on several processes has one."""
    lines = lines_of(
        """
    explicit = (jax.sharding.AxisType.Explicit,)
    half = jax.device_count() // 2
    first, second = (jax.make_mesh((half,), ("a",), explicit, devices=d)
                     for d in (jax.devices()[:half], jax.devices()[half:]))
    table = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = jax.jit(lambda x: 2 * x)(jax.device_put(table, Named(first, P("a"))))
    for spec in (P("a"), P(None, "a"), P()):
        there = jax.device_put(y, Named(second, spec))
        z = jax.jit(lambda x: x + 1)(there)
        right = all(np.array_equal(s.data, (2 * table + 1)[s.index]) for s in z.addressable_shards)
        print(len(z.addressable_shards), right, there.sharding == Named(second, spec),
              z.sharding.is_equivalent_to(there.sharding, 2))
    total = jnp.sum(z)
    print(repr(total) if index < 2 else float(total))
    stages = [jax.local_devices(process_index=i)[0] for i in range(count)]
    found = []
    for batch in range(3):
        v = np.full(4, batch, np.float32)
        for i, device in enumerate(stages):
            v = jax.jit(lambda x: 3 * x + i)(jax.device_put(v, device))
        found.append(v)
    print([v.devices() == {stages[-1]} for v in found])
    print([v.tolist() for v in found] if index == count - 1 else {repr(v) for v in found})
    key = jax.device_put(jax.device_put(jax.random.key(7), stages[0]), stages[-1])
    print(key.dtype, jax.random.key_data(key).tolist() if index == count - 1 else key.shape)
    print(len(jax.device_put(y, Named(second, P()), donate=True).addressable_shards), y.is_deleted())
        """,
        4,
    )
    for index, (rows, columns, whole, total, there, found, key, donated) in enumerate(lines):
        number = 2 if index > 1 else 0
        assert rows == columns == whole == f"{number} True True True"
        assert total == ("Array(shape=(), dtype=float32)" if index < 2 else "4096.0")
        assert there == "[True, True, True]"
        batches = [float(b * 81 + 18) for b in range(3)]
        assert found == (str([[b] * 4 for b in batches]) if index == 3 else "{'Array(shape=(4,), dtype=float32)'}")
        assert key == f"key<fry> {[0, 7] if index == 3 else ()}"
        assert donated == f"{number} True"


def test_arrays_that_go_elsewhere_in_each_process_are_an_error():
    lines = lines_of(
        """
    print(error(lambda: jax.device_put(x, jax.local_devices()[0])))
    own = jax.device_put(numbers, jax.devices()[0])
    print(error(lambda: jax.device_put(own, by_x)) if index else jax.device_put(own, by_x).sharding == by_x)
        """
    )
    for index, (elsewhere, one) in enumerate(lines):
        assert elsewhere.startswith(
            "ValueError: jax.device_put to devices of other processes has to be the same in all"
        )
        assert f"process {1 - index} puts float32[16] on devices [{2048 * (1 - index)}] by P()" in elsewhere
        assert one == "True" or one.startswith("NotImplementedError: jax.device_put from a device of process 0 alone")


def test_arrays_of_some_processes():
    """Parts that only two of four processes have, and batches that each loads for itself."""
    lines = lines_of(
        """
    own = jax.local_devices()
    devices = jax.local_devices(process_index=0) + jax.local_devices(process_index=1)
    some = Named(jax.make_mesh((2, 2), ("i", "j"), auto, devices=devices), P("i", "j"))
    parts = [jax.device_put(jnp.array([[2 * index + i]]), d) for i, d in enumerate(own)] if index < 2 else []
    made = jax.make_array_from_single_device_arrays((2, 2), some, parts, dtype=jnp.int32)
    print([s.data.item() for s in made.addressable_shards], made.dtype)
    print((made + 1).sum().item() if index < 2 else repr((made + 1).sum()))
    batch = np.random.default_rng(index).random((4, 3))
    whole = jax.make_array_from_process_local_data(by_x, batch)
    print(whole.shape, [s.data.shape for s in whole.addressable_shards])
    print(np.array_equal(gathered(whole)[4 * index : 4 * index + 4], batch.astype(np.float32)))
        """,
        4,
    )
    for index, (parts, total, batch, same) in enumerate(lines):
        has = index < 2
        assert parts == f"{[2 * index, 2 * index + 1] if has else []} int32"
        assert total == ("10" if has else "Array(shape=(), dtype=int32)")
        assert (batch, same) == ("(16, 3) [(2, 3), (2, 3)]", "True")
