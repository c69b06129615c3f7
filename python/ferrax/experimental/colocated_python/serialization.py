"""What JAX's module of this name has inside: how meshes and devices go to other hosts. Here there is one."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "DeviceList xb",
    "ferrax is one process, and functions of colocated_python run in it without being sent anywhere",
)
