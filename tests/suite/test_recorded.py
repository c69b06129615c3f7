"""Recorded answers: what has another fingerprint, how answers come back, and when a test fails for want of one."""

import collections
import functools
import json
import os
import pathlib

import ml_dtypes
import numpy as np
import pytest

import ferrax
from tests import recorded
from tests.fingerprints import fingerprint
from tests.recorded import Answer, decode, encode, encode_error, error_class, expected

BASE = 3


def scaled(x, by=BASE):
    return x * by


def squared(x):
    return scaled(x, x)


def closing(y):
    return lambda x: x + y


def test_fingerprints_of_equal_questions():
    assert fingerprint(closing(2), [1]) == fingerprint(closing(2), [1])
    one, same = (lambda x: x + 1), (lambda x:   x  + 1)  # fmt: skip
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(np.arange(6).reshape(2, 3).T) == fingerprint(np.ascontiguousarray(np.arange(6).reshape(2, 3).T))


def test_fingerprints_tell_questions_apart():
    x = np.zeros(3, np.float32)
    questions = [
        1, 1.0, True, "1", None, (1,), [1], {"a": 1}, {"a": 2}, {1}, 0.0, -0.0, slice(1), range(1), np.float32(1),
        np.float64(1), np.dtype("int8"), x, -x, x[:2], x.reshape(3, 1), x.astype(ml_dtypes.bfloat16),
        ferrax.numpy.asarray(x), ferrax.numpy.asarray(1.0), closing(1), closing(2), closing(x),
        scaled, squared, lambda x: x, lambda x: x + 1,
        lambda x, y=1: x, lambda x, y=2: x, functools.partial(scaled, by=1), functools.partial(scaled, by=2),
        np.sin, np.cos, ferrax.grad, np, ferrax.numpy,
    ]  # fmt: skip
    assert len({fingerprint(q) for q in questions}) == len(questions)


def test_fingerprints_follow_globals(monkeypatch):
    before = fingerprint(squared)
    monkeypatch.setitem(globals(), "scaled", closing(1))
    assert fingerprint(squared) != before


@pytest.mark.parametrize("value", [object(), np.random.default_rng(0), np.array([None]), iter([])])
def test_what_has_no_fingerprint(value):
    with pytest.raises(TypeError, match="has no fingerprint"):
        fingerprint(value)


def test_answers_come_back():
    arrays = [
        ferrax.numpy.asarray(2.5), ferrax.numpy.arange(6).reshape(2, 3).T, ferrax.numpy.zeros((0, 2), "bfloat16"),
        ferrax.numpy.ones(3, "int4"), ferrax.numpy.asarray([1j, np.nan, -0.0]),
    ]  # fmt: skip
    for array in arrays:
        answer = decode(json.loads(json.dumps(encode(array))))
        assert isinstance(answer, Answer)
        assert (answer.dtype, answer.shape, answer.weak_type) == (array.dtype, array.shape, array.weak_type)
        assert answer.tobytes() == np.asarray(array).tobytes()
    rest = [
        None,
        True,
        3,
        -0.0,
        float("inf"),
        "text",
        1 + 2j,
        (1, [2, {"a": (), 3: "b"}]),
        slice(1, None),
        np.float32(1.5),
        np.dtype("int8"),
    ]
    for value in rest:
        answer = decode(json.loads(json.dumps(encode(value))))
        assert type(answer) is type(value) and repr(answer) == repr(value)
    assert not isinstance(decode(encode(np.ones(2))), Answer)
    with pytest.raises(TypeError, match="cannot be recorded"):
        encode(object())


def test_errors_come_back():
    kind, names, text = encode_error(KeyError(f"{pathlib.Path.cwd()}/x at 0x7f00"))
    assert kind == "error" and names[:2] == ["KeyError", "LookupError"] and text == "'/x at 0x'"
    assert error_class(*names) is KeyError
    made = error_class("OfJax", "TypeError", "Exception", "BaseException", "object")
    assert made.__name__ == "OfJax" and issubclass(made, TypeError)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Recordings in a folder of their own, and no JAX."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    monkeypatch.setattr(recorded, "RECORD", False)
    monkeypatch.setattr(recorded, "LIVE", False)
    recorded.recording.cache_clear()
    yield tmp_path / "suite" / "test_recorded.json.xz"
    recorded.recording.cache_clear()


def record(monkeypatch, *args):
    """What `make record` does for one question, with ferrax in JAX's place."""
    with monkeypatch.context() as patch:
        patch.setattr(recorded, "RECORD", True)
        patch.setattr(recorded, "LIVE", True)
        patch.setattr(recorded, "ask", lambda compute, args, wide: encode(compute(ferrax, *args)))
        patch.setattr(recorded, "_asked", collections.defaultdict(lambda: collections.defaultdict(dict)))
        expected(*args)
        recorded.save()
    recorded.recording.cache_clear()


def question(jax, x):
    return jax.numpy.sin(x)


def test_a_question_without_answer_fails(shelf, monkeypatch):
    x = np.float32([1, 2])
    with pytest.raises(pytest.fail.Exception, match="nothing is recorded"):
        expected(question, x)
    record(monkeypatch, question, x)
    np.testing.assert_array_equal(expected(question, x), ferrax.numpy.sin(x))
    for other in ((question, 2 * x), (lambda jax, x: jax.numpy.cos(x), x)):
        with pytest.raises(pytest.fail.Exception, match="stale"):
            expected(*other)
    with ferrax.enable_x64(True), pytest.raises(pytest.fail.Exception, match="stale"):
        expected(question, x)


def test_no_handler_of_exceptions_hides_that(shelf):
    with pytest.raises(pytest.fail.Exception):
        try:
            expected(question, 1.0)
        except Exception:
            os.abort()


def test_another_version_of_jax_is_refused(shelf, monkeypatch):
    record(monkeypatch, question, 1.0)
    monkeypatch.setattr(recorded, "pinned", lambda: "9.9.9")
    with pytest.raises(pytest.fail.Exception, match=r"not from 9\.9\.9: run `make record`"):
        expected(question, 1.0)


def test_recording_twice_gives_the_same_bytes(shelf, monkeypatch):
    record(monkeypatch, question, 1.0)
    first = shelf.read_bytes()
    shelf.unlink()
    recorded.recording.cache_clear()
    record(monkeypatch, question, 1.0)
    assert shelf.read_bytes() == first


@pytest.mark.skipif(recorded.RECORD, reason="they are being written")
def test_recordings_are_of_tests_that_are_there():
    files = sorted(recorded.FOLDER.rglob("*.xz"))
    for path in files:
        assert recorded.TESTS.joinpath(path.relative_to(recorded.FOLDER)).with_suffix("").with_suffix(".py").exists()
        assert recorded.read(path)["jax"] == recorded.pinned()
    assert 0 < sum(path.stat().st_size for path in files) <= 10 * 2**20
