"""What the oracle excuses, and what it does not."""

import numpy as np

import ferrax.numpy as jnp
from tests.fuzz.api import SLOW, patience_for
from tests.fuzz.compare import Operands, disagreement, excused, products_below
from tests.fuzz.oracle import expected
from tests.fuzz.program import Step, Tolerance


def agree(ours, known):
    return disagreement(ours, known.astype(ours.dtype), Tolerance.ROUNDED, Operands([])) is None


def test_results_are_excused_where_the_other_library_is_as_far_from_the_exact_ones():
    exact = np.array([1.0, 2.0, 3.0])
    ours = np.array([1.0, 2.1, 3.0], np.float32)
    assert agree(ours, excused(ours, np.float32([1, 1.9, 3]), exact, 2))
    assert not agree(ours, excused(ours, np.float32([1, 2, 3.5]), exact, 2))
    assert agree(ours, excused(ours, np.float32([1, 2, 3.5]), exact, 2, whole=True))
    assert not agree(ours, excused(ours, np.float32([1, 2, 3]), exact, 2, whole=True))


def test_numbers_that_are_not_finite_excuse_nothing():
    ours = np.array([1.5, 2.5], np.float32)
    for whole in (False, True):
        known = excused(ours, np.float32([np.nan, np.inf]), np.array([1.0, 2.0]), 8, whole)
        np.testing.assert_array_equal(known, [1, 2])


def test_running_products_lose_digits_below_the_normal_numbers():
    a = np.float32([[1e-20, 2, 1e-20, 1e30], [1, 1e30, 1e-20, 1e-20]])
    np.testing.assert_array_equal(products_below(a, 1, False), [[0, 0, 1, 1], [0, 0, 0, 1]])
    np.testing.assert_array_equal(products_below(a, 1, True), [[1, 0, 0, 0], [1, 1, 1, 0]])
    np.testing.assert_array_equal(products_below(np.float32([np.nan, 0.5]), 0, False), [0, 0])


def test_windows_over_elements_with_gaps_are_computed_once_more_with_the_gaps_filled():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    filled = np.zeros((5, 4), np.float32)
    filled[::2] = x
    sums = filled[:, :2] + filled[:, 1:3]
    dilations = [(2, 1), (1, 1)]
    step = lambda gaps: Step(
        f"v1 = lax.reduce_window(x0, jnp.array(0, x0.dtype), lax.add, (1, 2), (1, 2), [(0, 0), (0, 0)], *{gaps})",
        outs=["v1"],
        tolerance=Tolerance.SUM,
    )
    right = np.stack([sums[:, 0], filled[:, 2] + filled[:, 3]], 1)
    assert "elements with gaps" in expected(step(dilations), {"x0": x}, right, right + 1)
    assert expected(step(dilations), {"x0": x}, right + 1, right) is None
    assert expected(step([(1, 1), (1, 1)]), {"x0": x}, right, right + 1) is None


def test_large_results_may_take_longer():
    large, small = jnp.zeros(10**8, bool), jnp.zeros(3)
    assert patience_for([large, small]) > SLOW + 0.2
    assert patience_for((small, "text", None)) < SLOW + 1e-6
