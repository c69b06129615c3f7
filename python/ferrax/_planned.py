"""Names and modules of JAX's public interface that are not here yet: asking for one says so.

An attribute is missing for `hasattr`, too, and a module for `except ImportError`, `pytest.importorskip` and
`importlib.util.find_spec`; in whatever way it is asked for, the error is a `MissingFeatureError`. A name is taken off
when it is implemented. Read next: `_boundary.py`, which asks for the error of a missing name.
"""

from __future__ import annotations

import sys
import types
from opcode import opmap
from typing import Any

PLANNED: dict[str, frozenset[str]] = {
    "ferrax": frozenset(
        [
            "Device", "NamedSharding", "P", "Ref", "Shard", "ad", "auto_pcast", "ds", "empty_ref", "float0", "free_ref",
            "freeze", "fwd_and_bwd", "host_ids", "jax2tf_associative_scan_reductions", "make_array_from_callback",
            "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_mesh",
            "make_user_context", "memory", "new_ref", "pmap", "print_environment_info",
            "remove_size_one_mesh_axis_from_type", "reshard", "set_mesh", "shard_map", "smap",
        ]
    ),
    "ferrax.ad_checkpoint": frozenset(["Offloadable", "Recompute", "Saveable", "print_saved_residuals"]),
    "ferrax.custom_derivatives": frozenset(["CustomVJPPrimal", "custom_vjp_primal_tree_values", "zero_from_primal"]),
    "ferrax.debug": frozenset(
        [
            "DebugEffect", "OrderedDebugEffect", "inspect_array_sharding", "visualize_array_sharding",
            "visualize_sharding",
        ]
    ),
    "ferrax.experimental": frozenset(["EArray", "cur_qdd", "primal_tangent_dtype"]),
    "ferrax.lax": frozenset(
        [
            "RaggedDotDimensionNumbers", "RandomAlgorithm", "betainc", "conv_general_permutations",
            "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple", "create_token", "dce_sink",
            "igamma_grad_a", "pcast", "precv", "psend", "ragged_all_to_all", "ragged_dot", "ragged_dot_general",
            "random_gamma_grad", "rng_bit_generator", "scaled_dot",
        ]
    ),
    "ferrax.lax.linalg": frozenset(["qdwh"]),
    "ferrax.stages": frozenset(["CompilerOptions"]),
}  # fmt: skip

_EXPERIMENTAL = (
    "array_serialization buffer_callback checkify colocated_python compilation_cache compute_on control_deps "
    "custom_partitioning fused hijax jax2tf jet key_reuse layout mesh_utils mosaic multihost_utils ode pallas pjit "
    "profiler random rnn roofline scheduling_groups serialize_executable shard_alike shard_map source_mapper sparse "
    "topologies transfer xla_metadata"
)
_TOP = (
    "api_util cloud_tpu_init collect_profile core distributed example_libraries export extend ffi image interpreters "
    "lib monitoring profiler ref scipy sharding tools version"
)
#: Modules, each with whatever is in it.
MODULES = frozenset(
    [f"ferrax.{name}" for name in _TOP.split()] + [f"ferrax.experimental.{name}" for name in _EXPERIMENTAL.split()]
)


class MissingFeatureError(NotImplementedError):
    """A name or a module of JAX's interface was asked for that ferrax does not have yet.

    As an attribute (``ferrax.pmap``) it is missing for ``hasattr`` and ``getattr`` with a default: the exception is an
    ``AttributeError``, too. In an import statement (``import ferrax.sharding``, ``from ferrax import pmap``) it is a
    ``ModuleNotFoundError``, so that ``except ImportError`` and ``pytest.importorskip`` take it as any missing module.

    Args:
      message: the text.

    >>> import ferrax
    >>> hasattr(ferrax, "pmap")
    False
    >>> try:
    ...     import ferrax.sharding
    ... except ferrax.errors.MissingFeatureError as error:
    ...     print(isinstance(error, ImportError), str(error).splitlines()[0])
    True ferrax.sharding is part of JAX's interface, and is not implemented in ferrax yet
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


def find_spec(name: str, path: Any = None, target: Any = None) -> None:
    """Raises for planned modules, last of the import system's finders; says nothing to `importlib.util.find_spec`."""
    if name in MODULES and sys._getframe(2).f_globals.get("__name__") != "importlib.util":
        raise MissingModuleError(_text(name), name=name)
