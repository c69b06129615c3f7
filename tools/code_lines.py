"""Code lines of each crate: without comments, blank lines and tests. `python tools/code_lines.py [MOST]`.

Exits with 1 where all crates together have more than MOST. Items for tests alone, files named `tests.rs` or written by
`make generated`, and the folders `tests`, `benches` and `examples` do not count. A line counts once,
however long it is.
"""

import pathlib
import re
import sys

CRATES = pathlib.Path(__file__).parent.parent / "crates"
#: What the head of a file that nobody writes by hand says.
GENERATED = "written by `make generated`"
#: Strings, character literals and comments; of these only comments go.
PIECES = re.compile(
    r"""(?P<text>b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])')"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/)""",
    re.DOTALL,
)
#: An item for tests: one line, or up to the brace that closes it.
TESTS = re.compile(r"^#\[cfg\((?:all\()?test.*?\n(?:#\[.*?\n)*(?:[^\n{]*;\n|.*?^\}\n)", re.DOTALL | re.MULTILINE)


def code_lines(text):
    """The number of lines of a source that hold code."""
    kept = PIECES.sub(lambda m: m["text"] or "\n" * m["comment"].count("\n"), TESTS.sub("", text))
    return sum(1 for line in kept.splitlines() if line.strip())


def crate_lines(crate):
    sources = [path for path in sorted((crate / "src").rglob("*.rs")) if path.name != "tests.rs"]
    texts = [path.read_text() for path in sources]
    return sum(code_lines(text) for text in texts if GENERATED not in text[:200])


def main():
    counts = {crate.name: crate_lines(crate) for crate in sorted(CRATES.iterdir()) if (crate / "src").is_dir()}
    for name, count in counts.items():
        print(f"{count:7,} {name}")
    total = sum(counts.values())
    print(f"{total:7,} code lines in all")
    return int(len(sys.argv) > 1 and total > int(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
