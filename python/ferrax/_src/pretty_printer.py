"""Text in lines of some width."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "CAN_USE_COLOR Color Doc Intensity OutputFormat brk color concat group join keyword nest nil "
    "source_map text type_annotation",
    "programs are printed by the core",
)
