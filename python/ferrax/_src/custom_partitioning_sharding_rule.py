"""How factors of axes go together in a function that says how it is divided."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.experimental.custom_partitioning import str_to_sdy_sharding_rule as str_to_sdy_sharding_rule

__getattr__ = unprovided_names(
    __name__,
    "sdy_sharding_rule_to_mlir",
    "ferrax lowers programs to no MLIR",
    names_of(__name__, "ferrax.experimental.custom_partitioning"),
)
