"""Settings: ``jax.config``, environment variables, and the context managers that override one for a ``with`` block.

A setting has three sources, in this order: the innermost ``with`` block of the thread, ``config.update``, and the
environment when ferrax is imported (``FERRAX_ENABLE_X64`` before ``JAX_ENABLE_X64``). Switches that Rust code looks
at live there as bits; the others are kept here. The ones kept here that change what a trace produces are numbered,
and the number is part of every trace cache's key.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._setting_values import check_text, number
from ferrax._unread_settings import UNREAD as _UNREAD

__all__ = ["Config", "State", "config"]

#: Settings that are one bit in Rust: name, bit, value at the start.
_FLAGS: dict[str, tuple[str, bool]] = {
    "jax_enable_x64": ("x64", False),
    "jax_disable_jit": ("disable_jit", False),
    "jax_debug_nans": ("debug_nans", False),
    "jax_debug_infs": ("debug_infs", False),
    "jax_check_tracer_leaks": ("check_tracer_leaks", False),
    "jax_enable_custom_prng": ("enable_custom_prng", False),
    "jax_check_static_indices": ("check_indices", False),
    "ferrax_check_indices": ("check_traced_indices", False),
    "ferrax_strict_numerics": ("strict_numerics", False),
    "ferrax_safe_where": ("safe_where", False),
    "ferrax_check_where": ("check_where", False),
    "ferrax_no_retrace": ("no_retrace", False),
    "jax_explain_cache_misses": ("explain_cache_misses", False),
    "jax_log_compiles": ("log_compiles", False),
    "jax_no_tracing": ("no_tracing", False),
    "jax_cpu_enable_async_dispatch": ("async_dispatch", True),
    "jax_enable_checks": ("enable_checks", False),
}

_GENERATORS = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")

#: Settings kept here that change what a trace produces: value at the start, allowed values where `_checked` has none.
_TRACED: dict[str, tuple[Any, tuple[Any, ...] | None]] = {
    "jax_default_matmul_precision": (None, None),
    "jax_default_prng_impl": ("threefry2x32", _GENERATORS),
    "jax_threefry_partitionable": (True, (True, False)),
    "jax_softmax_custom_jvp": (False, (True, False)),
    "jax_disable_vmap_shmap_error": (False, (True, False)),
    "jax_high_dynamic_range_gumbel": (False, (True, False)),
    "jax_random_seed_offset": (0, None),
    "jax_explicit_x64_dtypes": ("warn", ("warn", "error", "allow")),
    "ferrax_check_captures": (False, (True, False)),
}

#: What traces depend on besides: whether checks become values, inside of `checkify`.
_CHECKS = "checks become values"
_KEYED = (*_TRACED, _CHECKS)

#: Settings kept here that change no result: value at the start.
_PLAIN: dict[str, Any] = {
    "jax_platforms": None,
    "jax_platform_name": "",
    "jax_debug_key_reuse": False,
    "jax_legacy_prng_key": "allow",
    "jax_traceback_filtering": "auto",
    "jax_transfer_guard": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_no_execution": False,
    "jax_array_garbage_collection_guard": None,
    "jax_export_calling_convention_version": 10,
    "jax_debug_log_modules": "",
    "jax_logging_level": "NOTSET",
    # about several processes, of which there is one
    "jax_thread_guard": False,
    "jax_compilation_cache_dir": None,
    "jax_enable_compilation_cache": True,
    "jax_compilation_cache_max_size": -1,
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_raise_persistent_cache_errors": False,
    # programs are printed without colors
    "jax_pprint_use_color": True,
    # JAX has two implementations of `checkpoint` and of `linearize`, and ferrax one of each
    "jax_remat3": False,
    "jax_use_direct_linearize": True,
}

#: Those that are texts, and whether they can be None.
_TEXTS = {
    "jax_platforms": True,
    "jax_platform_name": True,
    "jax_compilation_cache_dir": True,
    "jax_debug_log_modules": False,
}

_RANK_PROMOTION = ("allow", "warn", "raise")
_DTYPE_PROMOTION = ("standard", "strict")
_GUARD_LEVELS = (None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
_GUARDS = tuple(f"jax_transfer_guard_{d}" for d in ("host_to_device", "device_to_device", "device_to_host"))
#: Settings for which what runs is looked at: by `_watch.py`.
_WATCHING = (*_GUARDS, "jax_debug_key_reuse", "jax_no_execution")
_TRACEBACK_FILTERING = ("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto")
_NAMES = frozenset(
    [
        *_FLAGS,
        *_TRACED,
        *_PLAIN,
        *_UNREAD,
        "jax_numpy_rank_promotion",
        "jax_numpy_dtype_promotion",
        "jax_default_device",
        "jax_num_cpu_devices",
    ]
)

_values: dict[str, Any] = {
    **{name: start for name, (start, _) in _TRACED.items()},
    _CHECKS: False,
    **_PLAIN,
    **_UNREAD,
    "jax_numpy_rank_promotion": "allow",
    "jax_numpy_dtype_promotion": "standard",
    "jax_default_device": None,
    "jax_num_cpu_devices": -1,
}
_numbers: dict[tuple[Any, ...], int] = {}
_lock = threading.Lock()


class _Overrides(threading.local):
    """The settings that ``with`` blocks of this thread override, and the mesh it has in use."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.mesh: Any = None
        self.contexts: dict[Any, Any] = {}
        self.has_number = False


