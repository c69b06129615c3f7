"""How JAX runs where it is only the oracle of a test: on the CPU, and compiled quickly rather than well.

Nearly all the time that the oracle takes is LLVM's, for programs that run once.
"""

#: No optimization, no threads: half the time, the same results to rounding.
QUICKLY = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1"
)


def apply(environ):
    """Puts the settings into an environment, before anything imports jax there; what is set already stays."""
    environ.setdefault("JAX_PLATFORMS", "cpu")
    environ.setdefault("XLA_FLAGS", QUICKLY)
    return environ
