"""Helpers of JAX's private modules by themselves: source maps, warnings, promoted operands, a line search."""

import json
import warnings

import numpy as np
import pytest

import ferrax.numpy as jnp
from ferrax._src import sourcemap, test_warning_util
from ferrax._src.numpy.util import promote_dtypes, promote_dtypes_complex, promote_dtypes_inexact
from ferrax._src.scipy.optimize.line_search import line_search
from ferrax.experimental.sparse.util import _csr_to_coo

#: integers and their digits, from the table of ECMA-426
DIGITS = [(0, b"A"), (1, b"C"), (-1, b"D"), (15, b"e"), (16, b"gB"), (-16, b"hB"), (123, b"2H"), (1000, b"w+B")]


@pytest.mark.parametrize(("value", "digits"), DIGITS)
def test_integers_in_digits(value, digits):
    assert sourcemap.encode_vlq(value) == digits
    assert sourcemap.decode_vlq(digits) == value


def test_digits_leave_what_follows():
    left = iter(b"gBC")
    assert (sourcemap.decode_vlq(left), next(left)) == (16, ord("C"))
    with pytest.raises(StopIteration):
        sourcemap.decode_vlq(b"g")


@pytest.mark.parametrize("segment", [(3,), (0, 1, -2, 70), (0, 1, -2, 70, 4)])
def test_segments_go_and_come(segment):
    assert sourcemap.decode_segment(sourcemap.encode_segment(segment)) == segment


@pytest.mark.parametrize("text", [b"", b"AA", b"AAAAAA", b"g", b"AAAAg"])
def test_segments_of_other_lengths(text):
    with pytest.raises(ValueError, match="a segment has 1, 4 or 5 integers"):
        sourcemap.decode_segment(text)


def test_maps_as_json():
    lines = sourcemap.MappingsGenerator()
    with pytest.raises(RuntimeError, match="No current group"):
        lines.new_segment(1)
    lines.new_group()
    lines.new_segment(2)
    lines.new_segment(5, 0, 10, 4)
    lines.new_group()
    lines.new_segment(1, 0, 12, 0, 3)
    with pytest.raises(AssertionError, match="invalid segment"):
        lines.new_segment(1, 2)
    made = sourcemap.SourceMap(3, ["a.py"], ["x = 1"], ["f", "g", "h", "i"], lines.mappings())
    assert made.mappings == [[(2,), (3, 0, 10, 4)], [(1, 0, 2, -4, 3)]]
    assert json.loads(made.to_json())["mappings"] == "E,GAUI;CAEJG"
    assert sourcemap.SourceMap.from_json(made.to_json()) == made


def test_warnings_of_a_block():
    with test_warning_util.record_warnings() as seen:
        for _ in range(2):
            warnings.warn("again", UserWarning, stacklevel=1)
    assert [str(w.message) for w in seen] == ["again", "again"]
    with pytest.raises(UserWarning, match="raised"), test_warning_util.raise_on_warnings():
        warnings.warn("raised", UserWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("promote", "operands", "dtype", "weak"),
    [
        (promote_dtypes, (np.int8(1), 1.0), "float32", True),
        (promote_dtypes, (np.int8(1), 1), "int8", False),
        (promote_dtypes_inexact, (1, 2), "float32", True),
        (promote_dtypes_complex, (1,), "complex64", True),
        (promote_dtypes_complex, (np.float32(1), 1), "complex64", False),
        (promote_dtypes_complex, (np.int8(1), 1j), "complex64", True),
    ],
)
def test_promoted_operands(promote, operands, dtype, weak):
    assert [(str(x.dtype), x.weak_type) for x in promote(*operands)] == [(dtype, weak)] * len(operands)


def bowl(x):
    return jnp.vdot(x, x)


def test_a_line_search_by_itself():
    p = np.float32([1, 0])
    found = line_search(bowl, -60 * p, p, c2=0.5, maxiter=30)
    assert (bool(found.failed), int(found.status), float(found.a_k), int(found.nit)) == (False, 0, 32.0, 6)
    assert (float(found.f_k), int(found.nfev)) == (784.0, 7)
    np.testing.assert_array_equal(found.g_k, [-56, 0])
    known = line_search(bowl, -3 * p, p, old_fval=9.0, gfk=-6 * p, old_old_fval=12.0, c2=0.1)
    assert (float(known.a_k), int(known.nfev)) == (3.0, 4)


def test_a_line_search_that_runs_out_of_steps():
    p = np.float32([1, 0])
    found = line_search(bowl, -60 * p, p, c2=0.5, maxiter=5)
    assert bool(found.failed)
    assert int(found.status) == 3


def test_places_of_compressed_rows():
    rows, columns = _csr_to_coo(np.int32([0, 1, 1, 9, 9]), np.int32([0, 2, 3]))
    np.testing.assert_array_equal(rows, [0, 0, 1, 2, 2])  # what no row has is behind the last one
    np.testing.assert_array_equal(columns, [0, 1, 1, 9, 9])