_overrides = _Overrides()


def _current(name: str) -> Any:
    return _overrides.values.get(name, _values[name])


#: Values of users' contexts (`_user_contexts.py`) on all threads.
_contexts_everywhere: dict[Any, Any] = {}


def _contexts() -> dict[Any, Any]:
    """The values of users' contexts that are not what they are at the start."""
    values = {**_contexts_everywhere, **_overrides.contexts}
    return {context: value for context, value in values.items() if value != context.default}


def _settings_number(read: Callable[[str], Any]) -> int:
    """A number for the present combination of the traced settings and the mesh in use; 0 at the start."""
    key = (*(read(name) for name in _KEYED), _overrides.mesh, frozenset(_contexts().items()))
    with _lock:
        return _numbers.setdefault(key, len(_numbers))


_settings_number(lambda name: _values[name])


def set_context_mesh(mesh: Any) -> None:
    """Says what mesh this thread has in use: what is traced depends on it.

    Args:
      mesh: anything that can be hashed; `None` for none.
    """
    _overrides.mesh = mesh
    _overrides.has_number = True
    _ferrax.enter_settings_number(_settings_number(_current))


def context_value(context: Any, everywhere: bool = False) -> Any:
    """The value of a user's context on this thread.

    Args:
      context: the context, which has a `default`.
      everywhere: whether threads without one of their own are asked for.
    """
    found = _contexts_everywhere.get(context, context.default)
    return found if everywhere else _overrides.contexts.get(context, found)


