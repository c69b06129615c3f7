"""A debugger in a browser."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "WebDebugger run_debugger",
    "debuggers are Python's pdb",
)
