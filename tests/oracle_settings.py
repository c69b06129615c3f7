"""How JAX runs where it is only the oracle of a test: on the CPU, and compiled quickly rather than well.

Importing this module sets the environment, which JAX reads when it is imported itself. Nearly all the time that the
oracle takes is LLVM's, for programs that run once.
"""

import os

#: No optimization, no threads: half the time, the same results to rounding.
QUICKLY = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1"
)

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", QUICKLY)
