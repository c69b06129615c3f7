"""Settings that look at what runs do what JAX's do; the ones that nothing reads say so."""

import logging
import os
import re
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.errors import JaxRuntimeError
from tests.recorded import expected

# ---- transfer guards

#: What a user does with `x` (on a device), `y`, `i` (an integer there), `k` (a key) and `big` (NumPy's).
TRANSFERS = """f(big)
f(1.0)
f(np.float32(1))
f(x)
x + y
x + 1.0
1.0 + x
x + big
x == 1
-x
jnp.add(x, 1)
jnp.sin(x)
jnp.sin(1.0)
jnp.sin(big)
jnp.array(1.0)
jnp.array([1, 2])
jnp.array(big)
jnp.asarray(big)
jnp.asarray(x)
jnp.array(x)
jnp.float32(1)
jnp.zeros(3)
jnp.ones(3)
jnp.full((3,), 2.0)
jnp.arange(3)
jnp.linspace(0, 1, 3)
jnp.eye(3)
x[3]
x[1:3]
x[np.array([0, 1])]
x.at[0].set(1.0)
jax.device_put(big)
jax.device_put(1.0)
jax.device_put(x)
jax.device_put(x, jax.devices()[0])
jax.device_put({"a": big})
jax.device_get(x)
np.asarray(x)
float(i)
int(i)
bool(i)
[0, 1, 2][i]
i.item()
x.tolist()
repr(x)
f"{i:d}"
list(x)
jax.random.key(0)
jax.random.PRNGKey(0)
jax.random.normal(k)
jax.random.split(k)
jax.random.uniform(k, (2,), minval=0.0, maxval=1.0)
jnp.sum(x)
jnp.mean(x)
jnp.stack([x, y])
jnp.concatenate([x, big])
jnp.dot(x, y)
jnp.dot(big, x)
jnp.where(x > y, x, y)
x.astype(jnp.int32)
x.copy()
jax.vmap(jnp.sin)(x)
jax.vmap(jnp.sin)(big)
jax.vmap(lambda a: a + 1.0)(x)
jax.grad(lambda a: a * a)(big[0])
jax.jit(lambda a: a + big)(x)
jax.jit(lambda a: a + 1.0)(x)
jax.make_jaxpr(lambda a: a + 1.0)(1.0)
jax.eval_shape(lambda a: a + 1.0, big)
jax.lax.add(x, y)
jax.lax.add(x, 1.0)
jax.lax.sin(1.0)
jnp.linalg.norm(x)
jnp.linalg.norm(big)
x ** 2
x ** -1
x ** 0.5
jnp.roll(x, 1)
jnp.repeat(x, 2)
jax.nn.softmax(big)""".splitlines()


def outcome(jax, level, source):
    """Whether a transfer raises, having run once before."""
    jnp = jax.numpy
    names = {
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "f": jax.jit(lambda a: a + 1),
        "x": jnp.arange(4.0),
        "y": jnp.arange(4.0) + 1,
        "i": jnp.int32(2),
        "k": jax.random.key(0),
        "big": np.ones(4, np.float32),
    }
    code = compile(source, "<user>", "eval")
    eval(code, names)
    with jax.transfer_guard(level):
        try:
            eval(code, names)
        except Exception as error:
            return [type(error).__name__, str(error).split(":")[1].strip()]
    return "allowed"


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_transfers_are_refused_where_jax_refuses_them(level):
    theirs = expected(lambda jax, level, sources: [outcome(jax, level, s) for s in sources], level, TRANSFERS)
    ours = [outcome(jax, level, s) for s in TRANSFERS]
    assert dict(zip(TRANSFERS, ours, strict=True)) == dict(zip(TRANSFERS, theirs, strict=True))
    assert "allowed" in ours and any("host-to-device" in o[1] for o in ours)


def test_the_error_says_what_was_transferred_and_how_to_do_it():
    x = jnp.arange(2.0)
    with jax.transfer_guard_host_to_device("disallow"), pytest.raises(JaxRuntimeError) as caught:
        x + np.ones(2, np.float32)
    text = str(caught.value)
    assert "INVALID_ARGUMENT: Disallowed host-to-device transfer: aval=ShapedArray(float32[2])" in text
    assert "jax.device_put" in text and "jax_transfer_guard_host_to_device" in text


