"""README and docs: Python blocks run, quoted Rust is the code of the file, files and links that are named exist."""

import re

import documents
import pytest
from documents import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EVERY_PAGE = [*PAGES, *sorted((ROOT / "docs" / "errors").glob("*.md")), ROOT / "CHANGELOG.md"]
NAME = {"ids": lambda p: p.relative_to(ROOT).as_posix()}


@pytest.mark.parametrize("page", PAGES, **NAME)
def test_programs(page):
    documents.check(page)


@pytest.mark.parametrize("page", PAGES, **NAME)
def test_quoted_rust(page):
    for file, piece in documents.quotes(page):
        assert piece in documents.stripped((ROOT / file).read_text()), f"{file} has no longer:{piece}"


@pytest.mark.parametrize("page", EVERY_PAGE, **NAME)
def test_links(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", EVERY_PAGE, **NAME)
def test_named_files(page):
    """Paths in backquotes, from the root of the repository."""
    for path in re.findall(r"`((?:crates|python|tests|docs|benches|examples)/[\w./-]+)`", page.read_text()):
        assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_the_tour_quotes_rust():
    assert len(list(documents.quotes(ROOT / "docs" / "tour.md"))) >= 15
