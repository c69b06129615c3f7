"""Sums of exponentials."""

from ferrax.scipy.special import logsumexp as logsumexp
