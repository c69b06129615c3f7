"""What a compiled function runs, as flat lists: the object that stages of JAX's keep as `_executable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import tree_util
from ferrax._src._unprovided import lacking

__all__ = ["MeshComputation", "MeshExecutable"]


def _of_compiled(name: str) -> property:
    """What the compiled function has by a name."""
    return property(lambda self: getattr(self._compiled, name), doc=f"As `{name}` of `jax.stages.Compiled`.")


@lacking(
    "as_text compile compiler_ir cost_analysis hlo stablehlo", "programs before compilation are jax.stages.Lowered"
)
class MeshComputation:
    """A program of XLA's that is not compiled yet: there is none.

    Raises:
      NotImplementedError: always.
    """

    def __init__(
        self,
        name: Any,
        hlo: Any,
        const_args: Any,
        donated_invars: Any,
        platforms: Any,
        compiler_options_kvs: Any,
        device_assignment: Any,
        **compile_args: Any,
    ):
        raise NotImplementedError("MeshComputation: programs before compilation are jax.stages.Lowered")


@lacking("build_unsafe_call create_cpp_call shard_const_args", "the program runs in the core")
class MeshExecutable:
    """The program of a compiled function, of flat arguments and results; `of` makes one.

    Raises:
      NotImplementedError: it is made of a program of XLA's.

    >>> import ferrax as jax
    >>> executable = jax.jit(lambda x: {"a": 2 * x}).lower(1).compile()._executable
    >>> executable.call(3), executable.in_avals
    ([Array(6, dtype=int32, weak_type=True)], [ShapedArray(int32[], weak_type=True)])
    """

    _compiled: Any

    def __init__(
        self,
        xla_executable: Any,
        build_unsafe_call: Any,
        in_avals: Any,
        out_avals: Any,
        in_shardings: Any,
        out_shardings: Any,
        kept_var_idx: Any,
        xla_in_layouts: Any,
        dispatch_in_layouts: Any,
        xla_out_layouts: Any,
        mut: Any,
        all_args_info: Any = None,
        unloaded_executable: Any = None,
    ):
        raise NotImplementedError("MeshExecutable: there are no programs of XLA's; compiled functions have one")

    @classmethod
    def of(cls, compiled: Any) -> MeshExecutable:
        """The one of a compiled function."""
        made = cls.__new__(cls)
        made._compiled = compiled
        return made

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

    as_text = _of_compiled("as_text")
    cost_analysis = _of_compiled("cost_analysis")
    input_formats = _of_compiled("input_formats")
    input_shardings = _of_compiled("input_shardings")
    memory_analysis = _of_compiled("memory_analysis")
    output_formats = _of_compiled("output_formats")
    output_shardings = _of_compiled("output_shardings")
    runtime_executable = _of_compiled("runtime_executable")
