"""Where programs run: a TPU is used by a plugin, which prepares its machine itself."""

#: Whether this process has prepared a machine of Google's with TPUs.
running_in_cloud_tpu_vm = False


def cloud_tpu_init() -> None:
    """Prepares a machine with TPUs for use: plugins do so when they are loaded, so that nothing is left to do."""
