"""The type stubs of what is Rust are what `tools/stubs.py` writes today (`make stubs`)."""

import importlib.util

from documents import ROOT


def test_stubs_are_current():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.files().items():
        assert path.read_text() == text, f"{path.name} is old: run `make stubs`"
    assert (module.PATH.parent / "py.typed").exists()
