"""Lowering rules that build MLIR may import this: they are never called (`ferrax.interpreters.mlir`)."""

from typing import Any

from ferrax._planned import MissingNameError


def __getattr__(name: str) -> Any:
    raise MissingNameError(
        f"hlo.{name}: ferrax has no MLIR. Give the primitive's lowering as a function of arrays, by "
        "jax.interpreters.mlir.lower_fun, or its implementation by def_impl",
        name=name,
    )
