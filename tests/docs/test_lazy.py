"""Packages whose files load when one of their names is asked for: what `ferrax/_lazy.py` promises."""

import importlib
import subprocess
import sys

import pytest

import ferrax

PACKAGES = ["ferrax.numpy", "ferrax.lax"]


def run(code):
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("package", [*PACKAGES, "ferrax.scipy.special"])
def test_tables_have_the_names_of_their_files(package):
    module = importlib.import_module(package)
    for file, names in module._LATER.items():
        assert names.split() == importlib.import_module(f"{package}.{file}").__all__, file


def test_what_an_import_loads():
    loaded = run("import ferrax, ferrax.numpy, ferrax.lax, sys; print(*sys.modules)")
    later = {f"{p}.{file}" for p in PACKAGES for file in importlib.import_module(p)._LATER}
    later |= {"ferrax.numpy.linalg", "ferrax.numpy.fft", "ferrax.lax.linalg", "ferrax.nn", "ferrax.random", "scipy"}
    assert not later.intersection(loaded)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_there_in_every_way_of_asking(package):
    module = importlib.import_module(package)
    names = [name for names in module._LATER.values() for name in names.split()]
    assert set(names) < set(dir(module)) and set(names) < set(module.__all__)
    assert set(names) < set(run(f"from {package} import *; print(*globals())"))
    for name in names:
        assert getattr(module, name) is vars(module)[name] is getattr(module, name)
    assert run(f"from {package} import {', '.join(names)}; import {package} as m; print(m.linalg.__name__)") == [
        f"{package}.linalg"
    ]


def test_their_errors_show_no_frame_of_the_library():
    code = """
import traceback, ferrax.numpy as jnp
try:
    jnp.pad(jnp.ones(2), 1, mode="none")
except Exception as error:
    print(len(traceback.extract_tb(error.__traceback__)), type(error).__name__)
"""
    assert run(code) == ["1", "NotImplementedError"]
    with pytest.raises(AttributeError, match="has no attribute 'uniqe'"):
        ferrax.numpy.uniqe
