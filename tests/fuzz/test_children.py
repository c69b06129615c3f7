"""What the processes of fuzzing report, and what they must not keep silent about."""

import pathlib
import signal
import time

import pytest

from tests.fuzz import api, children
from tests.fuzz.report import Report, read


@pytest.mark.parametrize(
    "code, out, well", [(0, '{"calls": 1}\n', True), (0, "", False), (0, "half a li", False), (1, "{}\n", False)]
)
def test_only_a_child_that_says_its_counts_has_ended_well(code, out, well):
    assert children.Child(code, False, out, "", None).ended_well() is well


def test_what_a_job_raises_is_raised(tmp_path):
    def work(job, folder, counts):
        counts["jobs"] += 1
        if job == 1:
            raise IndexError("of job 1")

    with pytest.raises(IndexError, match="of job 1"):
        children.run_jobs(work, 2, tmp_path)
    counts, failures = children.run_jobs(work, 1, tmp_path)
    assert counts == {"jobs": 1} and not failures


def wait_until_idle():
    """Waits for threads that other tests have left at work: a hang is told by the time of the process."""
    idle = 0
    for _ in range(300):
        start = time.process_time()
        time.sleep(0.1)
        # on a busy machine, threads at work may get no processor for a while
        idle = idle + 1 if time.process_time() - start < 0.01 else 0
        if idle == 10:
            return


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls a function as `api.py` does, with a hang after 0.3 s; the kinds of what it finds."""
    api.Caller(Report(tmp_path / "first"), "f", int).call([])  # loads what a call needs
    wait_until_idle()
    monkeypatch.setattr(api, "HANG", 0.3)
    before = signal.signal(signal.SIGPROF, api.on_alarm)

    def call(function):
        api.Caller(Report(tmp_path), "f", function).call([])
        return [failure.check for failure in read(tmp_path)]

    yield call
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def test_a_call_that_waits_for_the_processor_does_not_hang(call):
    assert call(lambda: time.sleep(0.6)) == []


def test_a_call_that_keeps_the_processor_hangs(call):
    def endless():
        until = time.monotonic() + 60
        while time.monotonic() < until:
            pass

    assert call(endless) == ["argument: hang"]


def test_a_child_that_sleeps_is_a_hang(tmp_path, monkeypatch):
    root = tmp_path / "code"
    root.mkdir()
    (root / "sleeper.py").write_text(
        "import pathlib, sys, time\npathlib.Path(sys.argv[-1], 'current').write_text('7')\ntime.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(root))
    child = children.run_child("sleeper", [tmp_path], pathlib.Path(tmp_path), 1)
    assert child.hung and not child.ended_well() and child.current == 7
