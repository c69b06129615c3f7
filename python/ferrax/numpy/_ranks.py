"""What `jax_numpy_rank_promotion` says of operands of several ranks, where the core does not ask.

Read next: `_functional.py`, whose functions have signatures.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

from ferrax.config import config

__all__ = ["check_batch_ranks", "check_ranks"]


def check_ranks(name: str, *arrays: Any) -> None:
    """Does what the setting says of operands of an elementwise function, scalars apart.

    Args:
      name: the function's.
      *arrays: its operands.

    Raises:
      ValueError: they have several ranks, and the setting is "raise".
    """
    if config.read("jax_numpy_rank_promotion") == "allow" or len({x.ndim for x in arrays if x.ndim}) < 2:
        return
    shapes = " ".join(str(x.shape) for x in arrays)
    if config.read("jax_numpy_rank_promotion") == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {shapes} and with the config option "
            "jax_numpy_rank_promotion='raise'. Give the operand of lower rank its new axes with x[None] or "
            "jnp.expand_dims."
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {shapes}. Set the jax_numpy_rank_promotion "
        "config option to 'allow' to disable this warning.",
        stacklevel=4,
    )


def check_batch_ranks(arrays: Sequence[Any], cores: Sequence[Collection[Any]], signature: str | None) -> None:
    """As `check_ranks`, of what comes before the axes of a signature.

    Args:
      arrays: the operands.
      cores: for each operand the axes that its signature names.
      signature: the signature.

    Raises:
      ValueError: as `check_ranks`.
    """
    ranks = {x.ndim - len(core) for x, core in zip(arrays, cores) if x.ndim}
    if config.read("jax_numpy_rank_promotion") == "allow" or len(ranks) < 2:
        return
    shapes = [x.shape for x in arrays]
    text = (
        f"operands with shapes {shapes} require rank promotion for jnp.vectorize function with signature {signature}. "
        "Set the jax_numpy_rank_promotion config option to 'allow' to disable this message."
    )
    if config.read("jax_numpy_rank_promotion") == "raise":
        raise ValueError(text)
    warnings.warn(text, stacklevel=4)
