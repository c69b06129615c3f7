"""Programs on GPUs: what they compute, what they take and give back, and what they refuse."""


def test_what_programs_compute(run):
    run("""
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)

    def f(x):
        y = jnp.tanh(x) @ jnp.ones((4, 2)) + x.sum(1, keepdims=True)
        return jnp.where(y > 0, y, -y).max(0), jnp.sort(x, axis=1), jnp.cumsum(x, axis=0)[::-1], jnp.argmax(x, 1)

    def loss(x):
        return (jnp.sin(x) * x).sum()

    def carried(x):
        rows, last = lax.scan(lambda c, row: (c * 0.5 + row, c.sum()), x[0], x)
        limit = lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, rows)
        return last, limit, lax.cond(rows[0] > 0, jnp.sin, jnp.cos, rows), lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x)

    def drawn(x):
        key = jax.random.key(3)
        return jax.random.normal(key, x.shape) + x, jax.random.permutation(key, 10)

    programs = [f, loss, jax.grad(loss), jax.vmap(jax.grad(loss)), jax.hessian(loss), carried, drawn]
    programs.append(jnp.linalg.cholesky)
    arguments = [x] * 7 + [np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)]
    for program, argument in zip(programs, arguments, strict=True):
        wanted = jax.tree.leaves(jax.jit(program)(argument))
        with jax.default_device(gpus[1]):
            for got in jax.jit(program)(jax.device_put(argument, gpus[1])), program(jnp.asarray(argument)):
                for g, w in zip(jax.tree.leaves(got), wanted, strict=True):
                    assert g.device == gpus[1] and g.dtype == w.dtype and g.shape == w.shape, program
                    np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6, err_msg=str(program))
    """)


def test_long_lines_and_updates_of_the_same_elements(run):
    run("""
    draw = np.random.default_rng(3)
    x = draw.integers(-9, 9, 20_000).astype(np.float32)
    rows = draw.integers(-9, 9, (4000, 6)).astype(np.float32)
    there, at = jax.device_put(x, gpus[0]), draw.integers(0, 40, 4000)
    for axis, operand in (0, x), (1, rows.T.copy()), (0, rows):
        got = jax.jit(lambda x, a=axis: (jnp.cumsum(x, a), jnp.sort(x, a), jnp.argsort(x, a, stable=True)))(
            jax.device_put(operand, gpus[0])
        )
        wanted = np.cumsum(operand, axis), np.sort(operand, axis), np.argsort(operand, axis, stable=True)
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(lax.top_k(there, 5)[1], np.argsort(-x, stable=True)[:5])
    for dtype in np.float32, np.int32:
        sums, last = np.zeros((40, 6), dtype), np.zeros((40, 6), dtype)
        np.add.at(sums, at, rows.astype(dtype))
        last[at] = rows
        zeros = jax.device_put(np.zeros((40, 6), dtype), gpus[0])
        np.testing.assert_array_equal(zeros.at[at].add(rows.astype(dtype)), sums)
        np.testing.assert_array_equal(zeros.at[at].set(rows.astype(dtype)), last)
        np.testing.assert_array_equal(zeros[:, 0].at[at].add(rows[:, 0].astype(dtype)), sums[:, 0])
    """)


def test_every_dtype_goes_there_and_back(run):
    run("""
    jax.config.update("jax_enable_x64", True)
    names = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
    for name in (names + " complex64 complex128 float8_e4m3fn float8_e5m2 int4 uint4").split():
        x = np.array([0, 1, 1, 0, 1]).astype(jnp.dtype(name))
        there = jax.device_put(x, gpus[0])
        assert there.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(there), x)
        np.testing.assert_array_equal(np.asarray(there[::-1]), x[::-1])
    empty = jax.device_put(np.ones((0, 3)), gpus[0])
    assert (empty + 1).shape == (0, 3) and float(empty.sum()) == 0
    """)


def test_donated_memory_becomes_the_results(run):
    run("""
    step = jax.jit(lambda x, y: (x + y, y * 2), donate_argnums=0)
    x, y = (jax.device_put(np.full(10_000, v, np.float32), gpus[0]) for v in (1.0, 2.0))
    step(x, y)[0].block_until_ready()
    assert x.is_deleted() and not y.is_deleted()
    x = jax.device_put(np.ones(10_000, np.float32), gpus[0])
    before = gpus[0].memory_stats()["bytes_in_use"]
    for _ in range(5):
        x, z = step(x, y)
    assert gpus[0].memory_stats()["bytes_in_use"] == before + z.nbytes
    assert x[0] == 11 and y[0] == 2 and z[0] == 4
    must = jax.jit(lambda x: x.sum(), donate_argnums=0, donate="must")
    assert "no result of the same shape and dtype" in message(ValueError, must, x)
    assert x[1] == 11
    """)


