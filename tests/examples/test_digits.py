"""examples/digits.py: it learns the digits, draws its picture, and loses as JAX does, step by step."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

PROGRAM = pathlib.Path(__file__).parents[2] / "examples" / "digits.py"


@pytest.fixture(scope="module")
def digits():
    spec = importlib.util.spec_from_file_location("digits", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses_of(digits, backend, epochs, folder, *more):
    """The loss of every step, and the test accuracy at the end."""
    path = folder / f"{backend}.json"
    picture = folder / f"{backend}.png"
    options = ["--backend", backend, "--epochs", str(epochs), "--losses", str(path), "--picture", str(picture)]
    accuracy = digits.main([*options, *more, "--quiet"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    return np.array(json.loads(path.read_text())["losses"]), accuracy


def test_digits(digits, tmp_path, capsys):
    ours, accuracy = losses_of(digits, "ferrax", 40, tmp_path)
    assert accuracy >= 0.97
    printed = capsys.readouterr().out
    assert "test accuracy 9" in printed
    assert "ms eager" in printed and "ms jitted" in printed
    # epochs differ in their keys only, so five of JAX's are the first five of forty
    theirs, _ = losses_of(digits, "jax", 5, tmp_path)
    np.testing.assert_allclose(ours[: len(theirs)], theirs, rtol=2e-5)


def test_progress_bar(digits, monkeypatch):
    """The bar is drawn on a terminal and nowhere else."""
    written = []

    class Terminal:
        def __init__(self, tty):
            self.isatty = lambda: tty
            self.write = written.append
            self.flush = lambda: None

    for tty in [False, True]:
        monkeypatch.setattr(digits.sys, "stderr", Terminal(tty))
        bar = digits.Progress(4, quiet=False)
        bar.show(1, "loss 1.0")
        bar.close()
        assert bool(written) is tty
    assert "1/4 epochs, loss 1.0" in written[0]
    assert written[0].count("█") == 7
