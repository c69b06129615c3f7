"""What says that there is no MLIR, where a name of it is asked for."""

from collections.abc import Callable
from typing import Any

from ferrax._planned import MissingNameError


def nothing_in(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of MLIR's."""
    short = module.rpartition(".")[2]

    def __getattr__(name: str) -> Any:
        raise MissingNameError(
            f"{short}.{name}: ferrax has no MLIR. Give the primitive's lowering as a function of arrays, by "
            "jax.interpreters.mlir.lower_fun, or its implementation by def_impl",
            name=name,
        )

    return __getattr__
