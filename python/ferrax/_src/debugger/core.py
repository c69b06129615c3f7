"""Parts of the debugger of breakpoints, which is Python's own here."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "CliDebugger Debugger DebuggerFrame get_debugger register_debugger run_cli run_debugger",
    "a breakpoint of ferrax's is Python's own debugger, pdb",
)