def swap_context(context: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gives a user's context another value on this thread: what is traced depends on it.

    Args:
      context: the context.
      values: the value; none, and the thread has that of all threads.

    Returns:
      What it was, likewise.
    """
    before = tuple(v for c, v in _overrides.contexts.items() if c is context)
    contexts = {c: v for c, v in _overrides.contexts.items() if c is not context}
    for value in values:
        contexts[context] = value
    _overrides.contexts = contexts
    _overrides.has_number = True
    _ferrax.enter_settings_number(_settings_number(_current))
    return before


def set_context_everywhere(context: Any, value: Any) -> None:
    """Gives a user's context another value on threads that have none of their own."""
    _contexts_everywhere[context] = value
    own, _overrides.contexts = _overrides.contexts, {}
    _ferrax.set_settings_number(_settings_number(lambda name: _values[name]))
    _overrides.contexts = own
    if _overrides.has_number:
        _ferrax.enter_settings_number(_settings_number(_current))


def _differences(flags: list[str], new_flags: list[str], number: int, new_number: int) -> list[tuple[str, str, str]]:
    """Name, old value and new value of the settings that differ.

    Args:
      flags: the bits of Rust that were set.
      new_flags: those that are set now.
      number: stands for the traced settings as they were.
      new_number: stands for them as they are.
    """

    def values(on: list[str], key: tuple[Any, ...]) -> dict[str, Any]:
        rank = "raise" if "rank_promotion_raise" in on else "warn" if "rank_promotion_warn" in on else "allow"
        return {
            **{name: flag in on for name, (flag, _) in _FLAGS.items()},
            "jax_numpy_rank_promotion": rank,
            "jax_numpy_dtype_promotion": "strict" if "strict_promotion" in on else "standard",
            **dict(zip((*_KEYED, "the mesh in use", "contexts of users"), key, strict=True)),
        }

    with _lock:
        keys = {number: key for key, number in _numbers.items()}
    old, new = values(flags, keys[number]), values(new_flags, keys[new_number])
    return [(name, repr(value), repr(new[name])) for name, value in old.items() if value != new[name]]


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, str):
        lowered = value.lower()
        if lowered in ("1", "true", "yes", "on", "y", "t"):
            return True
        if lowered in ("0", "false", "no", "off", "n", "f", ""):
            return False
        raise ValueError(f"invalid truth value {value!r} for {name}")
    return bool(value)


def _unrecognized(name: str) -> str:
    """The text for a name that is no setting, with the setting that is spelled almost like it."""
    near = _ferrax.nearest_name(name, _NAMES) or _ferrax.nearest_name(f"jax_{name}", _NAMES)
    return f"Unrecognized config option: {name}." + (f" Did you mean {near}?" if near else "")


def _precisions() -> tuple[str | None, ...]:
    """What the precision of products can be."""
    from ferrax._precisions import DotAlgorithmPreset  # few programs ask for one

    algorithms = (name for name in DotAlgorithmPreset.__members__ if name != "DEFAULT")
    return (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", *algorithms)


def _checked(name: str, value: Any) -> Any:
    """The value of a setting, converted and checked."""
    if name in _FLAGS:
        return _boolean(name, value)
    allowed: tuple[Any, ...] | None = None
    if name in _TRACED:
        start, allowed = _TRACED[name]
        if isinstance(start, bool):
            value = _boolean(name, value)
        elif isinstance(start, int):
            value = number(name, value, int)
        if name == "jax_default_matmul_precision":
            allowed = _precisions()
    elif name == "jax_numpy_rank_promotion":
        allowed = _RANK_PROMOTION
    elif name == "jax_numpy_dtype_promotion":
        allowed = _DTYPE_PROMOTION
        value = getattr(value, "value", value)
    elif name == "jax_traceback_filtering":
        allowed = _TRACEBACK_FILTERING
    elif name == "jax_logging_level":
        from ferrax._logging import LEVELS as allowed
    elif name == "jax_legacy_prng_key":
        allowed = ("allow", "warn", "error")
    elif name == "jax_transfer_guard" or name in _GUARDS:
        allowed = _GUARD_LEVELS
    elif name == "jax_array_garbage_collection_guard":
        allowed = (None, "allow", "log", "fatal")
        if value in ("log", "fatal"):
            from ferrax import _garbage_guard  # few programs ask for this

            _garbage_guard.install()
    elif isinstance(first := _PLAIN.get(name, _UNREAD.get(name)), bool):
        value = _boolean(name, value)
    elif name in _TEXTS:
        check_text(name, value, _TEXTS[name])
    elif name == "jax_num_cpu_devices" or type(first) in (int, float):
        value = number(name, value, type(first) if name in _PLAIN else int)
    if name in _UNREAD and value != _UNREAD[name]:
        raise NotImplementedError(
            f"the setting {name} is not implemented in ferrax: it can only be {_UNREAD[name]!r}, got {value!r}"
        )
    if allowed is not None and value not in allowed:
        optional = "None or in" if None in allowed else "in"
        names = [a for a in allowed if a is not None]
        raise ValueError(f"new enum value must be {optional} {names}, got {value!r} of type {type(value)} for {name}.")
    return value


#: Settings of the compilation cache, in the order of the function's arguments.
_COMPILATION_CACHE = (
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_compilation_cache_max_size",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_raise_persistent_cache_errors",
)


def _set_compilation_cache(folder: Any, on: bool, most: int, seconds: float, size: int, strict: bool) -> None:
    """Says where plugins' programs are kept; a limit of 0 bytes keeps none, one of -1 all."""
    used = os.fspath(folder) if folder and on and most != 0 else None
    _ferrax.set_compilation_cache(used, None if most < 0 else most, seconds, max(size, 0), strict)


def _with_device(use: Callable[[Any], Any], value: Any) -> Any:
    """What a function does with a default device; ValueError for what is none."""
    try:
        return use(value)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a platform "
            f"name string like 'cpu' or 'gpu', got: {value!r}. {error}"
        ) from None


