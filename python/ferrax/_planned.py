"""Names and modules of JAX's public interface that are not here yet: asking for one says so.

An attribute is missing for `hasattr`, too, and a module for `except ImportError`, `pytest.importorskip` and
`importlib.util.find_spec`; in whatever way it is asked for, the error is a `MissingFeatureError`. A name is taken off
when it is implemented. Read next: `_boundary.py`, which asks for the error of a missing name.
"""

from __future__ import annotations

import types
from opcode import opmap

PLANNED: dict[str, frozenset[str]] = {
    "ferrax.experimental.pallas": frozenset(
        [
            "core_map",
            "debug_check",
            "debug_checks_enabled",
            "delay",
            "enable_debug_checks",
            "enable_poison_buffers",
            "get_global",
            "kernel",
            "lower_as_mlir",
            "pallas_export_experimental",
            "select_ref",
        ]
    ),
}

#: Modules, each with whatever is in it.
MODULES = frozenset(
    [
        "ferrax.cloud_tpu_init",
        "ferrax.collect_profile",
        "ferrax.tools",
        "ferrax.experimental.jax2tf",
        "ferrax.experimental.mosaic",
        "ferrax.experimental.pallas.fuser",
        "ferrax.experimental.pallas.mosaic_gpu",
        "ferrax.experimental.pallas.ops.gpu",
        "ferrax.experimental.pallas.ops.tpu.all_gather",
        "ferrax.experimental.pallas.ops.tpu.example_kernel",
        "ferrax.experimental.pallas.ops.tpu.flash_attention",
        "ferrax.experimental.pallas.ops.tpu.matmul",
        "ferrax.experimental.pallas.ops.tpu.megablox",
        "ferrax.experimental.pallas.ops.tpu.paged_attention",
        "ferrax.experimental.pallas.ops.tpu.ragged_paged_attention",
        "ferrax.experimental.pallas.ops.tpu.random",
        "ferrax.experimental.pallas.tpu_sc",
        "ferrax.experimental.transfer",
        "ferrax.extend.mlir",
    ]
)


class MissingFeatureError(NotImplementedError):
    """A name or a module of JAX's interface was asked for that ferrax does not have yet.

    As an attribute (``ferrax.experimental.pallas.kernel``) it is missing for ``hasattr`` and ``getattr`` with a
    default: the exception is an ``AttributeError``, too. In an import statement (``import ferrax.cloud_tpu_init``,
    ``from ferrax.experimental.pallas import kernel``) it is a ``ModuleNotFoundError``, so that ``except ImportError``
    and ``pytest.importorskip`` take it as any missing module.

    Args:
      message: the text.

    >>> import ferrax
    >>> hasattr(ferrax.experimental.pallas, "kernel")
    False
    >>> try:
    ...     import ferrax.cloud_tpu_init
    ... except ferrax.errors.MissingFeatureError as error:
    ...     print(isinstance(error, ImportError), str(error).splitlines()[0])
    True ferrax.cloud_tpu_init is part of JAX's interface, and is not implemented in ferrax yet
    """


class MissingNameError(AttributeError, MissingFeatureError):
    """A `MissingFeatureError` of an attribute.

    >>> import ferrax
    >>> issubclass(ferrax.errors.MissingNameError, AttributeError)
    True
    """


class MissingModuleError(ModuleNotFoundError, MissingFeatureError):
    """A `MissingFeatureError` of an import statement.

    >>> import ferrax
    >>> issubclass(ferrax.errors.MissingModuleError, ImportError)
    True
    """


for _class in (MissingFeatureError, MissingNameError, MissingModuleError):
    _class.__module__ = "ferrax.errors"
del _class


def is_planned(module: str, name: str) -> bool:
    """Whether a module of JAX's has a name that ferrax's does not have yet."""
    return name in PLANNED.get(module, ()) or f"{module}.{name}" in MODULES


def _text(whole: str) -> str:
    return (
        f"{whole} is part of JAX's interface, and is not implemented in ferrax yet\n"
        "See help(ferrax.errors.MissingFeatureError)."
    )


def planned(whole: str, asker: types.FrameType) -> MissingFeatureError:
    """The error of a planned name, for the frame that asks for it.

    Args:
      whole: the name with its module's.
      asker: the frame; in `from module import name`, attribute errors would lose their text.
    """
    if asker.f_lasti >= 0 and asker.f_code.co_code[asker.f_lasti] == opmap["IMPORT_FROM"]:
        return MissingModuleError(_text(whole), name=whole)
    return MissingNameError(_text(whole), name=whole.rpartition(".")[2])


def refuse(name: str) -> None:
    """Raises for a planned module.

    Args:
      name: a module, with the package's name.

    Raises:
      MissingFeatureError: it is planned.
    """
    if name in MODULES:
        raise MissingModuleError(_text(name), name=name)
