"""Parts of the debugger of breakpoints."""

from ferrax._src._unprovided import unprovided_names
from ferrax._src.debugger import WHY

__getattr__ = unprovided_names(
    __name__,
    "CliDebugger Debugger DebuggerFrame get_debugger register_debugger run_cli run_debugger",
    WHY,
)
