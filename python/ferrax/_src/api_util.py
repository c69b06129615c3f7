"""Functions of trees as functions of flat lists."""

from ferrax.api_util import *  # noqa: F403
