"""Experimental functions of JAX's: `io_callback`, and the modules beside this file."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._callbacks import io_callback as io_callback
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental import checkify as checkify
    from ferrax.experimental import hijax as hijax
    from ferrax.experimental import jet as jet
    from ferrax.experimental import ode as ode
    from ferrax.experimental import pjit as pjit
    from ferrax.experimental import random as random
    from ferrax.experimental import rnn as rnn

_SUBMODULES = "checkify hijax jet ode pjit random rnn"

_defer(globals(), {}, _SUBMODULES)