def _promotion_flags(name: str, value: str) -> list[tuple[str, bool]]:
    if name == "jax_numpy_rank_promotion":
        return [("rank_promotion_raise", value == "raise"), ("rank_promotion_warn", value == "warn")]
    return [("strict_promotion", value == "strict")]


def _watches(read: Callable[[str], Any]) -> bool:
    """Whether a setting asks to look at what runs."""
    return any(read(name) not in (None, False, "allow") for name in _WATCHING)


#: What a context manager says that is given no value, by the name of its setting.
NO_VALUE = "Context manager for {} config option requires an argument representing the new value for the config option."

#: Settings that programs have made for themselves (`_src/_states.py`), by name.
own_settings: dict[str, Any] = {}


class Config:
    """The settings of the process: read as attributes, changed with ``update``.

    >>> import ferrax
    >>> ferrax.config.update("jax_enable_x64", False)
    >>> ferrax.config.jax_enable_x64
    False
    """

    def update(self, name: str, value: Any) -> None:
        """Changes a setting for the process.

        Args:
          name: the setting, such as ``"jax_enable_x64"``.
          value: its new value.

        Raises:
          AttributeError: there is no such setting.
          ValueError: the setting cannot have this value.
          RuntimeError: ``jax_platforms`` names one that is not there; the first of them computes by default.
          NotImplementedError: nothing in ferrax reads the setting, and it would get another value than its first.

        >>> import ferrax
        >>> ferrax.config.update("jax_numpy_rank_promotion", "allow")
        """
        if name in own_settings:
            own_settings[name]._set(value)
            return
        if name not in _NAMES:
            raise AttributeError(_unrecognized(name))
        value = _checked(name, value)
        if name in _FLAGS:
            _ferrax.set_flag(_FLAGS[name][0], value)
            return
        if name == "jax_default_device":
            _with_device(_ferrax.set_default_device, value)
        elif name in ("jax_platforms", "jax_platform_name"):
            _ferrax.set_platforms([p.strip() for p in (value or "").split(",") if p.strip()])
        elif name == "jax_num_cpu_devices" and value != -1:
            _ferrax.set_num_cpu_devices(value)
        elif name in ("jax_numpy_rank_promotion", "jax_numpy_dtype_promotion"):
            for flag, on in _promotion_flags(name, value):
                _ferrax.set_flag(flag, on)
        elif name == "jax_traceback_filtering":
            _ferrax.set_traceback_filtering(value != "off")
            if value in ("tracebackhide", "remove_frames"):
                pass  # sees to these
        elif name in ("jax_logging_level", "jax_debug_log_modules"):
            from ferrax import _logging  # few programs ask for this

            _logging.apply(name, value)
        _values[name] = value
        if name == "jax_transfer_guard":
            _values.update(dict.fromkeys(_GUARDS, value))
        if name == "jax_transfer_guard" or name in _WATCHING:
            _ferrax.set_flag("watched", _watches(lambda n: _values[n]))
        if name in _COMPILATION_CACHE:
            _set_compilation_cache(*(_values[n] for n in _COMPILATION_CACHE))
        if name in _TRACED:
            _ferrax.set_settings_number(_settings_number(lambda n: _values[n]))
            if _overrides.has_number:
                _ferrax.enter_settings_number(_settings_number(_current))

    def read(self, name: str) -> Any:
        """The value of a setting on this thread.

        Args:
          name: the setting.

        Returns:
          Its value.

        Raises:
          AttributeError: there is no such setting.

        >>> import ferrax
        >>> ferrax.config.read("jax_disable_jit")
        False
        """
        if name in _FLAGS:
            return _ferrax.flag(_FLAGS[name][0])
        if name in own_settings:
            return own_settings[name].value
        if name not in _NAMES:
            raise AttributeError(_unrecognized(name))
        return _current(name)

    def config_with_absl(self) -> None:
        """Makes each setting a flag of absl's, such as ``--jax_enable_x64``, which ``absl.app.run`` reads.

        Raises:
          ModuleNotFoundError: absl is not installed.

        >>> import ferrax
        >>> ferrax.config.config_with_absl()
        """
        from ferrax import _absl_flags  # needs absl, which few programs have

        _absl_flags.define(self.values)

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Gives settings the values of the flags that the command line has.

        Args:
          absl_flags: the module ``absl.flags``.

        >>> import ferrax
        >>> from absl import flags
        >>> ferrax.config.complete_absl_config(flags)
        """
        from ferrax import _absl_flags

        _absl_flags.apply(absl_flags)

    def parse_flags_with_absl(self) -> None:
        """Reads settings from the flags ``--jax_...`` of the command line now, once in a process.

        Raises:
          ModuleNotFoundError: absl is not installed.

        >>> import ferrax
        >>> ferrax.config.parse_flags_with_absl()
        """
        from ferrax import _absl_flags

        _absl_flags.parse(self.values)

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES or name in own_settings:
            return self.read(name)
        if f"jax_{name}" in _NAMES:
            return self.read(f"jax_{name}")
        raise AttributeError(f"'Config' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if f"jax_{name}" in _NAMES:
            # JAX takes the short name for an attribute like any other, without effect; here it means the setting.
            self.update(f"jax_{name}", value)
            return
        if name not in _NAMES:
            raise AttributeError(_unrecognized(name))
        raise AttributeError(f"use config.update({name!r}, {value!r}) to change a setting")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *_NAMES])

    @property
    def values(self) -> dict[str, Any]:
        """Every setting with its value on this thread."""
        return {name: self.read(name) for name in sorted(_NAMES)}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are enabled on this thread."""
        return bool(_ferrax.flag("x64"))


