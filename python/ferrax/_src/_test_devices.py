"""On which devices tests run, and decorators that skip tests on others. Read next: `test_util.py`."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import ferrax
from ferrax.config import config


def device_under_test() -> str:
    """The platform that tests run on: `JAX_TEST_DUT`, or the default one."""
    return os.environ.get("JAX_TEST_DUT") or ferrax.default_backend()


def _tags() -> set[str]:
    platform = device_under_test()
    return {"cuda": {"gpu", "cuda"}, "rocm": {"gpu", "rocm"}, "gpu": {"gpu", "cuda"}}.get(platform, {platform})


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Whether tests run on one of some kinds of devices."""
    if isinstance(device_types, str):
        raise TypeError("test_device_matches takes a list of names of devices, not one name")
    return not _tags().isdisjoint(device_types)


test_device_matches.__test__ = False  # type: ignore[attr-defined]


def _skipping(skip: Callable[[], bool], reason: Callable[[], str]) -> Callable[[Any], Any]:
    """A decorator of test methods that skips them where `skip()`."""

    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if skip():
                self.skipTest(reason())
            return method(self, *args, **kwargs)

        return wrapper

    return decorate


def _reason(given: str | None) -> str:
    return given or f"not supported on device with tags {_tags()}"


def skip_on_devices(*disabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Skips a test on some kinds of devices."""
    return _skipping(lambda: test_device_matches(disabled_devices), lambda: _reason(skip_reason))


def run_on_devices(*enabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Skips a test on all other kinds of devices."""
    return _skipping(lambda: not test_device_matches(enabled_devices), lambda: _reason(skip_reason))


def skip_on_flag(flag_name: str, skip_value: Any) -> Callable[[Any], Any]:
    """Skips a test where a setting has a value."""
    return _skipping(lambda: config.read(flag_name) == skip_value, lambda: f"Skipping when {flag_name} is {skip_value}")


def skip_under_pytest(reason: str) -> Callable[[Any], Any]:
    """Skips a test that pytest runs."""
    return _skipping(is_running_under_pytest, lambda: f"Skip under pytest: {reason}")


def is_running_under_pytest() -> bool:
    """Whether pytest runs the tests."""
    return "pytest" in sys.modules


def is_device_cuda() -> bool:
    """Whether tests run on a GPU of NVIDIA's."""
    return "cuda" in _tags()


def is_device_rocm() -> bool:
    """Whether tests run on a GPU of AMD's."""
    return "rocm" in _tags()


def is_device_tpu(version: int | None = None, variant: str = "") -> bool:
    """Whether tests run on a TPU, of a version."""
    kind = ferrax.devices()[0].device_kind if "tpu" in _tags() else ""
    return bool(kind) and (version is None or f"v{version}{variant}" in kind)


def is_cloud_tpu() -> bool:
    """Whether tests run on a TPU of a cloud."""
    return is_device_tpu()


def _no(*_: Any, **__: Any) -> bool:
    return False


is_device_tpu_at_least = is_cuda_compute_capability_at_least = is_cuda_compute_capability_equal = _no
is_cuda_version_at_least = is_cloud_tpu_at_least = is_asan = is_msan = is_tsan = is_sanitized = is_test_rbe = _no


def is_optimized_build() -> bool:
    """Whether the core is compiled with optimization: it always is."""
    return True


def is_gil_disabled() -> bool:
    """Whether threads run Python at the same time."""
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


def device_supports_buffer_donation() -> Callable[[Any], Any]:
    """Decorates a test of donated buffers: all devices use these again."""
    return lambda test: test


def request_cpu_devices(nr_devices: int) -> None:
    """Asks for so many CPU devices, unless there are arrays already: a test that needs more is skipped by its mesh."""
    if config.jax_num_cpu_devices < nr_devices:
        with contextlib.suppress(RuntimeError):
            config.update("jax_num_cpu_devices", nr_devices)
