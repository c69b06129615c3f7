"""The compilation cache: programs that one process compiled are found by the next, and only by whom they fit."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, sys, warnings
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from ferrax import _ferrax

jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
"""

WAVE = """
@jax.jit
def wave(x):
    return jnp.sin(x) @ x.T + 1

x = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
y = np.asarray(wave(x))
np.testing.assert_allclose(y, np.sin(x) @ x.T + 1, rtol=1e-5)
print(*_ferrax.compilation_cache_counts(False))
"""


def run(program, folder, **environment):
    """What a process prints that keeps programs in a folder."""
    text = PROGRAM + textwrap.dedent(program)
    variables = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder), **environment}
    done = subprocess.run(
        [sys.executable, "-c", text], env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def entries(folder):
    return sorted(p for p in pathlib.Path(folder).glob("*") if p.name.endswith("-cache"))


def test_the_next_process_finds_what_one_compiled(tmp_path):
    folder = tmp_path / "made when needed"
    (found, missed), _ = run(WAVE, folder)
    assert found == "0" and int(missed) >= 1
    kept = entries(folder)
    assert len(kept) == int(missed) and any("wave" in p.name for p in kept)
    assert run(WAVE, folder)[0] == [missed, "0"]
    # the same text for another compiler is another program
    assert run(WAVE, folder, XLA_FLAGS="--xla_cpu_enable_fast_math=false")[0] == ["0", missed]
    assert len(entries(folder)) == 2 * int(missed)


def test_a_damaged_entry_is_compiled_again_with_a_warning(tmp_path):
    (_, missed), _ = run(WAVE, tmp_path)
    for i, path in enumerate(entries(tmp_path)):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if i % 2 else whole[:-1] + bytes([whole[-1] ^ 1]))
    counts, said = run(WAVE, tmp_path)
    assert counts == ["0", missed]
    assert said.count("the compilation cache could not read") == int(missed) and "is damaged" in said
    counts, said = run(WAVE, tmp_path)
    assert counts == [missed, "0"] and "compilation cache" not in said


def test_errors_instead_of_warnings(tmp_path):
    run(WAVE, tmp_path)
    for path in entries(tmp_path):
        path.write_bytes(b"")
    program = 'jax.config.update("jax_raise_persistent_cache_errors", True)\n' + textwrap.dedent("""
    try:
        jnp.sin(np.float32(1)) + jax.jit(lambda x: x)(1)
        exec(WAVE)
    except jax.errors.JaxRuntimeError as e:
        print("could not read" in str(e))
    """)
    assert run(f"WAVE = {WAVE!r}\n" + program, tmp_path)[0] == ["True"]


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("no folder")
    _, said = run(WAVE, tmp_path / "file" / "folder")
    assert "the compilation cache could not" in said


def test_settings_say_what_is_kept(tmp_path):
    program = """
    from ferrax.experimental.compilation_cache import compilation_cache

    def kept(folder, k, **settings):
        compilation_cache.set_cache_dir(folder)
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        assert float(jax.jit(lambda x: x * k + 1)(2.0)) == 2 * k + 1
        print(len(os.listdir(folder)) if folder and os.path.isdir(folder) else 0, end=" ")
        return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)) if folder else 0

    here = os.environ["JAX_COMPILATION_CACHE_DIR"]
    kept(None, 2)
    kept(here, 3, jax_enable_compilation_cache=False)
    kept(here, 4, jax_enable_compilation_cache=True, jax_persistent_cache_min_compile_time_secs=1000.0)
    kept(here, 5, jax_persistent_cache_min_compile_time_secs=0.0, jax_persistent_cache_min_entry_size_bytes=10**9)
    kept(here, 6, jax_persistent_cache_min_entry_size_bytes=-1, jax_compilation_cache_max_size=0)
    size = kept(here, 7, jax_compilation_cache_max_size=-1)
    assert kept(here, 8, jax_compilation_cache_max_size=size * 3 // 2) < size * 3 // 2
    warnings.simplefilter("error")
    try:
        kept(here, 9, jax_compilation_cache_max_size=10)
    except UserWarning as e:
        print("larger" in str(e))
    """
    assert run(program, tmp_path)[0] == ["0", "0", "0", "0", "0", "1", "1", "True"]


@pytest.mark.parametrize("seconds", ["0", "1"])
def test_the_environment_says_how_long_compiling_must_take(tmp_path, seconds):
    program = WAVE.replace("print", "jax.config.jax_persistent_cache_min_compile_time_secs; print")
    text = "import os\n" + program
    environment = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1000" if seconds == "1" else "0"}
    variables = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path), **environment}
    command = [sys.executable, "-c", PROGRAM.replace("jax.config.update", "(lambda *_: None)") + text]
    subprocess.run(command, env=variables, check=True, timeout=300, capture_output=True)
    assert bool(entries(tmp_path)) == (seconds == "0")


def test_processes_write_at_once(tmp_path):
    variables = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM + WAVE]
    running = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [p.wait(300) for p in running] == [0, 0, 0]
    for p in running:
        p.stdout.close()
    (found, missed), said = run(WAVE, tmp_path)
    assert missed == "0" and int(found) == len(entries(tmp_path)) and "compilation cache" not in said


def test_options_of_the_compiler_are_part_of_the_key(tmp_path):
    program = """
    f = lambda x: x * 2
    for options in (None, {"xla_cpu_enable_fast_math": True}, {"xla_cpu_enable_fast_math": False}, None):
        assert float(jax.jit(f, compiler_options=options)(3.0)) == 6
        assert float(jax.jit(f).lower(3.0).compile(compiler_options=options)(3.0)) == 6
        print(*_ferrax.compilation_cache_counts(False), end=" ")
    """
    counts = [int(n) for n in run(program, tmp_path)[0]]
    misses = counts[1::2]
    # each set of options is compiled once, and found by the stages' program or compiled by it
    assert misses[0] < misses[1] < misses[2] == misses[3]


def test_unknown_and_wrong_options_raise():
    program = """
    for options in ({"x": 1}, {"xla_cpu_enable_fast_math": "perhaps"}):
        for call in (
            lambda: jax.jit(lambda x: x, compiler_options=options)(1.0),
            lambda: jax.jit(lambda x: x).lower(1.0).compile(compiler_options=options),
            lambda: jax.jit(lambda x: x, compiler_options=options).lower(1.0).compile(),
        ):
            try:
                call()
            except jax.errors.JaxRuntimeError as e:
                print(str(e).startswith("INVALID_ARGUMENT: "), list(options)[0] in str(e))
    """
    assert run(program, "")[0] == ["True"] * 12
