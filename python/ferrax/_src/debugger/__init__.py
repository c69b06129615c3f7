"""The debugger of breakpoints in programs."""

from ferrax._src._unprovided import unprovided_names
from ferrax.debug import breakpoint as breakpoint

__getattr__ = unprovided_names(
    __name__, "CliDebugger ColabDebugger WebDebugger", "a breakpoint of ferrax's is Python's own debugger, pdb"
)
