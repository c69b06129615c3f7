"""Type checkers and editors see the façade: a user's program is clean, and each mistake is found on its line."""

import importlib
import json
import pathlib
import re
import subprocess
import sys

import pytest
from documents import ROOT

HERE = pathlib.Path(__file__).parent
PROGRAM, MISTAKES = HERE / "program.py", HERE / "mistakes.py"
MODULES = [
    "ferrax", "ferrax.numpy", "ferrax.numpy.fft", "ferrax.numpy.linalg", "ferrax.lax", "ferrax.lax.linalg",
    "ferrax.nn", "ferrax.nn.initializers", "ferrax.random", "ferrax.tree", "ferrax.tree_util", "ferrax.ops",
    "ferrax.debug", "ferrax.dtypes", "ferrax.errors", "ferrax.experimental", "ferrax.custom_batching",
    "ferrax.custom_derivatives", "ferrax.stages",
]  # fmt: skip


def run(*command):
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, check=False
    ).stdout


def mypy(tmp_path, *files):
    """What mypy finds, as (file, line) and text; errors inside the library are not a user's."""
    config = tmp_path / "mypy.ini"
    config.write_text(
        f"[mypy]\npython_version = 3.11\ncheck_untyped_defs = true\nmypy_path = {ROOT / 'python'}\n"
        "[mypy-ferrax.*]\nfollow_imports = silent\n"
    )
    out = run("mypy", "--config-file", config, "--cache-dir", ROOT / ".mypy_cache" / "users", *files)
    found = re.findall(r"^(.*?):(\d+): error: (.*)$", out, re.M)
    assert found or "Success" in out, out
    return [(pathlib.Path(file).name, int(line), text) for file, line, text in found]


def pyright(tmp_path, *files):
    """What pyright finds, likewise."""
    config = tmp_path / "pyrightconfig.json"
    settings = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "python")]}
    config.write_text(json.dumps({**settings, "include": [str(file) for file in files]}))
    out = run("basedpyright", "--project", config, "--pythonpath", sys.executable, "--outputjson")
    errors = [d for d in json.loads(out)["generalDiagnostics"] if d["severity"] == "error"]
    return [(pathlib.Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"]) for d in errors]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_programs_are_clean_and_mistakes_are_found(checker, tmp_path):
    found = checker(tmp_path, PROGRAM, MISTAKES)
    assert [f for f in found if f[0] == PROGRAM.name] == []
    lines = MISTAKES.read_text().splitlines()
    marked = {i for i, line in enumerate(lines, 1) if line.endswith("# mistake")}
    assert len(marked) >= 10
    assert {line for file, line, _ in found if file == MISTAKES.name} == marked, found


def test_every_public_name_is_known(tmp_path):
    lines = [f"import {module}" for module in MODULES]
    for module in map(importlib.import_module, MODULES):
        lines += [f"{module.__name__}.{name}" for name in dir(module) if not name.startswith("_")]
    path = tmp_path / "names.py"
    path.write_text("\n".join(lines) + "\n")
    unknown = [f"{lines[line - 1]}: {text}" for _, line, text in mypy(tmp_path, path)]
    assert unknown == []


def test_the_program_runs():
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "18.0\n"), done.stderr
