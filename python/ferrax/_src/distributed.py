"""Several processes, of which there is one: what libraries read of them."""

from typing import Any

import ferrax.distributed as _distributed
from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.distributed")


class State:
    """The process among others: number 0 of 1, without a client or a service of a coordinator's."""

    process_id: int = 0
    num_processes: int = 1
    service: Any = None
    client: Any = None
    preemption_sync_manager: Any = None
    coordinator_address: str | None = None
    partition_index: int | None = None

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """As `ferrax.distributed.initialize`."""
        _distributed.initialize(*args, **kwargs)

    def shutdown(self) -> None:
        """As `ferrax.distributed.shutdown`."""
        _distributed.shutdown()


global_state = State()
