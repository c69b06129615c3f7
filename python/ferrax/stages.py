"""The stages of compilation as classes: `Traced`, `Lowered`, `Compiled`, `ArgInfo`, `Wrapped`."""

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._stages import ArgInfo as ArgInfo
from ferrax._stages import Compiled as Compiled
from ferrax._stages import Lowered as Lowered
from ferrax._stages import Traced as Traced

Wrapped = _ferrax.jit_type()

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]

_expose(globals())
