"""Settings as objects: `config.x.value`, and `with config.x(value):`."""

import enum
from typing import Any

from ferrax._src._flags import (
    bool_env as bool_env,
    bool_flag as bool_flag,
    enum_flag as enum_flag,
    float_flag as float_flag,
    int_env as int_env,
    int_flag as int_flag,
    string_flag as string_flag,
)
from ferrax._src._states import (
    bool_state as bool_state,
    enum_state as enum_state,
    float_state as float_state,
    int_state as int_state,
    optional_enum_state as optional_enum_state,
    optional_string_state as optional_string_state,
    string_or_object_state as string_or_object_state,
    string_state as string_state,
)
from ferrax._user_contexts import UserConfig as UserConfig, make_user_context as make_user_context
from ferrax.config import _NAMES, State, config as config, disable_jit as _disable_jit, transfer_guard as transfer_guard


class ExplicitX64Mode(enum.StrEnum):
    """What becomes of a 64-bit dtype that is asked for by name where there are none: texts, as the setting has them."""

    WARN = "warn"
    ERROR = "error"
    ALLOW = "allow"


class EffortLevel(enum.Enum):
    """How hard XLA tries, as `compiler_options` take it."""

    UNKNOWN, O0, O1, O2, O3 = 0, 9, 19, 29, 39


Config = type(config)


class NumpyDtypePromotion(enum.StrEnum):
    """Which values of different dtypes are combined."""

    STANDARD = "standard"
    STRICT = "strict"


update = config.update
parse_flags_with_absl = config.parse_flags_with_absl


def _read(name: str) -> Any:
    """The value of a setting, by its full name."""
    return config.read(name)


class _Setting(State):
    """A setting that has no public context manager."""

    def __init__(self, name: str) -> None:
        self._name, self._default = name, True
        self.__name__ = name.removeprefix("jax_")
        self.__doc__ = f"The setting ``{name}``."


class _DisableJit:
    """`jax.disable_jit` with the value of its setting."""

    name = "jax_disable_jit"
    __call__ = staticmethod(_disable_jit)

    @property
    def value(self) -> bool:
        """Whether jitted functions run operation by operation."""
        return bool(config.read(self.name))


disable_jit = _DisableJit()
_settings: dict[str, State] = {}


def __getattr__(name: str) -> Any:
    import ferrax

    public = getattr(ferrax, name, None)
    if isinstance(public, State):
        return public
    full = name if name.startswith("jax") else f"jax_{name}"
    if full in _NAMES:
        return _settings.setdefault(full, _Setting(full))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
