"""Programs as operations."""

from typing import Any

from ferrax import core


class _EvalJaxpr:
    """Stands for the operation that runs a program; its equations stand in the place of such an operation."""

    name = "eval_jaxpr"
    multiple_results = True

    def bind(self, *args: Any, jaxpr: Any) -> list[Any]:
        """The results of a program.

        Args:
          *args: its arguments.
          jaxpr: the program, with its constants.
        """
        return core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)

    def __repr__(self) -> str:
        return self.name


eval_jaxpr_p = _EvalJaxpr()