def test_each_guard_guards_its_direction_on_its_thread():
    x = jnp.arange(2.0)
    with jax.transfer_guard_device_to_host("disallow_explicit"):
        assert (x + 1.0)[0] == 1.0
    with jax.transfer_guard("disallow"):
        with jax.transfer_guard_host_to_device("allow"):
            assert jnp.sum(x + 1.0) == 3.0
        found = []
        thread = threading.Thread(target=lambda: found.append(x + 1.0))
        thread.start()
        thread.join()
        assert found[0].shape == (2,)
        with pytest.raises(JaxRuntimeError):
            x + 1.0
    assert (x + 1.0).shape == (2,)


def test_logged_transfers_are_told_with_their_place(caplog):
    x = jnp.arange(2.0)
    with caplog.at_level(logging.WARNING, "ferrax.transfers"):
        with jax.transfer_guard("log"):
            x + 1.0
            jax.device_put(1.0)
        (record,) = caplog.records
        assert "host-to-device transfer: aval=ShapedArray(float32[]" in record.getMessage()
        assert "test_settings.py" in record.getMessage()
        caplog.clear()
        with jax.transfer_guard("log_explicit"):
            x + 1.0
            jax.device_put(1.0)
        assert len(caplog.records) == 2


def test_the_process_wide_guard_sets_the_three():
    names = [f"jax_transfer_guard_{d}" for d in ("host_to_device", "device_to_device", "device_to_host")]
    try:
        jax.config.update("jax_transfer_guard", "disallow")
        assert [jax.config.read(n) for n in names] == ["disallow"] * 3
        x = jax.device_put(1.0)
        with pytest.raises(JaxRuntimeError):
            x + 1.0
    finally:
        jax.config.update("jax_transfer_guard", None)
    assert x + 1.0 == 2.0
    with pytest.raises(ValueError, match="disallow_explicit"):
        jax.config.update("jax_transfer_guard", "sometimes")


OTHER_DEVICES = """
import numpy as np, ferrax as jax, ferrax.numpy as jnp
def refused(f):
    try:
        f()
    except jax.errors.JaxRuntimeError as error:
        return str(error).split("transfer")[0].split()[-1]
first, second = jax.devices()[:2]
x, y = jnp.arange(2.0), jax.device_put(jnp.arange(2.0), second)
with jax.transfer_guard("disallow"):
    print(refused(lambda: x + y), refused(lambda: jax.device_put(x, second)), refused(lambda: y + y))
with jax.transfer_guard("disallow_explicit"):
    print(refused(lambda: jax.device_put(x, second)), refused(lambda: jax.device_put(x, first)))
"""


def test_transfers_between_devices():
    run = subprocess.run(
        [sys.executable, "-c", OTHER_DEVICES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "FERRAX_NUM_CPU_DEVICES": "2"},
    )
    assert run.stdout.split() == ["device-to-device", "None", "None", "device-to-device", "None"], run.stdout


# ---- no_execution, enable_checks, explicit 64-bit dtypes, raw keys


NOT_RUN = """x + x
f(x)
x[3]
x[1:]
jnp.sin(x)
jnp.sum(x)
jnp.zeros(3)
jnp.asarray(np.ones(3, np.float32))
jax.lax.sin(x)
jax.vmap(lambda a: a * 2)(x)
jax.lax.scan(lambda c, a: (c + a, a), x[0] if False else 0.0, x)
compiled(x)
jax.make_jaxpr(lambda a: a * 2)(x)
jax.eval_shape(lambda a: a * 2, x)
jax.jit(lambda a: a * 5).lower(x).compile() and 0
repr(x)
jax.device_put(x)
np.asarray(x)""".splitlines()


def executed(jax, source):
    jnp = jax.numpy
    x = jnp.arange(4.0)
    f = jax.jit(lambda a: a + 1)
    names = {"jax": jax, "jnp": jnp, "np": np, "x": x, "f": f, "compiled": f.lower(x).compile()}
    code = compile(source, "<user>", "eval")
    eval(code, names)
    with jax.no_execution(True):
        try:
            eval(code, names)
        except RuntimeError as error:
            return [type(error).__name__, str(error).split("jit(")[0]]
    return "runs"


def test_nothing_is_executed():
    theirs = expected(lambda jax, sources: [executed(jax, s) for s in sources], NOT_RUN)
    assert dict(zip(NOT_RUN, [executed(jax, s) for s in NOT_RUN], strict=True)) == dict(
        zip(NOT_RUN, theirs, strict=True)
    )


