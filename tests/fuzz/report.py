"""Failures: written as lines of JSON, a few of each kind, with the program that shows them."""

import collections
import dataclasses
import json
import pathlib


@dataclasses.dataclass
class Failure:
    """One finding; `signature` tells kinds apart."""

    check: str
    seed: int
    signature: str
    why: str
    program: str = ""

    def __str__(self):
        return f"{self.check}, seed {self.seed}: {self.signature}\n{self.why}\n{self.program}"


class Report:
    """Counts everything, keeps the first failures of each kind.

    Args:
        folder: where `failures.jsonl` and `current` go, the item that runs now: after a crash it names the culprit.
    """

    KEPT = 3

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.counts = collections.Counter()
        self.kinds = collections.Counter()
        self.lines = open(self.folder / "failures.jsonl", "a")  # noqa: SIM115 (one file for the life of the process)

    def begin(self, item):
        """Notes what runs now."""
        (self.folder / "current").write_text(json.dumps(item))

    def count(self, name):
        self.counts[name] += 1

    def wants(self, check, signature):
        """Whether a failure of this kind would still be written: what it costs to explain it is then well spent."""
        return self.kinds[check, signature] < self.KEPT

    def fail(self, failure):
        self.counts[f"FAILED {failure.check}"] += 1
        self.kinds[failure.check, failure.signature] += 1
        if self.kinds[failure.check, failure.signature] <= self.KEPT:
            self.lines.write(json.dumps(dataclasses.asdict(failure)) + "\n")
            self.lines.flush()


def read(folder):
    """The failures that runs have left in a folder."""
    path = pathlib.Path(folder) / "failures.jsonl"
    if not path.exists():
        return []
    return [Failure(**json.loads(line)) for line in path.read_text().splitlines()]


def one_of_each(failures):
    """The first failure of each kind."""
    kinds = {}
    for failure in failures:
        kinds.setdefault((failure.check, failure.signature[:40]), failure)
    return list(kinds.values())
