"""What hardware there is."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "TpuVersion has_visible_nvidia_gpu num_available_tpu_chips_and_device_id transparent_hugepages_enabled",
    "hardware is what ferrax.devices() says",
)