config = Config()


@contextlib.contextmanager
def _override(name: str, value: Any) -> Iterator[None]:
    """Overrides a setting on this thread."""
    value = _checked(name, value)
    if name in _FLAGS:
        token = _ferrax.enter_flag(_FLAGS[name][0], value)
        try:
            yield
        finally:
            _ferrax.leave(token)
        return
    saved = dict(_overrides.values)
    undo: list[Callable[[], None]] = []
    if name == "jax_default_device":
        previous = _with_device(_ferrax.enter_default_device, value)
        undo.append(lambda: _ferrax.restore_default_device(previous))
    _overrides.values = {**saved, name: value}
    if name in ("jax_numpy_rank_promotion", "jax_numpy_dtype_promotion"):
        for flag, on in _promotion_flags(name, value):
            token = _ferrax.enter_flag(flag, on)
            undo.append(partial(_ferrax.leave, token))
    elif name in _WATCHING:
        token = _ferrax.enter_flag("watched", _watches(_current))
        undo.append(partial(_ferrax.leave, token))
    elif name in _TRACED:
        token = _ferrax.enter_settings_number(_settings_number(_current))
        undo.append(lambda: _ferrax.leave(token))
    try:
        yield
    finally:
        _overrides.values = saved
        for step in reversed(undo):
            step()


