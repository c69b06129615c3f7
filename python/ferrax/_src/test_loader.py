"""A loader of tests, and marks of tests that threads must not share; tests run in one thread here."""

from ferrax._src._test_more import TEST_NUM_THREADS as TEST_NUM_THREADS
from ferrax._src.test_util import (
    JaxTestLoader as JaxTestLoader,
    thread_unsafe_test as thread_unsafe_test,
    thread_unsafe_test_class as thread_unsafe_test_class,
)
