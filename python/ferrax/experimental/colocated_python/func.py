"""What JAX's module of this name has inside: how functions go to other hosts. Here they run on this one."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "Specialization make_callable",
    "ferrax is one process, and functions of colocated_python run in it without being sent anywhere",
)