def test_programs_that_call_the_host(run):
    assert run(
        """
    def double(x):
        return np.asarray(x) * 2

    @jax.jit
    def f(x):
        y = jax.pure_callback(double, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x))
        jax.debug.print("sum {}", y.sum().astype(int))
        return lax.fori_loop(0, 3, lambda i, y: y + jax.pure_callback(double, y, y), y)

    x = jax.device_put(jnp.arange(4.0), gpus[1])
    got = f(x)
    assert got.device == gpus[1]
    np.testing.assert_allclose(got, 54 * np.sin(np.arange(4.0)), rtol=1e-5)
    """
    ) == "sum 3\n"  # fmt: skip


def test_fourier_transforms(run):
    run("""
    x = np.random.default_rng(0).normal(size=(3, 37, 40)).astype(np.float32)
    y = jax.device_put(x, gpus[0])
    for f in ("fft", "rfft", "ifft", "fft2", "rfft2"):
        for function in (getattr(jnp.fft, f), jax.jit(getattr(jnp.fft, f))):
            got = function(y)
            assert got.device == gpus[0]
            np.testing.assert_allclose(got, getattr(np.fft, f)(x), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(jnp.fft.irfft2(jnp.fft.rfft2(y)), x, rtol=1e-5, atol=1e-5)
    slope = jax.grad(lambda y: (abs(jnp.fft.rfft(y)) ** 2).sum())(y)
    np.testing.assert_allclose(slope[0, 0, :2], jax.grad(lambda x: (abs(jnp.fft.rfft(x)) ** 2).sum())(
        jax.device_put(x, cpu))[0, 0, :2], rtol=1e-4)
    """)


def test_foreign_functions_are_not_called_behind_the_gpus_back(run):
    run("""
    call = jax.ffi.ffi_call("Anything", jax.ShapeDtypeStruct((3,), np.float32))
    x = jax.device_put(np.ones(3, np.float32), gpus[0])
    for f in (call, jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: call(x) + 1, x))):
        text = message(NotImplementedError, f, x)
        assert text.startswith("the platform cuda is not handed the FFI target 'Anything'".replace("'", '"')), text
    """)


def test_a_program_says_what_it_runs_and_what_it_takes(run):
    run("""
    jax.config.update("jax_platforms", "cuda")
    lowered = jax.jit(lambda x: jnp.sort(jnp.sin(x)) + 1).lower(jnp.ones(300))
    assert '__global__' in lowered.as_text("kernels")
    memory = lowered.compile().memory_analysis()
    assert memory.argument_size_in_bytes == memory.output_size_in_bytes == 1200 and memory.temp_size_in_bytes >= 1200
    assert "No such compile option: 'fast'" in message(RuntimeError, lambda: lowered.compile({"fast": True}))
    """)


def test_a_program_that_runs_again_and_again(run):
    """The third run starts a graph; each run's own arrays are read and written."""
    run("""
    f = jax.jit(lambda x: jnp.cumsum(jnp.sort(x)) + x.sum())
    for i in range(6):
        x = jax.device_put(np.arange(50, 0, -1, dtype=np.float32) + i, gpus[0])
        np.testing.assert_array_equal(f(x), np.cumsum(np.sort(x)) + np.sum(x))
    compiled = driver.get("compilations")
    assert f(x).shape == (50,) and driver.get("compilations") == compiled
    """)


def test_threads_share_a_device(run):
    run("""
    import threading
    f = jax.jit(lambda x: jnp.sin(x) * 2 + x.sum())
    wanted, wrong = np.asarray(f(np.arange(100.0, dtype=np.float32))), []

    def work(device):
        for _ in range(20):
            got = f(jax.device_put(np.arange(100, dtype=np.float32), device))
            if not np.allclose(got, wanted, rtol=1e-5):
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(gpus[i % 2],)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
    """)


def test_a_nan_is_told_with_its_operation_and_line(run):
    run("""
    x = jax.device_put(np.array([1.0, 2.0, 0.0], np.float32), gpus[1])
    programs = {
        "log": lambda x: (jnp.sort(x) * jnp.log(x - 1) + 2).sum(),
        "sqrt": lambda x: lax.scan(lambda c, v: (c - 1, jnp.sqrt(c)), x, jnp.arange(4.0))[1],
        "cholesky": lambda x: jnp.linalg.cholesky(jnp.full((64, 64), x[0]) - 2),
    }
    with jax.debug_nans(True):
        for name, program in programs.items():
            for f in program, jax.jit(program):
                text = message(FloatingPointError, f, x)
                assert text.startswith(f"invalid value (nan) encountered in {name} at "), text
        assert "in iteration 1 of scan" in message(FloatingPointError, jax.jit(programs["sqrt"]), x)
    with jax.debug_infs(True):
        assert "(inf) encountered in log" in message(FloatingPointError, jax.jit(lambda x: jnp.log(x)[::-1]), x)
    """)
