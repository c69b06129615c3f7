"""What the array API's standard asks of a namespace."""

from ferrax._src._public import names_of
from ferrax.numpy import __array_namespace_info__ as __array_namespace_info__

__getattr__ = names_of(__name__, "ferrax.numpy")
