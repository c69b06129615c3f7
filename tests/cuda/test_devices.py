"""GPUs as devices: which there are, what runs where, and what is said where there are none."""

import pytest


def test_devices_and_placement(run):
    run("""
    assert [d.id for d in gpus] == [0, 1] and gpus == jax.devices("gpu") and jax.default_backend() == "cpu"
    assert gpus[0].device_kind == "Fake GPU" and str(gpus[1]) == "cuda:1" and repr(gpus[1]) == "CudaDevice(id=1)"
    x = jax.device_put(jnp.arange(6.0), gpus[1])
    assert x.device == gpus[1] and x.committed
    results = [x + 1, x[2], x[1:3], x.at[1].set(5.0), x.reshape(2, 3), jnp.sort(-x), jax.grad(lambda x: x @ x)(x)]
    assert {r.device for r in results} == {gpus[1]}
    wanted = [np.arange(6) + 1, 2, [1, 2], [0, 5, 2, 3, 4, 5], [[0, 1, 2], [3, 4, 5]], -np.arange(6)[::-1]]
    for r, w in zip(results, [*wanted, 2 * np.arange(6)], strict=True):
        np.testing.assert_array_equal(r, w)
    back = jax.device_put(x, cpu)
    assert back.device == cpu == (back + 1).device
    with jax.default_device(gpus[0]):
        assert jnp.zeros(3).device == gpus[0] == jax.jit(lambda: jnp.ones(2))().device
    with jax.default_device("gpu"):
        assert jnp.zeros(3).device == gpus[0]
    try:
        x + jax.device_put(1.0, gpus[0])
    except ValueError as error:
        assert "on platform CUDA" in str(error)
    else:
        raise AssertionError
    """)


def test_memory_of_each_device(run):
    run("""
    x = jax.device_put(np.ones(1000, np.float32), gpus[1])
    stats = [d.memory_stats() for d in gpus]
    assert [s["bytes_in_use"] for s in stats] == [0, 4000]
    y = x + 1
    assert gpus[1].memory_stats()["bytes_in_use"] == 8000 and gpus[1].memory_stats()["bytes_limit"] == 1 << 30
    del x, y
    assert gpus[1].memory_stats()["bytes_in_use"] == 0 and gpus[1].memory_stats()["peak_bytes_in_use"] >= 8000
    """)


@pytest.mark.parametrize("peers", ["0", "1"])
def test_arrays_go_from_one_device_to_another(run, peers):
    run(
        """
    x = jax.device_put(jnp.arange(5.0), gpus[0])
    y = jax.device_put(x * 2, gpus[1])
    z = jax.device_put(y + 1, gpus[0])
    assert y.device == gpus[1] and z.device == gpus[0]
    np.testing.assert_array_equal(z + x, 3 * np.arange(5.0) + 1)
    """,
        FAKE_CUDA_PEERS=peers,
    )


def test_the_platform_that_computes_by_default(run):
    program = "print(jnp.ones(2).device, jax.default_backend())"
    for variable in ("JAX_PLATFORMS", "FERRAX_PLATFORMS"):
        assert run(program, **{variable: "cuda,cpu"}) == "cuda:0 cuda\n"
    assert run("jax.config.update('jax_platforms', 'cuda')\n" + program) == "cuda:0 cuda\n"


def test_nothing_is_loaded_before_a_gpu_is_asked_for(bare):
    status, text = bare("""
import ferrax as jax
(jax.numpy.ones(3) + 1).block_until_ready()
loaded = lambda: "fake-cuda" in open("/proc/self/maps").read()
print(loaded(), jax.devices("cuda") and loaded())
""")
    assert (status, text) == (0, "False True\n")


def test_a_plugin_of_the_same_name_is_called_otherwise(bare):
    status, text = bare(
        """
import ferrax as jax
from ferrax import _ferrax
print(_ferrax.platforms(), jax.devices("gpu")[0])
for name in ("cuda", "CUDA"):
    try:
        jax.register_plugin(name, "/no/other.so")
    except ValueError as error:
        print(error)
try:
    jax.devices("xla_cuda")
except RuntimeError as error:
    print("/no/plugin.so" in str(error))
""",
        FERRAX_PJRT_PLUGIN="cuda:/no/plugin.so",
    )
    twice = "there is a platform cuda already"
    assert (status, text.splitlines()) == (
        0,
        ["['cpu', 'cuda', 'xla_cuda'] cuda:0", twice, twice.replace("cuda", "CUDA"), "True"],
    )


