"""Traces, memory profiles and listeners of events."""

import gzip
import json
import logging
import os
import threading
import time

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import _profile_data, monitoring, profiler
from tests.recorded import expected


def events(folder, pattern="*.trace.json.gz"):
    (path,) = folder.glob(f"plugins/profile/*/{pattern}")
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def test_spans_and_their_metadata(tmp_path):
    with profiler.trace(tmp_path):
        assert profiler.TraceAnnotation.is_enabled()
        with profiler.TraceAnnotation("outer", size=3) as outer:
            with profiler.StepTraceAnnotation("train", step_num=7):
                jnp.ones(3).block_until_ready()
            outer.set_metadata(more="x")
    assert not profiler.TraceAnnotation.is_enabled()
    spans = {e["name"]: e for e in events(tmp_path) if e["ph"] == "X"}
    assert set(spans) == {"outer", "train 7"}
    assert spans["outer"]["args"] == {"size": "3", "more": "x"}
    inner, outer = spans["train 7"], spans["outer"]
    assert 0 <= outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert inner["tid"] == outer["tid"]


def test_functions(tmp_path):
    @profiler.annotate_function
    def double(x):
        "Doubles."
        return 2 * x

    named = profiler.annotate_function(double, name="other", kind="test")
    assert double(2) == 4 and double.__doc__ == "Doubles."
    with profiler.trace(str(tmp_path)):
        assert named(3) == 6
    names = [e["name"] for e in events(tmp_path) if e["ph"] == "X"]
    assert names[0].endswith("double") and names[1] == "other"


def test_compilations_are_in_the_trace_and_not_in_the_log(tmp_path, caplog):
    f = ferrax.jit(lambda x: x + 41)
    with caplog.at_level(logging.WARNING), profiler.trace(tmp_path):
        f(jnp.ones(41))
    assert any(e["ph"] == "i" and "Compiling" in e["name"] and "float32[41]" in e["name"] for e in events(tmp_path))
    assert "Compiling" not in caplog.text and ferrax.config.jax_log_compiles is False


def test_memory_in_the_trace(tmp_path):
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        x = jnp.ones(100_000)
        with profiler.TraceAnnotation("held"):
            pass
        del x
    for pattern in ("*.trace.json.gz", "perfetto_trace.json.gz"):
        used = [e["args"]["bytes_in_use"] for e in events(tmp_path, pattern) if e["ph"] == "C"]
        assert used[1] - used[0] >= 400_000 > used[2] - used[0]


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()
    with pytest.raises(ValueError, match="inside"), profiler.trace(tmp_path):
        raise ValueError("inside")
    assert not profiler.TraceAnnotation.is_enabled()
    assert len(list(tmp_path.glob("plugins/profile/*"))) == 2


def test_spans_over_the_borders_of_a_trace_are_left_out(tmp_path):
    with profiler.TraceAnnotation("before"):
        profiler.start_trace(tmp_path)
    with profiler.TraceAnnotation("after"):
        profiler.stop_trace()
    assert not [e for e in events(tmp_path) if e["ph"] == "X"]


def options(**changed):
    made = profiler.ProfileOptions()
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def planes(folder):
    """What a trace says: planes, their lines, and events with what is said of them."""
    (path,) = folder.glob("plugins/profile/*/*.xplane.pb")
    event = lambda e: (e.name, e.start_ns, e.duration_ns, dict(e.stats))
    data = profiler.ProfileData.from_file(path)
    return {p.name: (dict(p.stats), {li.name: list(map(event, li.events)) for li in p.lines}) for p in data.planes}


def test_planes_of_a_trace(tmp_path):
    kept = jnp.ones(100)
    with profiler.trace(tmp_path), profiler.TraceAnnotation("outer", size=3):
        threading.Thread(target=profiler.annotate_function(time.sleep, "nap"), args=(0.01,)).start()
        time.sleep(0.05)
    got = planes(tmp_path)
    assert set(got) == {"/host:metadata", "/host:CPU", "Task Environment"}
    assert got["/host:metadata"][0] == {"ferrax_version": ferrax.__version__}
    task = got["Task Environment"][0]
    assert 0 < task["profile_stop_time"] - task["profile_start_time"] < 60e9
    lines = got["/host:CPU"][1]
    assert len(lines) == 2 and got["/host:CPU"][0] == {"process_id": os.getpid()}
    found = {name: (begin, length, said) for line in lines.values() for name, begin, length, said in line}
    (begin, length, said), (first, nap, _) = found["outer"], found["nap"]
    assert said == {"size": "3"} and nap >= 9e6 and begin <= first and first + nap <= begin + length
    assert found["memory"][2]["bytes_in_use"] >= kept.nbytes


def test_planes_are_those_that_jax_reads(monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: 7)
    said = {"n": -3, "f": 0.5, "t": "text", "none": None}
    events = [{"name": "a", "ts": 1.5, "dur": 0.25, "tid": 1, "args": said}, {"name": "b", "ts": 7.0, "tid": 2}]
    data = _profile_data.written(events, {"version": "1"}, (10, 20))

    def read(jax):
        found = []
        for plane in jax.profiler.ProfileData.from_serialized_xspace(data).planes:
            found.append([plane.name, [list(s) for s in plane.stats]])
            for line in plane.lines:
                found += [[line.name, e.name, e.start_ns, e.end_ns, [list(s) for s in e.stats]] for e in line.events]
        return found

    assert read(ferrax) == expected(read)


