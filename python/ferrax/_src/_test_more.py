"""Rarer helpers of tests: events, versions, meshes, samples of the complex plane. Read next: `test_util.py`."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ferrax
from ferrax import monitoring
from ferrax._src._flags import bool_flag, int_flag
from ferrax._src._test_devices import device_under_test, is_cuda_compute_capability_equal, is_device_cuda
from ferrax.config import config

NUM_GENERATED_CASES = int_flag("jax_num_generated_cases", 10)
SKIP_SLOW_TESTS = bool_flag("jax_skip_slow_tests", False)
TEST_NUM_THREADS = int_flag("jax_test_num_threads", 0)
TEST_WITH_PERSISTENT_COMPILATION_CACHE = bool_flag("jax_test_with_persistent_compilation_cache", False)

MeshSpec = list[tuple[str, int]]


def _jitted(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return ferrax.jit(fun, *args, **kwargs)


def _untransformed(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return fun


# tests ask for the name of each
vars(_jitted)["_name"], vars(_untransformed)["_name"] = "jit", "noop"
JIT_IMPLEMENTATION = (_jitted, _untransformed)


class NotPresent:
    """Stands for a value that there is not."""

    def __repr__(self) -> str:
        return "<not present>"


def cases_from_gens(*gens: Callable[[int], Any]) -> Iterator[tuple[Any, ...]]:
    """Named cases of growing sizes, each of what functions of the size draw."""
    sizes = (1, 3, 10)
    for size in sizes:
        for i in range(NUM_GENERATED_CASES.value // len(sizes) + 1):
            yield (f"_{size}_{i}", *(gen(size) for gen in gens))


@contextlib.contextmanager
def assert_global_configs_unchanged() -> Iterator[None]:
    """Raises if a block leaves settings other than it found them."""
    before = dict(config.values)
    yield
    after = dict(config.values)
    none = NotPresent()
    pairs = {k: (before.get(k, none), after.get(k, none)) for k in {**before, **after}}
    changed = {k: pair for k, pair in pairs.items() if pair[0] != pair[1]}
    if changed:
        raise AssertionError(f"Test changed global config values. Differing values are: {changed}")


def _unseen(what: str) -> Callable[..., Any]:
    @contextlib.contextmanager
    def block(*args: Any, **kwargs: Any) -> Iterator[Any]:
        """Raises: there is no such event."""
        raise NotImplementedError(f"{what}: ferrax has nothing that it could be counted by")
        yield

    return block


count_device_put_fast_path_hit = _unseen("count_device_put_fast_path_hit")
count_jax_array_shard_arg_calls = _unseen("count_jax_array_shard_arg_calls")
count_subjaxpr_to_hlo_conversion = _unseen("count_subjaxpr_to_hlo_conversion")
count_internal_device_puts = _unseen("count_internal_device_puts")
collect_lowered_jaxprs = _unseen("collect_lowered_jaxprs")


def count_events(event: str) -> Callable[..., Any]:
    """A context of counting an event of JAX's insides; entering it raises."""
    return _unseen(f"count_events({event!r})")


@contextlib.contextmanager
def register_event_duration_listener(callback: Callable[..., None]) -> Iterator[None]:
    """Calls a function with each duration that a block reports."""
    monitoring.register_event_duration_secs_listener(callback)
    try:
        yield
    finally:
        monitoring.unregister_event_duration_listener(callback)


def fwd_bwd_jaxprs(f: Callable[..., Any], *example_args: Any) -> tuple[Any, Any]:
    """The programs of a function with what its derivative keeps, and of its derivative from that."""
    forward, (out, kept) = ferrax.make_jaxpr(lambda *args: ferrax.vjp(f, *args), return_shape=True)(*example_args)
    backward = ferrax.make_jaxpr(lambda pull, cotangent: pull(cotangent))(kept, out)
    return forward, backward


