"""Plugins of the PJRT C API as platforms, where none is installed: names, places, errors; and the doctor's report.

What runs on a plugin is tested in `tests/xla`.
"""

import os
import subprocess
import sys

import pytest

import ferrax as jax
from ferrax import _ferrax, _plugins, doctor


def run(code, *arguments, check=True, **environment):
    """What a new process prints with these variables; with `check=False` its exit status and all it wrote."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FERRAX_", "JAX_"))} | environment
    command = [sys.executable, *(("-c", code) if code else ()), *arguments]
    done = subprocess.run(command, check=check, capture_output=True, text=True, env=env)
    return done.stdout.strip() if check else (done.returncode, done.stdout + done.stderr)


def refused(path):
    """What a process is told that asks twice for the devices of a plugin, and which device computes then."""
    return run(f"""
import ferrax as jax
jax.register_plugin("wanted", {str(path)!r})
for _ in range(2):
    try:
        jax.devices("wanted")
    except RuntimeError as e:
        print(e)
print(jax.numpy.ones(2).device)
""").splitlines()


def test_a_plugin_that_is_not_there_says_so_when_it_is_used(tmp_path):
    first, again, device = refused(tmp_path / "libnone.so")
    assert first == again and "wanted" in first and str(tmp_path / "libnone.so") in first and device == "cpu:0"


def test_a_file_that_is_no_library_is_named(tmp_path):
    path = tmp_path / "text.so"
    path.write_text("not a library")
    assert str(path) in "\n".join(refused(path))


def test_a_library_without_the_entry_point_is_named():
    assert "GetPjrtApi" in "\n".join(refused(_ferrax.__file__))


def test_plugins_are_tried_where_the_program_itself_says_where_ferrax_is(tmp_path):
    # a plugin is tried in another process, which does not know what this one's code put into `sys.path`
    path = tmp_path / "text.so"
    path.write_text("not a library")
    code = f"""
import sys
sys.path = {sys.path!r}
import ferrax as jax
try:
    jax.register_plugin("wanted", {str(path)!r})
    jax.devices("wanted")
except RuntimeError as e:
    print(e)
"""
    command = [sys._base_executable, "-I", "-c", code]  # which has no packages of its own
    text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert str(path) in text and "ModuleNotFoundError" not in text and "ends the process" not in text


@pytest.mark.parametrize("name", ["", "with space", "a-b", "ü"])
def test_names_that_a_platform_cannot_have(name):
    with pytest.raises(ValueError, match="platform's name"):
        jax.register_plugin(name, "/somewhere")


def test_a_name_is_given_once():
    text = run("""
import ferrax as jax
jax.register_plugin("twice", "/somewhere")
for name in ("twice", "cpu"):
    try:
        jax.register_plugin(name, "/elsewhere")
    except ValueError as e:
        print(e)
""")
    assert text.splitlines() == ["there is a platform twice already", "there is a platform cpu already"]


def test_options_have_types():
    with pytest.raises(TypeError, match="an option of a plugin is"):
        jax.register_plugin("optional", "/somewhere", {"a": object()})


def test_the_environment_names_plugins():
    text = run(
        "import ferrax as jax; from ferrax import _ferrax; print(_ferrax.platforms()); print(jax.devices())",
        FERRAX_PJRT_PLUGIN="one:/no/one.so, two:/no/two.so",
    )
    assert text.splitlines() == ["['cpu', 'one', 'two']", "[CpuDevice(id=0)]"]


def test_an_entry_without_a_path_is_an_error():
    status, text = run("import ferrax", check=False, FERRAX_PJRT_PLUGIN="one")
    assert status == 1 and "FERRAX_PJRT_PLUGIN is a list of name:path" in text


def test_a_platform_of_the_environment_that_is_not_there_is_an_error_of_its_first_use():
    code = "import ferrax.numpy as jnp\nprint('imported')\njnp.ones(3)"
    status, text = run(code, check=False, FERRAX_PLATFORMS="tpu")
    assert status == 1 and text.startswith("imported") and "Unknown backend tpu. Available" in text


def test_a_platform_may_be_asked_for_before_it_is_registered(tmp_path):
    code = f"""
import ferrax as jax, ferrax.numpy as jnp
jax.register_plugin("later", {str(tmp_path / "x.so")!r})
try:
    jnp.ones(3)
except RuntimeError as e:
    print(e)
"""
    assert str(tmp_path / "x.so") in run(code, JAX_PLATFORMS="later")


def test_wheels_are_found_without_importing_them(tmp_path, monkeypatch):
    folder = tmp_path / "jax_plugins" / "xla_cuda13"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "xla_cuda_plugin.so").write_text("")
    (tmp_path / "jax_plugins" / "empty").mkdir()
    (tmp_path / "libtpu").mkdir()
    (tmp_path / "libtpu" / "libtpu.so").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert list(_plugins.installed()) == [
        ("cuda", str(folder / "xla_cuda_plugin.so")),
        ("tpu", str(tmp_path / "libtpu" / "libtpu.so")),
    ]


def test_gpus_take_memory_when_they_need_it(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    assert _plugins._gpu_options() == {"preallocate": False, "memory_fraction": 0.5}
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    assert _plugins._gpu_options() == {"preallocate": True, "memory_fraction": 0.5, "allocator": "platform"}


def test_the_doctor_reports():
    text, well = doctor.report()
    assert well and "Platform cpu: works" in text and "kernels" in text


def test_the_doctor_fails_where_something_that_was_asked_for_is_missing():
    status, text = run(None, "-m", "ferrax.doctor", check=False, FERRAX_PLATFORMS="tpu,cpu")
    assert status == 1 and "Asked for, and not there: tpu" in text
    status, text = run(None, "-m", "ferrax.doctor", check=False, FERRAX_PLATFORMS="cpu")
    assert status == 0, text


def test_the_doctor_says_what_is_wrong_with_a_plugin():
    status, text = run(None, "-m", "ferrax.doctor", check=False, FERRAX_PJRT_PLUGIN="x:/no/such.so", JAX_PLATFORMS="x")
    assert status == 1 and "Platform x: does not work" in text and "/no/such.so" in text