def test_options_of_traces(tmp_path):
    chosen = options(host_tracer_level=0, session_id="mine")
    with profiler.trace(tmp_path, profiler_options=chosen), profiler.TraceAnnotation("left out"):
        pass
    assert [p.name for p in (tmp_path / "plugins" / "profile").iterdir()] == ["mine"]
    (line,) = planes(tmp_path)["/host:CPU"][1].values()
    assert {name for name, *_ in line} == {"memory"}
    with pytest.raises(TypeError, match="ProfileOptions"):
        profiler.start_trace(tmp_path, profiler_options={})


@pytest.mark.parametrize("data", [b"\x0a\x7f", b"\xff" * 12, b"\x0b", b"\x0a\x02\x12\x09"])
def test_bytes_that_are_no_profile(data):
    with pytest.raises(ValueError, match="no profile"):
        profiler.ProfileData.from_serialized_xspace(data)


def test_what_there_is_not(tmp_path):
    for call in (
        lambda: profiler.start_server(9999),
        lambda: profiler.register_subprocess(1, 2),
        lambda: profiler.start_trace(tmp_path, create_perfetto_link=True),
        lambda: profiler.start_trace(tmp_path, profiler_options=options(duration_ms=5)),
        lambda: profiler.start_trace(tmp_path, profiler_options=options(advanced_configuration={"a": 1})),
    ):
        with pytest.raises(NotImplementedError):
            call()
    assert not profiler.TraceAnnotation.is_enabled()


def fields(data):
    """(field number, value) pairs of a protocol buffer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def test_memory_profile(tmp_path):
    kept = [jnp.ones((3, 1701)), jnp.zeros((3, 1701))]
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    profile = list(fields(gzip.decompress((tmp_path / "memory.prof").read_bytes())))
    strings = [value.decode() for key, value in profile if key == 6]
    assert strings[0] == "" and {"allocations", "count", "space", "bytes", "buffer"} <= set(strings)
    functions = {dict(fields(v))[1]: strings[dict(fields(v))[2]] for k, v in profile if k == 5}
    samples = {}
    for key, value in profile:
        if key == 2:
            parts = dict(fields(value))
            samples[functions[parts[1][0]]] = list(varints(parts[2]))
    assert samples["float32[3,1701]"] == [2, 2 * 3 * 1701 * 4]
    assert len(kept) == 2
    with pytest.raises(RuntimeError):
        profiler.device_memory_profile("nowhere")


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def test_listeners():
    seen = []
    kinds = {
        "event": ((), "event", "event"),
        "event_duration_secs": ((1.5,), "event_duration_secs", "event_duration"),
        "event_time_span": ((1.0, 2.0), "event_time_span", "event_time_span"),
        "scalar": ((3,), "scalar", "scalar"),
    }
    for record, (values, add, remove) in kinds.items():

        def listen(*args, record=record, **kwargs):
            seen.append((record, args, kwargs))

        getattr(monitoring, f"register_{add}_listener")(listen)
        getattr(monitoring, f"record_{record}")("name", *values, key=1)
        assert seen.pop() == (record, ("name", *values), {"key": 1})
        getattr(monitoring, f"unregister_{remove}_listener")(listen)
        getattr(monitoring, f"record_{record}")("name", *values)
        assert not seen
        with pytest.raises(AssertionError):
            getattr(monitoring, f"unregister_{remove}_listener")(listen)
        getattr(monitoring, f"register_{add}_listener")(listen)
    monitoring.clear_event_listeners()
    for record, (values, *_) in kinds.items():
        getattr(monitoring, f"record_{record}")("name", *values)
    assert not seen


def test_traces_and_compilations_are_recorded():
    seen, spans = [], []
    listen = lambda event, seconds, **more: seen.append((event, seconds > 0, more))
    monitoring.register_event_duration_secs_listener(listen)
    monitoring.register_event_time_span_listener(lambda event, *span, **more: spans.append((event, span, more)))

    def outer(x):
        return ferrax.jit(jnp.sin)(x) * 2

    try:
        before, f = time.time(), ferrax.jit(outer)
        f(jnp.ones(3)), f(jnp.zeros(3)), jnp.ones(3) + 1
        assert seen == [
            ("/jax/core/compile/jaxpr_trace_duration", True, {"fun_name": "outer"}),
            ("/jax/core/compile/backend_compile_duration", True, {"fun_name": "jit(outer)"}),
        ]
        assert [(event, more) for event, _, more in spans] == [(event, more) for event, _, more in seen]
        assert all(before - 1 < begin <= end <= time.time() for _, (begin, end), _ in spans)
        f(jnp.ones(4))
        assert len(seen) == 4
    finally:
        monitoring.clear_event_listeners()
    f(jnp.ones(5))
    assert len(seen) == len(spans) == 4
