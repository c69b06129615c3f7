"""Documents that run: the Python blocks of a Markdown page, with what they print in the block that follows.

A `python` block runs after the blocks before it, in one namespace. A `text` block after it holds what it prints, the
last line of a traceback included; a block of `>>>` examples holds what it prints itself. `FERRAX_TEST_RECORD=1`
writes the text blocks anew. A `rust` block whose first line
names a file holds lines of that file; `// ...` stands for lines left out.
"""

import contextlib
import difflib
import doctest
import io
import linecache
import os
import pathlib
import re
import traceback

ROOT = pathlib.Path(__file__).parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
RUST = re.compile(r"^```rust\n// (\S+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


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


def examples(source, namespace, name):
    """Runs a block of `>>>` examples; what fails is an error."""
    test = doctest.DocTestParser().get_doctest(source, namespace, name, name, 0)
    failures = []
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append, clear_globs=False)
    assert failures == [], "".join(failures)
    namespace.update(test.globs)


def executed(page):
    """The page with its text blocks filled by running it."""
    namespace = {"__name__": "__main__"}
    numbers = iter(range(1, 100))

    def fill(match):
        if match[1].startswith(">>> "):
            examples(match[1], namespace, page.name)
            return match[0]
        printed = run(match[1], namespace, next(numbers))
        text = f"\n```text\n{printed}```\n" if printed or match[2] is not None else ""
        return f"```python\n{match[1]}```\n{text}"

    return PYTHON.sub(fill, page.read_text())


def check(page):
    """Asserts that a page prints what it says, or, when recording, makes it so."""
    filled = executed(page)
    if os.environ.get("FERRAX_TEST_RECORD"):
        page.write_text(filled)
    said = page.read_text()
    changes = difflib.unified_diff(said.splitlines(), filled.splitlines(), "said", "printed", lineterm="", n=1)
    assert filled == said, "\n".join(changes)


def quotes(page):
    """(file, lines) of each piece of Rust that a page quotes."""
    for match in RUST.finditer(page.read_text()):
        pieces = re.split(r"^\s*// \.\.\.$", match[2], flags=re.MULTILINE)
        yield from ((match[1], stripped(piece)) for piece in pieces if piece.strip())


def stripped(text):
    """The lines of a text without indentation and blank lines, one string."""
    return "\n" + "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"
