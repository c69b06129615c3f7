"""Pieces of programs, one after another in a process of its own: how each of them ends."""

import json
import os
import subprocess
import sys
import textwrap

RUN = """
import json, traceback
def raises(kind, text, f):
    try:
        f()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")
cases = json.load(open(0))
found = {}
for name, text in cases.items():
    try:
        exec(compile(text, name, "exec"), {**globals()})
        found[name] = "ok"
    except BaseException:
        found[name] = traceback.format_exc()
print(json.dumps(found))
"""


def endings(setup: str, cases: dict[str, str], **environment: str) -> dict[str, str]:
    """For each piece `"ok"`, or what it raises; they see what `setup` defines, and `raises(kind, text, function)`.

    The process has eight devices of a platform that the host computes for.
    """
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    process = subprocess.run(
        [sys.executable, "-c", setup + RUN],
        check=False,
        input=json.dumps({name: textwrap.dedent(text) for name, text in cases.items()}),
        capture_output=True,
        text=True,
        env={**os.environ, **flags, **environment},
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    found: dict[str, str] = json.loads(process.stdout.splitlines()[-1])
    return found
