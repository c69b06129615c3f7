"""Windows and overlaps."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_median_bias _triage_segments",
    "steps of ferrax.scipy.signal's spectra that are not by themselves here",
)
