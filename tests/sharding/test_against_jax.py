"""Arrays over eight devices, as JAX has them: objects, placements, mapped functions, errors.

Both libraries evaluate the expressions of `expressions.py`, each in a process of its own with eight CPU devices.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import both
import expressions

#: What ferrax gives where it differs from JAX on purpose: see docs/differences.md.
OWN = {
    # devices of ferrax can be pickled
    "pickle.loads(pickle.dumps(m)) is m": "True",
    "pickle.loads(pickle.dumps(s('x'))) == s('x')": "True",
    "jax.vmap(lambda v: lax.psum_scatter(v > 3, 'i'), axis_name='i')(sq)": (
        "TypeError",
        "psum_scatter does not accept dtype bool.",
    ),
    "jax.pmap(lambda v: v)(jnp.arange(9))": (
        "IndivisibleError",
        "compiling computation that requires 9 logical devices",
    ),
}

#: Where the sharding of the result is another one than XLA chooses; the value is the same.
OTHER_SHARDING = {
    "jax.grad(lambda x: (jnp.sin(place(x, 'x')) ** 2).sum())(x)",
    "jax.grad(lambda v: (jax.pmap(lambda v: v * v, out_axes=None)(v) * w[1, 1]).sum())(sq)",
    "jax.grad(lambda w: jax.pmap(lambda v: lax.psum((w * v).sum(), 'p'), axis_name='p')(jnp.arange(8.0)).sum())(2.0)",
}


@pytest.fixture(scope="session")
def answers() -> tuple[dict, dict]:
    """What both libraries give for each expression."""
    return both.texts_of(expressions)


def agree(a: object, b: object, placed: bool = True) -> bool:
    """Whether two results are the same, numbers up to their rounding for print."""
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=2e-4) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(agree(x, y, placed) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(agree(a[k], b[k], placed) for k in a)
    if not placed and isinstance(a, str) and "Sharding(" in a:
        return isinstance(b, str) and "Sharding(" in b
    return a == b


def shown(line: str) -> str:
    return line[:100]


@pytest.mark.parametrize("line", [*expressions.OBJECTS, *expressions.ARRAYS, *expressions.MAPPED], ids=shown)
def test_values(line, answers):
    want, got = answers[0][line], answers[1][line]
    if line in OWN:
        assert got == OWN[line] and got != want
        return
    assert not (isinstance(want, dict) and "error" in want), want
    assert agree(want, got, placed=line not in OTHER_SHARDING), f"\n{want}\n{got}"


@pytest.mark.parametrize("line", expressions.ERRORS, ids=shown)
def test_errors(line, answers):
    want, got = answers[0][line], answers[1][line]
    assert "error" in want and "error" in got, (want, got)
    name, text = OWN.get(line, (want["error"], want["text"].replace("'_rem_singleton'", "'<lambda>'")[:44]))
    assert got["error"] == name
    assert got["text"].startswith(text) or sorted(got["text"][: len(text)]) == sorted(text), got["text"]
