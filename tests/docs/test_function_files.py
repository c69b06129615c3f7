"""An elementwise function is written by hand in few files: its block, its kernel, its row of tests."""

import functools
import re

import pytest
from documents import ROOT

from ferrax.lax import elementwise
from tests.lax.test_elementwise import BINARY, UNARY

# Functions that are made of others, and tables of cases for tests.
USERS = re.compile(r"python/ferrax/(scipy|_src/internal_test_util)/.*")
# Files that know of every function, and those of the blocks.
KERNELS = {"crates/ferrax-loops/src/kind.rs", "crates/ferrax-cpu/src/elementwise/mod.rs"}
BLOCKS = re.compile(r"crates/ferrax-ops/src/elementwise/(unary|special)\.rs")
# Who has a kernel of its own is also an operation of StableHLO, or is written in those that there are.
STABLEHLO = re.compile(r"crates/ferrax-pjrt/src/stablehlo/(\w+/)?\w+\.rs")
# And it is printed as CUDA's function of this kind.
CUDA = re.compile(r"crates/ferrax-cuda/src/print/elementwise\.rs")
# What some functions have beside: an implementation where the processor has none, a definition that tests kernels,
# what is known of their range, a weight that differs from other functions', whether estimates count it, and a
# recurrence of their Taylor series.
OPTIONAL = re.compile(
    r"crates/(ferrax-cpu/src/math/\w+|ferrax-ops/src/(numbers|where_rules/\w+)|ferrax-loops/src/cost)\.rs"
    r"|python/ferrax/experimental/(_jet_rules|_series|pallas/_costs)\.py"
)


@functools.cache
def written_by_hand():
    """The sources, by path, that were not written by a tool."""
    files = [path for folder in ("crates", "python") for path in (ROOT / folder).rglob("*")]
    files = [
        f
        for f in files
        if f.suffix in (".rs", ".py", ".pyi") and not {"tests", "examples"} & set(f.relative_to(ROOT).parts)
    ]
    texts = {str(f.relative_to(ROOT)): f.read_text() for f in files}
    return {path: text for path, text in texts.items() if "written by `" not in text[:400].lower()}


def by_hand(name):
    """The sources that name a function and were not written by a tool."""
    variant = "".join(part.title() for part in name.split("_"))
    word = re.compile(rf"\b({name}|{variant})\b")
    return {path for path, text in written_by_hand().items() if word.search(text)}


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atanh", "cosh"])
def test_a_function_is_written_in_few_files(name):
    files = {f for f in by_hand(name) if not any(p.fullmatch(f) for p in (OPTIONAL, USERS, STABLEHLO, CUDA))}
    blocks = {f for f in files if BLOCKS.fullmatch(f)}
    # NumPy's acosh has another branch than the primitive, and says so in a row of its own.
    own = {"crates/ferrax/src/numpy/unary.rs"} if name == "acosh" else set()
    assert len(blocks) == 1
    assert files == KERNELS | blocks | own


def test_every_function_has_its_row_of_tests():
    rows = {name for name, *_ in UNARY + BINARY}
    elsewhere = {"bessel_i0e", "bessel_i1e", "igamma", "igammac", "zeta", "polygamma"}
    assert set(elementwise.__all__) - rows <= elsewhere
