"""What goes wrong on a GPU: typed errors where a result is used or in the call, and nothing that is left."""


def test_an_error_of_a_run_comes_where_its_result_is_used_and_names_the_call(run):
    run("""
    f = jax.jit(lambda x: jnp.sin(x) + 1)
    x = jax.device_put(jnp.arange(4.0), gpus[0])
    f(x).block_until_ready()

    def program():
        return f(x)  # the call

    driver.set("fault", driver.get("kernels") + 1)
    y = program()
    for use in (y.block_until_ready, lambda: np.asarray(y), lambda: float(y[0])):
        text = message(RuntimeError, use)
        assert "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" in text, text
        assert "this process cannot use the GPU any more" in text
    text = message(RuntimeError, y.block_until_ready)
    assert "The computation that failed was started at" in text and "(program)" in text, text
    """)


def test_memory_that_is_not_there_names_what_takes_it(run):
    run(
        """
    def made(n):
        return jax.device_put(np.ones(n * 250_000, np.float32), gpus[0])

    large = made(3)
    small = [jnp.sin(large[:1000]) for _ in range(12)]
    def more():
        return made(2)
    text = message(MemoryError, more)
    assert "CUDA_ERROR_OUT_OF_MEMORY: 1.9 MiB more do not fit in the memory of GPU 0 (Fake GPU): of its 4.0 MiB" in text
    lines = text.splitlines()
    assert lines[1].startswith("  an array of 2.9 MiB, made at <string>:") and "(made)" in lines[1], text
    assert "smaller ones" in text, text
    text = message(MemoryError, lambda: large * 2)
    assert "2.9 MiB more do not fit" in text
    del large
    assert (made(2) + 1)[0] == 2
    """,
        FAKE_CUDA_MEMORY=str(4 << 20),
    )


def test_whichever_call_of_the_driver_fails_there_is_an_error_and_then_it_works(run):
    run("""
    import gc
    f = jax.jit(lambda x: (jnp.cumsum(x * 2), jnp.sort(x)), donate_argnums=0)
    big = np.arange(300, dtype=np.float32)

    def whole():
        x = jax.device_put(big, gpus[0])
        first = lax.while_loop(lambda v: v < 9, lambda v: v + 4, x[0]).tolist()
        return [r.tolist() for r in f(x)] + [first]

    wanted = whole()
    for _ in range(3):
        assert whole() == wanted
    gc.collect()
    before = gpus[0].memory_stats()["bytes_in_use"]
    start = driver.get("calls")
    assert whole() == wanted
    calls = driver.get("calls") - start
    errors = 0
    for n in range(1, calls + 1):
        driver.fail(n, 999)
        try:
            got = whole()
        except RuntimeError as error:
            errors += 1
            assert "CUDA_ERROR_UNKNOWN: unknown error (cu" in str(error), error
        else:
            assert got == wanted, n
        driver.fail(0, 0)
        assert whole() == wanted, n
        gc.collect()
        assert gpus[0].memory_stats()["bytes_in_use"] == before, n
    assert errors > calls // 3, (errors, calls)
    """)


def test_a_source_that_the_compiler_refuses_is_our_fault_and_says_so(run):
    run("""
    import os
    x = jax.device_put(jnp.arange(3.0), gpus[0])
    (x + 1).block_until_ready()
    os.environ["PATH"] = "/nowhere"
    text = message(jax.errors.InternalError, jax.jit(lambda x: x * 123.456 - 3), x)
    assert "NVRTC 12.4 refuses a source of ferrax's for sm_90" in text, text
    """)
