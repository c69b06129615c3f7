"""`set_xla_metadata`: what lowered programs say of the operations of a context, a function and a value."""

import re

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental.xla_metadata import set_xla_metadata

noted = lambda **notes: lambda f: lambda *args: _inside(notes, f, *args)


def _inside(notes, f, *args):
    with set_xla_metadata(**notes):
        return f(*args)


def said(f, *args):
    """What the last operation of each kind has as notes, of a function that is lowered."""
    found = {}
    for line in jax.jit(f).lower(*args).as_text().split("\n"):
        name = re.search(r'(?:= |"|^ *)stablehlo\.(\w+)', line)
        notes = re.search(r"mhlo.frontend_attributes = (\{[^}]*\})", line)
        if name is not None:
            found[name[1]] = notes[1] if notes else ""
        elif notes is not None:
            found["region"] = notes[1]
    return found


A = '{a = "b"}'
CASES = {
    "one": (noted(a="b")(jnp.add), (1.0, 2.0), {"add": A}),
    "a bool": (noted(a=True, n=10)(jnp.add), (1.0, 2.0), {"add": '{a = "true", n = "10"}'}),
    "inner ones win": (noted(a="c", k=1)(noted(a="b", k=None)(jnp.add)), (1.0, 2.0), {"add": A}),
    "joined": (noted(c="d")(noted(a="b")(jnp.add)), (1.0, 2.0), {"add": '{a = "b", c = "d"}'}),
    "others have none": (lambda x: noted(a="b")(jnp.sin)(jnp.cos(x)), (1.0,), {"sine": A, "cosine": ""}),
    "quoted": (noted(a='q"', **{"b c": "\\"})(jnp.sin), (1.0,), {"sine": '{a = "q\\22", "b c" = "\\\\"}'}),
    "while_loop": (
        noted(a="b")(lambda x: lax.while_loop(lambda x: x < 10, lambda x: x + 1, x)),
        (1.0,),
        {"compare": A, "add": A, "region": A},
    ),
    "a loop's functions": (
        lambda x: lax.while_loop(noted(a="b")(lambda x: x < 10), noted(a="c")(lambda x: x + 1), x),
        (1.0,),
        {"compare": A, "add": '{a = "c"}'},
    ),
    "cond": (
        noted(a="b")(lambda x: lax.cond(x < 0, jnp.sin, noted(a=None)(jnp.cos), x)),
        (1.0,),
        {"sine": A, "cosine": "", "compare": A},
    ),
    "jit inside": (
        noted(a="b")(lambda x: jax.jit(noted(c="d")(jnp.exp))(jnp.sin(x))),
        (1.0,),
        {"sine": A, "exponential": '{a = "b", c = "d"}'},
    ),
    "grad inside": (noted(a="b")(jax.grad(lambda x: jnp.sin(x))), (1.0,), {"cosine": A}),
    "grad outside": (jax.grad(jax.jit(noted(a="b")(jnp.sin))), (1.0,), {"cosine": A}),
    "vmap outside": (jax.vmap(jax.jit(noted(a="b")(jnp.sin))), (jnp.ones(3),), {"sine": A}),
    "sums": (noted(a="b")(jnp.sum), (jnp.ones(3),), {"reduce": A}),
    "a value": (lambda x: set_xla_metadata(jnp.sin(x), a="b") + 1, (1.0,), {"sine": A, "add": ""}),
    "a value's derivative": (jax.grad(lambda x: set_xla_metadata(jnp.sin(x), a="b") * 2), (1.0,), {"cosine": ""}),
}


@pytest.mark.parametrize("name", CASES)
def test_notes_of(name):
    f, args, wanted = CASES[name]
    found = said(f, *args)
    assert {k: found.get(k) for k in wanted} == wanted


def test_functions_are_lowered_anew_in_other_contexts():
    f = jax.jit(lambda x: x + 1)
    plain = f.lower(1.0).as_text()
    for notes in ["b", "c"]:
        with set_xla_metadata(a=notes):
            assert f'mhlo.frontend_attributes = {{a = "{notes}"}}' in f.lower(1.0).as_text()
    assert f.lower(1.0).as_text() == plain and "frontend" not in plain


def test_decorated_functions():
    f = set_xla_metadata(a="b")(jax.jit(lambda x: x + 1))
    assert f(1.0) == 2.0 and f.__name__ == "<lambda>"
    assert f"mhlo.frontend_attributes = {A}" in f.lower(1.0).as_text()


def test_values_keep_what_they_are():
    f = lambda x: set_xla_metadata({"y": x}, k=1)["y"]
    assert f(2.0) == jax.jit(f)(2.0) == 2.0
    assert jax.vmap(jax.grad(f))(jnp.ones(2)).tolist() == [1.0, 1.0]
    assert "xla_metadata_value[xla_metadata_kvs=(('k', 1),)] a" in str(jax.make_jaxpr(f)(2.0))


def noted_in_hlo(f, *args):
    """Instructions of HLO with their notes."""
    text = jax.jit(f).lower(*args).as_text("hlo")
    return re.findall(r"= \S+ ([a-z-]+)\(.*?frontend_attributes=\{(.*)\}", text)


def test_notes_in_hlo():
    @set_xla_metadata(a="b")
    def f(x):
        with set_xla_metadata(n=1):
            y = jnp.sin(x)
        return set_xla_metadata(y * jnp.cos(y), on=True)

    expected = [("sine", 'a="b",n="1"'), ("cosine", 'a="b"'), ("multiply", 'a="b",on="true"')]
    assert noted_in_hlo(f, 1.0) == expected
    assert noted_in_hlo(lambda x: set_xla_metadata(x, on=True), 1.0) == []
    assert noted_in_hlo(lambda x: jnp.sin(x) + 1, 1.0) == []
