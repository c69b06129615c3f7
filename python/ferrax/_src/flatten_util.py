"""Trees as vectors."""

from ferrax.flatten_util import ravel_pytree as ravel_pytree
