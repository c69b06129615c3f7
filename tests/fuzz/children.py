"""Child processes under a watchdog, and what they note when they do not end well.

A child writes what it does into the file `current` of its folder (`Report.begin`): one item that stays there too long
is a hang, and after a crash it names the culprit.
"""

import collections
import concurrent.futures
import dataclasses
import json
import pathlib
import subprocess
import sys
import threading
import time

from tests.fuzz.report import Failure, one_of_each, read


@dataclasses.dataclass
class Child:
    """How a child ended; `current` is what it did last."""

    code: int
    hung: bool
    out: str
    err: str
    current: object

    def what(self):
        return "a hang" if self.hung else f"exit status {self.code}"

    def ended_well(self):
        """Whether it came to its end: a status of 0 alone may be that of an exit on the way there."""
        return self.code == 0 and self.counts() is not None

    def counts(self):
        """The last line of a child that ended well; None where there is no such line."""
        try:
            return json.loads(self.out.splitlines()[-1])
        except (IndexError, ValueError):
            return None


def current(folder):
    try:
        return json.loads((folder / "current").read_text())
    except (OSError, json.JSONDecodeError):
        return None


def watch(child, folder, patience, hung):
    """Kills a child whose current item stays the same for `patience` seconds."""
    last, since = None, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        if current(folder) != last:
            last, since = current(folder), time.monotonic()
        elif time.monotonic() - since > patience:
            hung.set()
            child.kill()
            return


def run_child(module, options, folder, patience, env=None):
    """Runs a module of this package as a child.

    Args:
        module: its name.
        options: the command line.
        folder: where it notes what it does.
        patience: seconds that one item may take.
        env: the environment, None for this process's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-m", module, "--child", *map(str, options)]
    child = subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)  # fmt: skip
    hung = threading.Event()
    threading.Thread(target=watch, args=(child, folder, patience, hung), daemon=True).start()
    out, err = child.communicate()
    return Child(child.returncode, hung.is_set(), out, err, current(folder))


def note_crash(folder, child, check, seed, name, text):
    """Adds the end of a child to the failures of its folder."""
    failure = Failure(check, seed, f"{name} {child.what()}", child.err[-1500:], text)
    with open(folder / "failures.jsonl", "a") as lines:
        lines.write(json.dumps(dataclasses.asdict(failure)) + "\n")


def run_jobs(work, count, folder):
    """Runs `work(job, folder, counts)` in as many threads, and gathers their counts and failures of each kind."""
    folders = [pathlib.Path(folder) / str(job) for job in range(count)]
    counts = [collections.Counter() for _ in folders]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count), folders, counts))  # raises what a job raised: its share has not run
    return dict(sum(counts, collections.Counter())), one_of_each([f for one in folders for f in read(one)])


def conclude(counts, failures, text):
    """Prints the findings of a run, as `text` writes them, and its counts; the exit status."""
    for failure in failures:
        print(f"## {text(failure)}")
    print(counts)
    return 1 if failures else 0
