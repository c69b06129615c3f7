"""Machine code that outlives the process, in the folder of the compilation cache."""

PROGRAM = """
f = jax.jit(lambda x: jnp.sin(x) * 2)
f(jax.device_put(jnp.arange(3.0), gpus[0])).block_until_ready()
from ferrax import _ferrax
print(driver.get("compilations"), *_ferrax.compilation_cache_counts(False))
"""


def test_code_is_kept_and_found_again(run, tmp_path):
    folder = tmp_path / "kept"
    setting = {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    # without a folder nothing is kept or counted
    assert run(PROGRAM) == "1 0 0\n"
    assert run(PROGRAM, **setting) == "1 0 1\n"
    assert run(PROGRAM, **setting) == "0 1 0\n"
    # for another architecture it is another program
    assert run(PROGRAM, FAKE_CUDA_CAPABILITY="80", **setting) == "1 0 1\n"
    # what compiled faster than is asked for is not kept
    slow = {**setting, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1000", "FAKE_CUDA_CAPABILITY": "75"}
    assert [run(PROGRAM, **slow) for _ in range(2)] == ["1 0 1\n"] * 2


def test_code_that_no_driver_takes_is_compiled_again_with_a_warning(run, tmp_path):
    setting = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert run(PROGRAM, **setting) == "1 0 1\n"
    program = """
import warnings
driver.set("refuse", 1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    jax.jit(lambda x: jnp.sin(x) * 2)(jax.device_put(jnp.arange(3.0), gpus[0])).block_until_ready()
print(driver.get("compilations"), [str(w.message) for w in caught])
"""
    text = run(program, **setting)
    assert text.startswith("1 ['the compilation cache could not load") and "CUDA_ERROR_INVALID_IMAGE" in text, text
    assert run(PROGRAM, **setting) == "0 1 0\n"
