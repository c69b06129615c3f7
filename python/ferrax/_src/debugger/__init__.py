"""The debugger of breakpoints in programs."""

from ferrax._src._public import with_submodules
from ferrax._src._unprovided import unprovided_names
from ferrax.debug import breakpoint as breakpoint

#: Why its parts are not JAX's.
WHY = "the debugger of ferrax's breakpoints (ferrax._debugger) has no backends and no frames of JAX's"

__getattr__ = with_submodules(__name__, unprovided_names(__name__, "CliDebugger ColabDebugger WebDebugger", WHY))
