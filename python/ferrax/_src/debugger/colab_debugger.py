"""A debugger in a notebook."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "ColabDebugger run_debugger",
    "debuggers are Python's pdb",
)
