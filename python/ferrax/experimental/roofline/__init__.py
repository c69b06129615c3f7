"""What a function costs on an idealized device, read off its program."""

from ferrax.experimental.roofline.roofline import (
    RooflineResult as RooflineResult,
    RooflineRuleContext as RooflineRuleContext,
    RooflineShape as RooflineShape,
    register_roofline as register_roofline,
    register_standard_roofline as register_standard_roofline,
    roofline as roofline,
    roofline_and_grad as roofline_and_grad,
)
from ferrax.experimental.roofline import rooflines as _rules

__all__ = [
    "RooflineResult",
    "RooflineRuleContext",
    "RooflineShape",
    "register_roofline",
    "register_standard_roofline",
    "roofline",
    "roofline_and_grad",
]
