"""What the oracle excuses, and what it does not."""

import numpy as np

from tests.fuzz.compare import Operands, disagreement, excused, products_below
from tests.fuzz.program import Tolerance


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
