"""Warnings in tests: raised, recorded or ignored for the length of a block."""

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def raise_on_warnings() -> Iterator[None]:
    """Makes every warning of a block an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextlib.contextmanager
def record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Gives the list of a block's warnings, which grows with each of them, repeated ones too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextlib.contextmanager
def ignore_warning(*, message: str | None = None, category: type[Warning] = Warning) -> Iterator[None]:
    """Ignores warnings of a class whose text begins like a regular expression."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message or "", category=category)
        yield
