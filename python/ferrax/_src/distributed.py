"""Several processes: what libraries read of them."""

from ferrax._src._public import names_of
from ferrax.distributed import State as State, global_state as global_state

__getattr__ = names_of(__name__, "ferrax.distributed")
