"""The type stubs of the extension module are what `tools/stubs.py` writes today (`make stubs`)."""

import importlib.util

from documents import ROOT


def test_stubs_are_current():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PATH.read_text() == module.stubs(), "run `make stubs`"
    assert (module.PATH.parent / "py.typed").exists()
