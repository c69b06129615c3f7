"""README and docs: Python blocks run, quoted Rust is the code of the file, files and links that are named exist."""

import re
import tomllib

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


def test_every_package_is_explained():
    """What pyproject.toml asks for has a line in docs/dependencies.md; `crate_graph.rs` sees to the Rust crates."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(p for e in extras for p in e),
    ]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    assert [p for p in wanted if f"`{re.match('[A-Za-z0-9_-]+', p)[0]}`" not in text] == []


def test_every_error_page_is_listed():
    listed = (ROOT / "docs" / "errors" / "README.md").read_text()
    pages = [p.name for p in (ROOT / "docs" / "errors").glob("*.md") if p.stem != "README"]
    assert [p for p in pages if f"({p})" not in listed] == []


def test_the_tour_quotes_rust():
    assert len(list(documents.quotes(ROOT / "docs" / "tour.md"))) >= 15