@contextlib.contextmanager
def checks_become_values(on: bool = True) -> Iterator[None]:
    """Traces in a ``with`` block keep their checks for `checkify`, and share no programs with other traces.

    Args:
      on: whether they do.

    Yields:
      None.

    >>> with checks_become_values():
    ...     print(have_checks_become_values(), end=", ")
    >>> print(have_checks_become_values())
    True, False
    """
    saved = dict(_overrides.values)
    _overrides.values = {**saved, _CHECKS: on}
    token = _ferrax.enter_settings_number(_settings_number(_current))
    try:
        yield
    finally:
        _overrides.values = saved
        _ferrax.leave(token)


def have_checks_become_values() -> bool:
    """Whether the trace on this thread keeps its checks for `checkify`.

    Returns:
      A bool.
    """
    return bool(_current(_CHECKS))


_UNSET = object()


#: What a setting does, the values it takes, and one of them, for the documentation of its context manager.
_PURPOSES: dict[str, tuple[str, str, Any]] = {
    "jax_enable_x64": ("Whether 64-bit dtypes exist; without them they become 32-bit ones", "a bool", True),
    "jax_debug_nans": ("Whether an operation that gives NaN raises FloatingPointError", "a bool", True),
    "jax_debug_infs": ("Whether an operation that gives an infinity raises FloatingPointError", "a bool", True),
    "jax_check_tracer_leaks": ("Whether a traced value that outlives its function raises at once", "a bool", True),
    "jax_enable_checks": ("Whether programs are verified after every pass", "a bool", True),
    "jax_enable_custom_prng": ("Whether `random.PRNGKey` makes typed keys", "a bool", True),
    "jax_debug_key_reuse": ("Whether a random key that is used twice raises", "a bool", False),
    "jax_default_device": ("The device of what is not placed otherwise", "a device, or None", None),
    "jax_default_matmul_precision": ("The precision of products that name none", "a name, or None", "highest"),
    "jax_default_prng_impl": ("The algorithm of new random keys", '`"threefry2x32"`', "threefry2x32"),
    "jax_numpy_dtype_promotion": ("How dtypes combine", '`"standard"` or `"strict"`', "strict"),
    "jax_numpy_rank_promotion": ("Whether ranks may differ", '`"allow"`, `"warn"` or `"raise"`', "raise"),
    "jax_log_compiles": ("Whether compilations are logged", "a bool", True),
    "jax_explain_cache_misses": ("Whether it is logged why a function is traced again", "a bool", True),
    "jax_legacy_prng_key": ("What raw keys do", '`"allow"`, `"warn"` or `"error"`', "allow"),
    "jax_threefry_partitionable": ("Whether random bits do not depend on how arrays are split", "a bool", True),
    "jax_disable_vmap_shmap_error": ("Whether `spmd_axis_name` may be a mesh axis of `shard_map`", "a bool", True),
    "jax_softmax_custom_jvp": ("Whether softmax has a derivative rule of its own", "a bool", True),
    "jax_transfer_guard_host_to_device": ("What transfers to devices do", 'a level, such as `"log"`', "log"),
    "jax_transfer_guard_device_to_device": ("What transfers between devices do", 'a level, such as `"log"`', "log"),
    "jax_transfer_guard_device_to_host": ("What transfers to the host do", 'a level, such as `"log"`', "log"),
    "jax_array_garbage_collection_guard": (
        "What arrays do that Python's garbage collector deletes",
        '`"allow"`, `"log"` or `"fatal"`',
        "log",
    ),
    "jax_thread_guard": ("Whether two threads may not start work of several processes", "a bool", True),
    "jax_no_tracing": ("Whether tracing raises", "a bool", False),
    "jax_no_execution": ("Whether running a program raises", "a bool", False),
    "jax_auto_pcast": ("Whether values vary over manual axes where others that they meet do", "True", True),
    "jax2tf_associative_scan_reductions": ("Whether jax2tf scans for running reductions", "False", False),
    "jax_remove_size_one_mesh_axis_from_type": ("Whether types leave out mesh axes of size 1", "False", False),
    "jax_allow_f16_reductions": ("Whether half-precision sums may stay in half precision", "True", True),
    "ferrax_strict_numerics": ("Whether rewrites that can change bits are left out", "a bool", True),
    "ferrax_safe_where": ("Whether the branch of a `where` that is not taken cannot spoil gradients", "a bool", True),
    "ferrax_check_where": ("Whether differentiation warns of a `where` that can spoil its gradient", "a bool", True),
    "ferrax_check_indices": (
        "Whether an index outside its axis raises, traced ones when the program runs",
        "a bool",
        True,
    ),
    "ferrax_check_captures": (
        "Whether a jitted function raises when a global or closure variable that it captured has changed since it was "
        "traced",
        "a bool",
        True,
    ),
    "ferrax_no_retrace": ("Whether tracing a jitted function again raises, with what changed", "a bool", False),
}