def test_programs_are_verified_under_enable_checks():
    with jax.enable_checks(True):
        f = jax.jit(lambda x: jnp.where(x > 0, jnp.sin(x), x).sum())
        assert f(jnp.arange(3.0)) == jnp.sin(jnp.arange(3.0)).sum()
        assert jax.grad(f)(jnp.arange(3.0)).shape == (3,)
        assert jax.config.jax_enable_checks
    assert not jax.config.jax_enable_checks


def explicit(jax, mode, source):
    jnp = jax.numpy
    names = {"jax": jax, "jnp": jnp, "np": np, "__name__": "user"}
    try:
        jax.config.update("jax_explicit_x64_dtypes", mode)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = eval(source, names)
        return [str(result.dtype), bool(found)]
    except ValueError as error:
        return str(error)[:27]
    finally:
        jax.config.update("jax_explicit_x64_dtypes", "warn")


WIDE = """jnp.zeros(3, dtype="float64")
jnp.ones(3, dtype=np.int64)
jnp.arange(3, dtype="int64")
jnp.array([1.0], dtype=jnp.float64)
jnp.asarray(np.ones(2))
jnp.asarray(np.ones(2), dtype="float64")
jnp.full(2, 1, "complex128")
jnp.zeros(3, dtype=float)
jnp.zeros(3, dtype="float32")
jnp.float32(1).astype("float64")
jnp.sum(jnp.ones(3), dtype="float64")
jax.lax.convert_element_type(1.0, "float64")
jnp.zeros(3, dtype="float64") + 1
jnp.zeros(3, dtype="float64") + jnp.ones(3)
jnp.sin(jnp.ones(3, dtype="float64"))
jax.jit(lambda x: x * 2)(jnp.ones(3, dtype="float64"))
jax.jit(lambda: jnp.ones(3, dtype="float64"))()""".splitlines()


@pytest.mark.parametrize("mode", ["allow", "warn", "error"])
def test_explicit_64_bit_dtypes(mode):
    def every(jax, mode, sources):
        return [explicit(jax, mode, s) for s in sources]

    ours, theirs = every(jax, mode, WIDE), expected(every, mode, WIDE)
    assert dict(zip(WIDE, ours, strict=True)) == dict(zip(WIDE, theirs, strict=True))


RAW = """normal(raw)
split(raw)
fold_in(raw, 1)
key_data(raw)
key_impl(raw)
wrap_key_data(raw)
PRNGKey(0)
clone(raw)
split(key(0))""".splitlines()


def raw_key(jax, mode, source):
    names = {**vars(jax.random), "raw": jax.numpy.array([0, 1], "uint32")}
    with jax.legacy_prng_key(mode), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            eval(source, names)
        except ValueError as error:
            return str(error)
        return [[w.category.__name__, str(w.message)] for w in found]


@pytest.mark.parametrize("mode", ["allow", "warn", "error"])
def test_raw_keys(mode):
    def every(jax, mode, sources):
        return [raw_key(jax, mode, s) for s in sources]

    theirs = expected(every, mode, RAW)
    assert dict(zip(RAW, every(jax, mode, RAW), strict=True)) == dict(zip(RAW, theirs, strict=True))


