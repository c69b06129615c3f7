"""What lowerings of primitives are told, and MLIR's names, of which ferrax has none.

Programs that define a lowering for MLIR import from here; ferrax compiles their primitives by `lower_fun`,
`ferrax.ffi.ffi_lowering` or the primitive's implementation. Read next: `ferrax/interpreters/mlir.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

from ferrax._boundary import expose as _expose
from ferrax._src._unprovided import UnprovidedAttribute as _UnprovidedAttribute, lacking as _lacking

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]


def _no_mlir(what: str, error: type[Exception] = NotImplementedError) -> NoReturn:
    raise error(
        f"{what} is MLIR's, which ferrax does not have: give the primitive's lowering as a function of arrays, by "
        "jax.interpreters.mlir.lower_fun, or as a foreign function, by jax.ffi.ffi_lowering"
    )


@dataclasses.dataclass(slots=True)
class LoweringRuleContext:
    """What a lowering is told of the operation that it compiles; what is MLIR's is None.

    Args:
      module_context: None.
      name_stack: None.
      traceback: None.
      primitive: the operation.
      avals_in: types of the operands.
      avals_out: types of the results.
      tokens_in: None.
      tokens_out: None.
      const_lowering: None.
      axis_size_env: None.
      dim_var_values: values of symbolic dimensions: none.
      jaxpr_eqn_ctx: None.
      platforms: the platforms that it is compiled for.

    >>> import ferrax as jax
    >>> from ferrax.extend.lowering import LoweringRuleContext
    >>> aval = jax.core.ShapedArray((2,), "float32")
    >>> LoweringRuleContext(None, None, None, jax.lax.sin_p, [aval], [aval], None, None, None).avals_out
    [ShapedArray(float32[2])]
    """

    module_context: Any
    name_stack: Any
    traceback: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Any
    tokens_in: Any
    tokens_out: Any
    const_lowering: Any
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def set_tokens_out(self, tokens_out: Any) -> None:
        """Sets `tokens_out`."""
        self.tokens_out = tokens_out

    def replace(self, **kw: Any) -> LoweringRuleContext:
        """The context with other values of some fields."""
        return dataclasses.replace(self, **kw)

    def is_forward_compat(self) -> bool:
        """Whether the program is for older readers: no."""
        return False


@_lacking(
    "allow_unregistered_dialects append_dialect_registry attach_diagnostic_handler current d dialects "
    "emit_error_diagnostics enable_multithreading get_dialect_descriptor get_num_threads is_registered_operation "
    "load_all_available_dialects set_thread_pool",
    "ferrax has no contexts of MLIR",
)
class JaxIrContext:
    """MLIR's context: there is none.

    Args:
      *args: are not used.
      **kwargs: are not used.

    Raises:
      NotImplementedError: always.

    >>> from ferrax.extend.lowering import JaxIrContext
    >>> try:
    ...     JaxIrContext()
    ... except NotImplementedError as error:
    ...     print(str(error).partition(",")[0])
    JaxIrContext is MLIR's
    """

    def __init__(self, *args: Any, **kwargs: Any):
        _no_mlir("JaxIrContext")


class _Dialects:
    """MLIR's dialects: asking for anything of them raises."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _no_mlir(f"upstream_dialects.{name}", _UnprovidedAttribute)


upstream_dialects = _Dialects()


_expose(globals())
