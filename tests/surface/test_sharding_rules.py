"""Rules of how arrays are divided together, from their texts: what they are and which errors they give is JAX's."""

import jax._src.custom_partitioning_sharding_rule as jax_rules
import pytest

from ferrax._src import custom_partitioning_sharding_rule as rules

TEXTS = [
    "->",
    "i->j",
    "i j, , k->j",
    "... i j, ...i j -> ...i j",
    "...i,  -> ...i",
    "...0 i, ...12 i -> ...00 i",
    "i j -> (i j)",
    "(i j) (j k) i -> j k",
    "... contracting_dim, contracting_dim k -> ... k",
    "i, ...j -> ...a0 i",
]
NO_RULES = [
    ".i -> j",
    "2i -> j",
    "i 2j -> j",
    "i",
    "i->j->k",
    "i j, k)->j",
    "i (j k->j",
    "i ( ) j k->j",
    "i (j ) k->j",
    "i (j (k))->j",
    "i; j->j",
    "…j->…j",
    "i ... -> j",
    "i, (..., j) -> j",
    "(i j) -> i",
    "i j -> (j k)",
    "_i -> _i",
    3,
]
OPTIONS = [
    ("(j i) -> (i j)", {"i": 10, "j": 20}),
    ("i (j k)-> j foo (m bar_24)", {"k": 10, "m": 10, "bar_24": 20}),
    ("i j->j", {"reduction_factors": ("i",)}),
    ("i j->j", {"need_replication_factors": ("i",), "permutation_factors": ("j",)}),
    ("i->j", {"i": "j"}),
    ("i->j", {"k": 10}),
    ("i->j", {"i": 10}),
    ("i j->j", {"reduction_factors": ("k",)}),
    ("i j->j", {"reduction_factors": ("i",), "need_replication_factors": ("i",)}),
]


def told(f):
    try:
        return str(f())
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("text", [*TEXTS, *NO_RULES])
def test_texts(text):
    ours, theirs = (
        told(lambda: rules.str_to_sdy_sharding_rule(text)),
        told(lambda: jax_rules.str_to_sdy_sharding_rule(text)),
    )
    assert ours == theirs
    assert ours.startswith("SdyShardingRule") == (text in TEXTS)


@pytest.mark.parametrize(("text", "options"), OPTIONS)
def test_options(text, options):
    ours = told(lambda: rules.str_to_sdy_sharding_rule(text, **options))
    assert ours == told(lambda: jax_rules.str_to_sdy_sharding_rule(text, **options))


def test_parts_of_rules():
    parts = [
        lambda m: m.CompoundFactor("i"),
        lambda m: m.CompoundFactor(1, 2),
        lambda m: m.CompoundFactor("2i", "j"),
        lambda m: m.CompoundFactor("i;", "j"),
        lambda m: m.CompoundFactor(m.BATCHING, "i"),
        lambda m: m.ArrayMapping("i", 1),
        lambda m: m.ArrayMapping("i", m.BATCHING),
        lambda m: m.ArrayMapping(m.CompoundFactor("i", "j"), "k"),
        lambda m: m.ArrayMapping(m.BATCHING, "i"),
        lambda m: m.ArrayMapping(("i", "j")),
    ]
    for make in parts:
        assert told(lambda make=make: make(rules)) == told(lambda make=make: make(jax_rules))