def runtime_environment() -> str | None:
    """What runs the tests: None, "bazel" or "pytest"."""
    if sys.executable is None:
        return None
    return "bazel" if "bazel-out" in sys.executable else "pytest"


def pjrt_c_api_version_at_least(major_version: int, minor_version: int) -> bool:
    """Whether a plugin is no older: without one, nothing is."""
    return True


def stablehlo_version_at_least(required_version: str) -> bool:
    """Whether a plugin reads programs of a version: without one, all are read."""
    return True


def get_tpu_version() -> int:
    """The generation of a TPU; there is none."""
    raise ValueError("Device is not TPU")


def get_cuda_nonportable_max_cluster_size() -> int:
    """Blocks of a cluster, at most."""
    kind = ferrax.devices()[0].device_kind
    return 8 if kind.endswith("Thor") else 12 if kind.endswith("GB10") else 16


class CudaArchSpecificTest:
    """Skips of tests for some GPUs only."""

    skipTest: Callable[[str], Any]

    def skip_unless_sm90a(self) -> None:
        """Skips elsewhere than on compute capability 9.0."""
        if not is_cuda_compute_capability_equal("9.0"):
            self.skipTest("Only works on GPU with capability sm90a")

    def skip_unless_tcgen05(self) -> None:
        """Skips elsewhere than on compute capabilities 10 and 11."""
        if not is_device_cuda():
            self.skipTest("Only works on GPU")
        elif ferrax.devices(device_under_test())[0].compute_capability.split(".")[0] not in ("10", "11"):
            self.skipTest("Only works on GPU with tcgen05 instructions")

    def skip_unless_tcgen05_int8(self) -> None:
        """Skips elsewhere than on compute capabilities 10.0, 10.1 and 11.0."""
        self.skip_unless_tcgen05()
        if not any(map(is_cuda_compute_capability_equal, ("10.0", "10.1", "11.0"))):
            self.skipTest("tcgen05 in int8 only works on GPU with capability sm100a/sm101a/sm110a")


def _line(dtype: np.dtype, size: int) -> np.ndarray:
    """Points of an axis in ascending order: the infinities, 0, and `size` numbers on each side up to the largest."""
    info = np.finfo(dtype)
    powers = np.linspace(np.log10(float(info.tiny)), np.log10(float(info.max)), size)
    half = np.append(10.0 ** powers[:-1], [float(info.max)] * bool(size)).astype(dtype)
    half = np.append(half, np.array(np.inf, dtype))
    return np.concatenate([-half[::-1], np.zeros(1, dtype), half])


def complex_plane_sample(dtype: Any, size_re: int = 10, size_im: int | None = None) -> np.ndarray:
    """A grid of complex numbers over the plane, out to the infinities.

    Args:
      dtype: complex dtype.
      size_re: points on each side of 0 of the real axis.
      size_im: as `size_re`, of the imaginary one; None for the same.

    Returns:
      Array of shape (3 + 2 * size_im, 3 + 2 * size_re).
    """
    real = np.dtype(np.zeros(0, dtype).real.dtype)
    x, y = _line(real, size_re), _line(real, size_re if size_im is None else size_im)
    grid = np.empty((y.size, x.size), dtype)
    grid.real, grid.imag = x[None, :], y[:, None]
    return grid


class _WithMpmath:
    """Raises: reference values are not computed by mpmath here."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"{type(self).__name__}: reference functions in arbitrary precision are not provided")


class vectorize_with_mpmath(_WithMpmath):
    """A function of mpmath's numbers over arrays; making one raises."""


class numpy_with_mpmath(_WithMpmath):
    """NumPy's functions by mpmath; making one raises."""


def with_mesh_from_kwargs(f: Callable[..., Any]) -> Callable[..., Any]:
    """A test that runs in the mesh that its argument `mesh` describes."""
    from ferrax._src.test_util import with_mesh

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with with_mesh(kwargs["mesh"]):
            return f(*args, **kwargs)

    return wrapped