def _documentation(name: str, attribute: str) -> str:
    """The docstring of a setting's context manager."""
    purpose, values, example = _PURPOSES[name]
    call = f"ferrax.{attribute}"
    return (
        f"{purpose}, in a ``with`` block; the setting is ``{name}``.\n\nArgs:\n  new_val: {values}.\n\nReturns:\n"
        f"  A context manager.\n\n>>> import ferrax\n>>> with {call}({example!r}):\n...     {call}.value\n"
        + ("" if example is None else f"{example!r}\n")
    )


class State:
    """One setting, callable as a context manager: ``with jax.debug_nans(True):``.

    Args:
      name: the setting.
      default: the value that a call without an argument means.

    >>> import ferrax
    >>> with ferrax.enable_x64(True):
    ...     ferrax.config.jax_enable_x64
    True
    """

    def __init__(self, name: str, default: Any = _UNSET) -> None:
        self._name = name
        self._default = default
        self.__name__ = name.removeprefix("jax_").removeprefix("ferrax_")
        self.__doc__ = _documentation(name, self.__name__)

    def __call__(self, new_val: Any = _UNSET) -> contextlib.AbstractContextManager[None]:
        if new_val is _UNSET:
            if self._default is _UNSET:
                raise TypeError(NO_VALUE.format(self.__name__))
            new_val = self._default
        # a value that is JAX's, and that ferrax does not have, may decorate a test that never runs
        with contextlib.suppress(NotImplementedError):
            _checked(self._name, new_val)
        return _override(self._name, new_val)

    def get_global(self) -> Any:
        """The value of the setting where no ``with`` block has another.

        Raises:
          NotImplementedError: the core keeps the setting, and tells the value on this thread alone.
        """
        if self._name not in _values:
            raise NotImplementedError(f"get_global of {self._name}, which the core keeps")
        return _values[self._name]

    @property
    def value(self) -> Any:
        """The value of the setting on this thread."""
        return config.read(self._name)

    def __bool__(self) -> bool:
        raise TypeError(f"bool() of the {self.__name__} setting: use `.value` or call it as a context manager")

    def __repr__(self) -> str:
        return f"<setting {self._name}: {self.value!r}>"


