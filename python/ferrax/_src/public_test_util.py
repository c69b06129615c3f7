"""Comparisons for tests."""

from ferrax.test_util import check_close as check_close
from ferrax.test_util import check_grads as check_grads
from ferrax.test_util import check_jvp as check_jvp
from ferrax.test_util import check_vjp as check_vjp
