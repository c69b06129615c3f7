"""Fixtures and settings that every test shares.

JAX is the oracle: its answers are recorded (`tests/recorded.py`), or a test imports it as `jax` where they differ from
run to run; comparison helpers are in `tests/support.py`.
"""

import contextlib
import os
import sys

import hypothesis
import pytest

from tests import left, oracle_settings, recorded

if os.environ.get("FERRAX_PLATFORMS") == "cuda":
    from tests.cuda.session import pytest_runtest_call as pytest_runtest_call

oracle_settings.apply(os.environ)

hypothesis.settings.register_profile(
    "default", max_examples=25, deadline=None, derandomize=True, print_blob=True, database=None
)
hypothesis.settings.register_profile("thorough", max_examples=500, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items):
    """With another engine (tests/engine, xla, cuda) as the default, tests of the embedded one alone are left out."""
    if os.environ.get("FERRAX_PLATFORMS", "cpu") != "cpu":
        other = pytest.mark.skip(reason="of the embedded engine alone")
        for item in items:
            if "embedded" in item.keywords:
                item.add_marker(other)


def pytest_sessionfinish():
    recorded.save()


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind():
    """Files run in any order and company, so that none may change the process for the others.

    Types that were registered for good are forgotten; a setting, a mesh in use, a listener is the file's to take back.
    """
    before, types = left.settings(), left.types()
    yield
    left.forget_types(but=types)
    assert left.settings() == before


@pytest.fixture
def jax():
    """Real JAX, the oracle."""
    return pytest.importorskip("jax")


@pytest.fixture
def x64():
    """Runs the test with 64-bit dtypes enabled in ferrax, and in JAX where a test asks it directly."""
    import ferrax

    jax = sys.modules.get("jax")
    with ferrax.enable_x64(True), jax.enable_x64(True) if jax else contextlib.nullcontext():
        yield