enable_x64 = State("jax_enable_x64", True)
debug_nans = State("jax_debug_nans", True)
debug_infs = State("jax_debug_infs", True)
check_tracer_leaks = State("jax_check_tracer_leaks", True)
checking_leaks = check_tracer_leaks
enable_checks = State("jax_enable_checks", True)
enable_custom_prng = State("jax_enable_custom_prng", True)
debug_key_reuse = State("jax_debug_key_reuse", True)
default_device = State("jax_default_device")
default_matmul_precision = State("jax_default_matmul_precision")
default_prng_impl = State("jax_default_prng_impl")
numpy_dtype_promotion = State("jax_numpy_dtype_promotion")
numpy_rank_promotion = State("jax_numpy_rank_promotion")
log_compiles = State("jax_log_compiles", True)
explain_cache_misses = State("jax_explain_cache_misses", True)
legacy_prng_key = State("jax_legacy_prng_key")
threefry_partitionable = State("jax_threefry_partitionable", True)
softmax_custom_jvp = State("jax_softmax_custom_jvp", True)
transfer_guard_host_to_device = State("jax_transfer_guard_host_to_device")
transfer_guard_device_to_device = State("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = State("jax_transfer_guard_device_to_host")
array_garbage_collection_guard = State("jax_array_garbage_collection_guard")
thread_guard = State("jax_thread_guard", True)
no_tracing = State("jax_no_tracing", True)
no_execution = State("jax_no_execution", True)
allow_f16_reductions = State("jax_allow_f16_reductions", True)
auto_pcast = State("jax_auto_pcast", True)
jax2tf_associative_scan_reductions = State("jax2tf_associative_scan_reductions", True)
remove_size_one_mesh_axis_from_type = State("jax_remove_size_one_mesh_axis_from_type", True)
strict_numerics = State("ferrax_strict_numerics", True)
safe_where = State("ferrax_safe_where", True)
check_where = State("ferrax_check_where", True)
check_indices = State("ferrax_check_indices", True)
check_captures = State("ferrax_check_captures", True)
no_retrace = State("ferrax_no_retrace", True)


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Sets all three transfer guards for a ``with`` block.

    Explicit transfers are those of `device_put` and `device_get`. What the user hands to an operation that runs at once
    is an implicit one from the host: a Python number, a NumPy array. Reading an array is one to the host, other than on
    a CPU. Logged transfers go to the logger ``ferrax.transfers``.

    Args:
      new_val: ``"allow"``, ``"log"`` (the implicit ones are logged), ``"disallow"`` (they raise `JaxRuntimeError`),
        ``"log_explicit"`` (all are logged) or ``"disallow_explicit"`` (all raise).

    Returns:
      A context manager.

    >>> import ferrax, ferrax.numpy as jnp
    >>> x = jnp.arange(2.0)
    >>> with ferrax.transfer_guard("disallow"):
    ...     print(x + ferrax.device_put(1.0))
    ...     try:
    ...         x + 1.0
    ...     except ferrax.errors.JaxRuntimeError as error:
    ...         print(str(error).split(",")[0])
    [1. 2.]
    INVALID_ARGUMENT: Disallowed host-to-device transfer: aval=ShapedArray(float32[]
    """
    with contextlib.ExitStack() as stack:
        for name in ("", "_host_to_device", "_device_to_device", "_device_to_host"):
            stack.enter_context(_override(f"jax_transfer_guard{name}", new_val))
        yield


@contextlib.contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Runs jitted functions operation by operation in a ``with`` block, so that their values can be looked at.

    Args:
      disable: whether to do so.

    Returns:
      A context manager.

    >>> import ferrax
    >>> import ferrax.numpy as jnp
    >>> @ferrax.jit
    ... def f(x):
    ...     return x if x > 0 else -x
    >>> with ferrax.disable_jit():
    ...     print(f(jnp.float32(-2.0)))
    2.0
    """
    with _override("jax_disable_jit", disable):
        yield


def _read_environment() -> None:
    """Takes the settings from the environment; ``FERRAX_X`` comes before ``JAX_X``."""
    for name in sorted(_NAMES):
        short = name.removeprefix("jax_").removeprefix("ferrax_").upper()
        prefixes = ("FERRAX_",) if name.startswith("ferrax_") else ("FERRAX_", "JAX_")
        found = next((os.environ[p + short] for p in prefixes if p + short in os.environ), None)
        if found is None or name == "jax_default_device":
            continue
        start = _values.get(name)
        value: Any = found
        if isinstance(start, int) and not isinstance(start, bool):
            value = int(found)
        elif isinstance(start, float):
            value = float(found)
        elif found == "" and start is None:
            continue
        if name in ("jax_platforms", "jax_platform_name"):
            # whoever asks for a platform that is not there learns it when it is used, not on import
            _ferrax.set_platforms([p.strip() for p in found.split(",") if p.strip()], later=True)
            _values[name] = value
            continue
        try:
            config.update(name, value)
        except NotImplementedError as error:
            # a variable may be meant for JAX in the same environment
            warnings.warn(f"{error} (from the environment)", stacklevel=2)


_read_environment()

_expose(globals())