def test_a_wheel_with_a_plugin_computes_by_default_under_its_own_name(bare, tmp_path):
    folder = tmp_path / "jax_plugins" / "xla_cuda13"
    folder.mkdir(parents=True)
    (folder / "xla_cuda_plugin.so").write_text("")
    status, text = bare(
        """
import os, sys
sys.path.append(os.environ["WHEELS"])
exists = os.path.exists
os.path.exists = lambda path: path == "/dev/nvidiactl" or exists(path)
import ferrax as jax
from ferrax import _ferrax
print(_ferrax.platforms())
try:
    jax.devices()
except RuntimeError as error:
    print("xla_cuda" in str(error), "xla_cuda_plugin.so" in str(error))
try:
    jax.devices("gpu")
except RuntimeError as error:
    print("xla_cuda" in str(error))
print(jax.devices("cuda"))
""",
        WHEELS=str(tmp_path),
    )
    wanted = ["['cpu', 'cuda', 'xla_cuda']", "True True", "True", "[CudaDevice(id=0), CudaDevice(id=1)]"]
    assert (status, text.splitlines()) == (0, wanted)


ASK = """
import ferrax as jax
for _ in range(2):
    try:
        print(jax.devices("cuda"), jax.numpy.ones(2).device)
    except RuntimeError as error:
        print(error)
with jax.default_device("cpu"):
    print(jax.numpy.ones(2).device)
"""


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        (
            {"FERRAX_LIBCUDA": "/no/libcuda.so"},
            ["NVIDIA's driver for CUDA 12.0 or newer is wanted", "/no/libcuda.so: "],
        ),
        ({"FAKE_CUDA_VERSION": "11080"}, ["it is for CUDA 11.8, and 12.0 or newer is wanted"]),
        ({"FAKE_CUDA_DEVICES": "0"}, ["CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"]),
    ],
)
def test_what_is_wrong_with_a_driver(bare, environment, wanted):
    status, text = bare(ASK, JAX_PLATFORMS="cuda", **environment)
    assert status == 0 and text.endswith("\ncpu:0\n")
    assert all(text.count(part) >= 2 for part in wanted), text


def test_without_a_driver_the_name_says_what_was_looked_for(bare):
    for platforms in ("cuda", None):
        status, text = bare(ASK, FERRAX_LIBCUDA=None, JAX_PLATFORMS=platforms)
        assert status == 0 and text.count("Unknown backend cuda. Available") == 2, text
        assert text.count("libcuda.so.1: ") >= 2 and "FERRAX_LIBCUDA" in text


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"FERRAX_NVRTC": "/no/nvrtc.so"}, "/no/nvrtc.so: "),
        ({"FAKE_CUDA_NVRTC": "13000"}, "it is NVRTC 13.0, and the driver is for CUDA 12.4"),
    ],
)
def test_what_is_wrong_with_the_compiler(bare, environment, wanted):
    status, text = bare(
        """
import ferrax as jax, numpy as np
x = jax.device_put(np.arange(3), jax.devices("cuda")[0])
print(x)
try:
    x + 1
except RuntimeError as error:
    print(error)
""",
        **environment,
    )
    assert status == 0 and text.startswith("[0 1 2]\nNVIDIA's compiler NVRTC of a version from 12.0 to 12.x is wanted")
    assert wanted in text and "nvidia-cuda-nvrtc-cu12" in text


def test_the_doctor(bare):
    status, text = bare(["-m", "ferrax.doctor"], JAX_PLATFORMS="gpu")
    assert status == 0 and "Platform cuda: works" in text, text
    rows = [
        "driver    for CUDA 12.4 at ",
        "NVRTC     12.4 at ",
        "cuBLASLt  12.8 at ",
        "cuFFT     11.3 at ",
        "0: compute capability 9.0, 1.0 GiB",
        "cuda:1    Fake GPU, ",
    ]
    assert all(row in text for row in rows), text
    status, text = bare(["-m", "ferrax.doctor"], JAX_PLATFORMS="cuda", FERRAX_NVRTC="/no/nvrtc.so")
    assert status == 1 and "Platform cuda: does not work" in text and "/no/nvrtc.so" in text
    assert "Asked for, and not there: cuda" in text


def test_a_process_that_forks_keeps_its_gpus_and_its_child_may_not_use_them(run):
    assert "forked" in run("""
    import os
    x = jax.device_put(jnp.arange(3), gpus[0])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, message(RuntimeError, lambda: x + 1).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(os.read(read, 10000).decode())
    assert (x + 1).tolist() == [1, 2, 3]
    """)
