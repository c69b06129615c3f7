"""Passes of users in XLA's compiler: none, since the embedded engine compiles without it.

Read next: `docs/devices.md`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from ferrax._boundary import expose as _expose

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]


class PipelineStage(enum.Enum):
    """Where in XLA's compiler a pass stands.

    >>> from ferrax.extend.xla import PipelineStage
    >>> PipelineStage.PRE_SCHEDULER.value
    0
    """

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None],
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: str | Sequence[str] | None = None,
) -> None:
    """Raises: no pass of a user can stand in the compiler of a plugin.

    Args:
      callback: function from a serialized `HloModuleProto` to another one or None.
      name: a name for the pass.
      stage: where it stands.
      platforms: the platforms that it is for.

    Raises:
      NotImplementedError: always.

    >>> from ferrax.extend.xla import register_hlo_module_transformation
    >>> try:
    ...     register_hlo_module_transformation(lambda module: None, name="nothing")
    ... except NotImplementedError as error:
    ...     print(str(error).partition(":")[0])
    the pass 'nothing' would be one of XLA's compiler
    """
    raise NotImplementedError(
        f"the pass {name!r} would be one of XLA's compiler: the embedded engine compiles without HLO, and plugins take "
        "no passes through PJRT. jax.make_jaxpr gives programs to look at and to change"
    )


def clear_hlo_module_transformation(
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: str | Sequence[str] | None = None,
) -> bool:
    """Takes a pass out: there is never one.

    Args:
      name: the name of the pass.
      stage: where it stands.
      platforms: the platforms that it is for.

    Returns:
      Whether there was such a pass: False.

    >>> from ferrax.extend.xla import clear_hlo_module_transformation
    >>> clear_hlo_module_transformation("nothing")
    False
    """
    return False


_expose(globals())
