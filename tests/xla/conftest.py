"""What runs on XLA: `make test-xla` builds a plugin and names it in the environment; else these tests are left out."""

import os

import pytest


def pytest_collection_modifyitems(items):
    """Leaves the tests of this folder out where no plugin is named."""
    if "xla_cpu:" in os.environ.get("FERRAX_PJRT_PLUGIN", ""):
        return
    missing = pytest.mark.skip(reason="needs a plugin of XLA: make test-xla")
    for item in items:
        if "tests/xla/" in item.nodeid:
            item.add_marker(missing)
