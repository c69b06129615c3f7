"""What a compiled function runs, as flat lists: the object that stages of JAX's keep as `_executable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import tree_util

__all__ = ["MeshExecutable"]


class MeshExecutable:
    """The program of a compiled function, of flat arguments and results.

    Args:
      compiled: the compiled function.

    >>> import ferrax as jax
    >>> executable = jax.jit(lambda x: {"a": 2 * x}).lower(1).compile()._executable
    >>> executable.call(3), executable.in_avals
    ([Array(6, dtype=int32, weak_type=True)], [ShapedArray(int32[], weak_type=True)])
    """

    def __init__(self, compiled: Any):
        self._compiled = compiled

    @property
    def in_avals(self) -> list[Any]:
        """Types of the arguments."""
        return list(self._compiled._program.in_avals)

    @property
    def out_avals(self) -> list[Any]:
        """Types of the results."""
        return list(self._compiled._program.out_avals)

    @property
    def _in_shardings(self) -> list[Any]:
        return tree_util.tree_leaves(self._compiled.input_shardings)

    @property
    def _out_shardings(self) -> list[Any]:
        return tree_util.tree_leaves(self._compiled.output_shardings)

    @property
    def _kept_var_idx(self) -> set[int]:
        return set(range(len(self.in_avals)))

    @property
    def xla_executable(self) -> Any:
        """The object that runs: the compiled function itself."""
        return self._compiled.runtime_executable()

    def xla_extension_executable(self) -> Any:
        """As `xla_executable`."""
        return self.xla_executable

    def call(self, *args: Any) -> list[Any]:
        """Runs the program: a list of its results."""
        arguments, keywords = self._compiled._in_tree.unflatten(args)
        return tree_util.tree_leaves(self._compiled(*arguments, **keywords))

    @property
    def unsafe_call(self) -> Callable[..., list[Any]]:
        """As `call`: what is unsafe of it in JAX is not here."""
        return self.call

    def __getattr__(self, name: str) -> Any:
        if name in ("as_text", "cost_analysis", "memory_analysis", "input_formats", "output_formats"):
            return getattr(self._compiled, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
