"""The pages of docs/errors: their programs run, and what they print is what the pages say.

A page is a document with fenced blocks. A `python` block runs after the blocks before it; a `text` block after it holds
what it prints, the last line of a traceback included. `FERRAX_TEST_RECORD=1` writes the text blocks anew.
"""

import contextlib
import io
import linecache
import os
import pathlib
import re
import traceback

import pytest

from ferrax import errors

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "errors"
PAGES = sorted(p for p in FOLDER.glob("*.md") if p.stem != "README")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def run(source, namespace, number):
    """What a block prints."""
    name = f"example{number}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(source, name, "exec"), namespace)
        except Exception as error:
            last = "".join(traceback.format_exception_only(error)).rstrip("\n")
            print(last.removeprefix("ferrax.errors."))
    return re.sub(r"[ \t]+$", "", printed.getvalue(), flags=re.MULTILINE)


def executed(page):
    """The page with its text blocks filled by running it."""
    namespace = {"__name__": "__main__"}
    numbers = iter(range(1, 100))

    def fill(match):
        printed = run(match[1], namespace, next(numbers))
        text = f"\n```text\n{printed}```\n" if printed or match[2] is not None else ""
        return f"```python\n{match[1]}```\n{text}"

    return BLOCK.sub(fill, page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(page):
    filled = executed(page)
    if os.environ.get("FERRAX_TEST_RECORD"):
        page.write_text(filled)
    assert filled == page.read_text()


def test_every_class_has_a_page():
    assert {p.stem for p in PAGES} == set(errors.__all__)
