"""The pages of docs/errors: their programs run, and what they print is what the pages say (`tests/documents.py`)."""

import documents
import pytest

from ferrax import errors

PAGES = sorted(p for p in (documents.ROOT / "docs" / "errors").glob("*.md") if p.stem != "README")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page):
    documents.check(page)


def test_every_class_has_a_page():
    assert {p.stem for p in PAGES} == set(errors.__all__)
