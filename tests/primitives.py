"""The primitives there are, from the page that the Rust tests generate from the registry and compare with it."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "coverage.md"


def names():
    """The names of all primitives."""
    return re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