def test_a_raw_key_warns_at_the_users_line():
    with jax.legacy_prng_key("warn"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        jax.random.normal(jax.random.PRNGKey(0))
    assert found[0].filename == __file__
    with pytest.raises(ValueError, match="allow"):
        jax.config.update("jax_legacy_prng_key", "sometimes")


def test_float0_has_no_arithmetic():
    tangent = np.zeros(2, jax.dtypes.float0)
    for operation in (lambda: jnp.ones(2) + tangent, lambda: jnp.sin(tangent), lambda: jax.lax.add(tangent, tangent)):
        with pytest.raises(TypeError, match="float0"):
            operation()


# ---- settings that nothing reads


def test_settings_that_nothing_reads_say_so():
    for name, other in (
        ("jax_log_checkpoint_residuals", True),
        ("jax_disable_most_optimizations", True),
        ("jax_dump_ir_to", "/nowhere"),
    ):
        start = jax.config.read(name)
        with pytest.raises(NotImplementedError, match=f"the setting {name} is not implemented"):
            jax.config.update(name, other)
        jax.config.update(name, start)
        assert jax.config.read(name) == start


def test_every_setting_of_jax_can_be_read():
    names = expected(lambda jax: sorted(jax.config.values))
    assert [name for name in names if not hasattr(jax.config, name)] == []


def test_a_setting_of_the_environment_that_nothing_reads_warns():
    run = subprocess.run(
        [sys.executable, "-c", "import ferrax"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_CUSTOM_VJP3": "1"},
    )
    assert "jax_custom_vjp3 is not implemented" in run.stderr


def test_levels_of_logging():
    logger = logging.getLogger("ferrax")
    try:
        jax.config.update("jax_logging_level", "ERROR")
        assert logger.level == logging.ERROR
    finally:
        jax.config.update("jax_logging_level", "NOTSET")
    assert logger.level == logging.NOTSET
    jax.config.update("jax_logging_level", None)
    assert logger.level == logging.NOTSET
    jax.config.update("jax_logging_level", "NOTSET")
    with pytest.raises(ValueError, match=r"must be None or in \['NOTSET', 'DEBUG', .*, got 'loud'"):
        jax.config.update("jax_logging_level", "loud")


def test_modules_that_log_everything(capsys):
    below, other = logging.getLogger("ferrax.below.it"), logging.getLogger("elsewhere")
    try:
        jax.config.update("jax_debug_log_modules", "jax.below,jax.below.it,")
        below.debug("first")
        other.debug("second")
        jax.config.update("jax_logging_level", "INFO")
        below.debug("third")
        jax.config.update("jax_logging_level", "NOTSET")
        jax.config.update("jax_debug_log_modules", "elsewhere")
        below.debug("fourth")
        other.debug("fifth")
    finally:
        jax.config.update("jax_logging_level", "NOTSET")
        jax.config.update("jax_debug_log_modules", "")
    other.debug("sixth")
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["first", "third", "fifth"]
    assert re.match(r"DEBUG:\S+ \S+:ferrax\.below\.it:\d+: first", lines[0])


class _Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def test_the_logger_of_jax_hears_what_is_said(caplog):
    """With a level and a handler of its own, as programs give them to JAX's."""
    root, kept = logging.getLogger("jax"), _Kept()
    root.addHandler(kept)
    try:
        with caplog.at_level(logging.WARNING, "jax"):
            with jax.log_compiles():
                jax.jit(lambda x: x + 1)(1.0)
            loud = len(kept.texts)
            jax.jit(lambda x: x + 2)(1.0)
            assert [text.split()[0] for text in kept.texts] == ["Finished", "Compiling", "Finished"]
        with caplog.at_level(logging.DEBUG, "jax"):
            jax.jit(lambda x: x + 3)(1.0)
            jax.debug.log("said {}", 1)
        assert len(kept.texts) == 2 * loud + 1 and kept.texts[-1] == "said 1"
    finally:
        root.removeHandler(kept)
    assert [r.getMessage() for r in caplog.records] == kept.texts


def test_loggers_are_named_one_by_one(capsys):
    from ferrax._src import logging_config

    first, second = logging.getLogger("ferrax.first"), logging.getLogger("second")
    logging_config._enable_debug_logging("jax.first")
    logging_config._enable_debug_logging("second")
    first.debug("a")
    second.debug("b")
    logging_config._disable_all_debug_logging()
    second.debug("c")
    logging_config.update_debug_log_modules("second")
    first.debug("d")
    second.debug("e")
    logging_config.update_debug_log_modules(None)
    logging_config.update_logging_level_global("WARNING")
    first.warning("f")
    logging_config.update_logging_level_global(None)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["a", "b", "e", "f"]


# ---- default_matmul_precision


PRODUCTS = """jnp.dot(x, x)
x @ x
jnp.einsum("ij,jk", x, x)
jnp.convolve(x[0], x[1])
jnp.dot(x, x, precision="highest")
jax.lax.conv(x[None, None], x[None, None], (1, 1), "SAME")
jax.lax.conv(x[None, None], x[None, None], (1, 1), "SAME", precision="high")""".splitlines()


def precisions(jax, name, source):
    jnp = jax.numpy
    with jax.default_matmul_precision(name):
        text = str(jax.make_jaxpr(lambda x: eval(source, {"jax": jax, "jnp": jnp, "x": x}))(jnp.ones((3, 3))))
    return re.findall(r"[ [\n]precision=(?:\([^)]*\)|\S+)", text)


@pytest.mark.parametrize("name", ["default", "high", "float32", "BF16_BF16_F32", None])
def test_programs_show_the_default_precision(name):
    def every(jax, name, sources):
        return [[p[1:] for p in precisions(jax, name, s)] for s in sources]

    theirs = expected(every, name, PRODUCTS)
    assert dict(zip(PRODUCTS, every(jax, name, PRODUCTS), strict=True)) == dict(zip(PRODUCTS, theirs, strict=True))


def test_another_default_precision_is_another_program():
    traced = []

    @jax.jit
    def product(x):
        traced.append(jax.config.jax_default_matmul_precision)
        return x @ x

    for name in (None, "highest", None, "highest"):
        with jax.default_matmul_precision(name):
            product(jnp.ones((2, 2)))
    assert traced == [None, "highest"]


# ---- flags of the command line

FLAGS = """
import sys
sys.argv = ["program", "--jax_enable_x64", "--jax_debug_nans=true", "--jax_numpy_rank_promotion=raise", "--other=3",
            "--jax_random_seed_offset=5", "--", "--jax_disable_jit"]
from absl import app, flags
import ferrax
if WITH_RUN:
    flags.DEFINE_integer("other", 0, "The program's own.")
    ferrax.config.config_with_absl()
    app.run(lambda argv: None if finish(argv) else None)
else:
    ferrax.config.parse_flags_with_absl()
    ferrax.config.parse_flags_with_absl()
    check()
"""

CHECKS = """
def check():
    read = ferrax.config.read
    assert read("jax_enable_x64") is True and read("jax_debug_nans") is True
    assert read("jax_numpy_rank_promotion") == "raise" and read("jax_random_seed_offset") == 5
    assert read("jax_disable_jit") is False and read("jax_debug_infs") is False

def finish(argv):
    check()
    assert flags.FLAGS.other == 3
    print("checked")
"""


@pytest.mark.parametrize("run", [False, True])
def test_settings_are_flags_of_absl(run):
    pytest.importorskip("absl")
    program = CHECKS + FLAGS.replace("WITH_RUN", str(run)) + "\nprint('checked')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "checked" in done.stdout, done.stderr


#: Values that a setting refuses, and with which error: JAX's, but for what they say of None.
REFUSED = [
    ("jax_platforms", 3, ValueError),
    ("jax_compilation_cache_dir", 1.5, ValueError),
    ("jax_compilation_cache_max_size", 1.5, ValueError),
    ("jax_persistent_cache_min_compile_time_secs", "a", ValueError),
    ("jax_num_cpu_devices", "a", ValueError),
    ("jax_random_seed_offset", "a", ValueError),
    ("jax_debug_log_modules", 3, TypeError),
    ("jax_debug_log_modules", None, TypeError),
    ("jax_cpu_get_local_topology_timeout_minutes", "a", ValueError),
]


@pytest.mark.parametrize(("name", "value", "error"), REFUSED)
def test_values_of_another_type(name, value, error):
    import jax as peer

    before = getattr(jax.config, name)
    for package in (jax, peer):
        with pytest.raises(error, match=r"new \w+ config value must be .*of type \w+, got (a|'a'|3|1\.5|None) of type"):
            package.config.update(name, value)
    assert getattr(jax.config, name) == before


# ---- arrays that Python's garbage collector deletes

CYCLE = """
import gc, sys
import ferrax as jax
class Node:
    pass
def cycle():
    one, other = Node(), Node()
    one.data, other.data = jax.numpy.ones((2, 2)), jax.numpy.ones(3)
    one.next, other.next = other, one
"""


def _deleted(text):
    run = subprocess.run([sys.executable, "-c", CYCLE + text], capture_output=True, text=True, check=False)
    return run.returncode, re.findall(
        r"`jax.Array` was deleted by the Python garbage collector .* held (\S+)\.", run.stderr
    )


def test_arrays_in_cycles_are_told_of():
    shown = """
cycle(); gc.collect()
with jax.array_garbage_collection_guard("log"):
    cycle(); gc.collect()
    x = jax.numpy.ones(5); del x; gc.collect()
with jax.array_garbage_collection_guard("allow"):
    cycle(); gc.collect()
cycle(); gc.collect()
"""
    code, kinds = _deleted(shown)
    assert (code, sorted(kinds)) == (0, ["float32[2,2]", "float32[3]"])
    code, kinds = _deleted(f"jax.config.update('jax_array_garbage_collection_guard', 'fatal')\n{shown}")
    assert code < 0 and len(kinds) == 2


def test_what_may_happen_to_arrays_in_cycles():
    for value in ("ignore", 3):
        with pytest.raises(ValueError, match=r"new enum value must be None or in \['allow', 'log', 'fatal'\]"):
            jax.config.update("jax_array_garbage_collection_guard", value)
    assert jax.config.jax_array_garbage_collection_guard is None
