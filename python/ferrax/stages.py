"""The stages of compilation as classes: `Traced`, `Lowered`, `Compiled`, `ArgInfo`, `Wrapped`."""

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax._stages import ArgInfo as ArgInfo, Compiled as Compiled, Lowered as Lowered, Traced as Traced

Wrapped = _ferrax.jit_type()

#: Options of a compiler, by name: see `jit`.
CompilerOptions = dict[str, str | bool]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

_expose(globals())
