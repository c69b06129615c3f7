"""Where programs run: ferrax knows no TPUs."""


def running_in_cloud_tpu_vm() -> bool:
    """Whether this machine is one with TPUs that ferrax would use: never."""
    return False
