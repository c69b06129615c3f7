"""Warnings in tests: errors by default, some of them ignored."""

import contextlib
import warnings
from collections.abc import Iterator


def raise_on_warnings() -> None:
    """Makes every warning an error in this process."""
    warnings.simplefilter("error")


@contextlib.contextmanager
def ignore_warning(
    *, message: str = "", category: type[Warning] = Warning, record: bool = False
) -> Iterator[list[warnings.WarningMessage] | None]:
    """Ignores warnings of a class whose text begins like a regular expression."""
    with warnings.catch_warnings(record=record) as caught:
        warnings.filterwarnings("ignore", message=message, category=category)
        yield caught
