"""Rules of primitives for `roofline`: what each of them costs.

Products count as operations and traffic in any case, everything else only where nothing is fused. Collectives run in
rings along each axis of a mesh; what they cost is what the busiest link carries.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ferrax
from ferrax import lax
from ferrax.experimental.roofline.roofline import (
    RooflineResult,
    RooflineRuleContext as Context,
    RooflineShape as Shape,
    register_roofline,
    register_standard_roofline,
    roofline,
)
from ferrax.extend.core import primitives
from ferrax.lax import elementwise

#: Elementwise primitives that are not named as their functions.
_NAMED_OTHERWISE = ("and", "integer_pow", "not", "or", "round", "xor")
_ELEMENTWISE = [name for name in elementwise.__all__ if hasattr(primitives, f"{name}_p")]


def _primitive(name: str) -> Any:
    return getattr(primitives, f"{name}_p", None) or getattr(lax, f"{name}_p")


def _rule(*names: str) -> Callable[[Callable[..., RooflineResult]], Callable[..., RooflineResult]]:
    """A decorator: a function is the rule of the primitives of these names."""

    def register(rule: Callable[..., RooflineResult]) -> Callable[..., RooflineResult]:
        for name in names:
            register_roofline(_primitive(name))(rule)
        return rule

    return register


for _module in (primitives, lax):
    for _name in dir(_module):
        if _name.endswith("_p"):
            register_standard_roofline(getattr(_module, _name))


def _traffic(ctx: Context) -> int:
    """Each operand is read once, each result written once."""
    return Shape.total_bytes(ctx.avals_in) + Shape.total_bytes(ctx.avals_out)


@_rule(*_ELEMENTWISE, *_NAMED_OTHERWISE)
def _elementwise(ctx: Context, *operands: Shape, **_: Any) -> RooflineResult:
    size = math.prod(np.broadcast_shapes(*(x.shape for x in operands)))
    return RooflineResult(unfused_flops=size, unfused_hbm_bytes=_traffic(ctx))


@_rule("select_n")
def _select_n(ctx: Context, which: Shape, *_: Shape, **__: Any) -> RooflineResult:
    """Of the cases as many elements are read as there are in the result."""
    out = Shape.from_aval(ctx.avals_out[0])
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=which.bytes + out.bytes)


@_rule("cummax", "cummin", "cumprod", "cumsum", "cumlogsumexp")
def _cumulative(ctx: Context, x: Shape, *, axis: int, **_: Any) -> RooflineResult:
    """One operation an element of the axis; logarithms of sums take two, one of them an exponential function."""
    each = 2 if ctx.primitive.name == "cumlogsumexp" else 1
    return RooflineResult(unfused_flops=each * x.shape[axis], unfused_hbm_bytes=_traffic(ctx))


@_rule("reduce_sum")
def _reduce_sum(ctx: Context, x: Shape, *, axes: Sequence[int], **_: Any) -> RooflineResult:
    summed = math.prod(x.shape[i] for i in axes)
    kept = math.prod(n for i, n in enumerate(x.shape) if i not in axes)
    return RooflineResult(unfused_flops=(summed - 1) * kept, unfused_hbm_bytes=x.dtype.itemsize * (x.size + kept))


@_rule("dot_general")
def _dot_general(ctx: Context, lhs: Shape, rhs: Shape, *, dimension_numbers: Any, **_: Any) -> RooflineResult:
    (contracted, _), (batched, _) = dimension_numbers
    shared = math.prod(lhs.shape[i] for i in (*contracted, *batched))
    flops = 2 * lhs.size * rhs.size // shared if shared else 0
    out = Shape.from_aval(ctx.avals_out[0])
    moved = 0 if ctx.pin_lhs_in_vmem else lhs.bytes + out.bytes
    moved += 0 if ctx.pin_rhs_in_vmem else rhs.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _meetings(out: int, taps: int, size: int, step: int, pad: int, spread: int, apart: int) -> int:
    """How often an element of the kernel meets one of the image, along one axis.

    Element `k` of the kernel meets element `i` of the image for result `o` where `o * step + k * apart - pad` is
    `i * spread`: the results `o` that do are equally far from each other.

    Args:
      out, taps, size: sizes of the result, the kernel and the image.
      step: of the window; pad: zeros in front.
      spread: distance of the image's elements; apart: distance of the kernel's.
    """
    offset = np.arange(taps, dtype=np.int64) * apart - pad
    common = math.gcd(step, spread)
    period = spread // common
    first = (-offset // common) * pow(step // common, -1, period) % period
    low = np.maximum(-(offset // step), 0)
    high = np.minimum(((size - 1) * spread - offset) // step, out - 1)
    start = low + (first - low) % period
    count = np.where((offset % common == 0) & (start <= high), (high - start) // period + 1, 0)
    return int(count.sum())


@_rule("conv_general_dilated")
def _convolution(
    ctx: Context,
    lhs: Shape,
    rhs: Shape,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    batch_group_count: int,
    **_: Any,
) -> RooflineResult:
    image, kernel, result = dimension_numbers
    out = Shape.from_aval(ctx.avals_out[0])
    flops = 2 * lhs.shape[image[0]] // batch_group_count * rhs.shape[kernel[1]] * out.shape[result[1]]
    for d, step in enumerate(window_strides):
        sizes = out.shape[result[2 + d]], rhs.shape[kernel[2 + d]], lhs.shape[image[2 + d]]
        flops *= _meetings(*sizes, step, padding[d][0], lhs_dilation[d], rhs_dilation[d])
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=_traffic(ctx))


@_rule("gather")
def _gather(ctx: Context, operand: Shape, indices: Shape, *, mode: Any, **_: Any) -> RooflineResult:
    """A copy of what is taken. Where rows outside are filled, each index is compared twice, and both are joined and
    reduced to one answer a row, by which the result is chosen."""
    out = Shape.from_aval(ctx.avals_out[0])
    fills = str(mode).rpartition(".")[2] == "FILL_OR_DROP"
    flops = 4 * indices.size + out.size if fills else 0
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=2 * out.bytes + indices.bytes)


@_rule("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub")
def _scatter(ctx: Context, operand: Shape, indices: Shape, updates: Shape, **params: Any) -> RooflineResult:
    """Updates are read, what they meet is read and written, and the function that joins them applied to each."""
    joins, flops = params.get("update_jaxpr"), 0
    if joins is not None:
        program = getattr(joins, "jaxpr", joins)
        scalars = [ferrax.ShapeDtypeStruct((), updates.dtype)] * len(program.invars)
        _, one = roofline(lambda *xs: ferrax.core.eval_jaxpr(program, [], *xs))(*scalars)
        flops = one.unfused_flops * updates.size
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


@_rule("pure_callback", "io_callback", "debug_callback")
def _host_call(ctx: Context, *_: Shape, **__: Any) -> RooflineResult:
    """What the host computes is not known: operands go there, results come back."""
    return RooflineResult(unfused_hbm_bytes=_traffic(ctx))


# ---- collectives -----------------------------------------------------------------------------------------------------


def _along(axes: Sequence[str], traffic: float, hops: float) -> RooflineResult:
    """The same on each axis."""
    return RooflineResult(ici_bytes=dict.fromkeys(axes, int(traffic)), ici_latency=dict.fromkeys(axes, int(hops)))


def _named(axes: Any) -> tuple[str, ...]:
    return tuple(map(str, axes if isinstance(axes, (tuple, list)) else (axes,)))


def _sizes(ctx: Context, axes: Sequence[str]) -> list[int]:
    return [ctx.mesh.shape[axis] for axis in axes]


def _ring(ctx: Context, axes: Any, held: float) -> RooflineResult:
    """Parts go around along one axis after the other, the longest first; a part grows by each axis it went along."""
    axes = sorted(_named(axes), key=lambda a: -ctx.mesh.shape[a])
    sizes = _sizes(ctx, axes)
    if math.prod(sizes) == 1:
        return _along(axes, 0, 0)
    traffic, part = 0.0, held // len(axes)
    for n in sizes:
        traffic += part * (n - 1)
        part *= n
    return _along(axes, traffic, sizes[0] * len(axes))


def _reduced_ring(ctx: Context, axes: Any) -> RooflineResult:
    return _ring(ctx, axes, Shape.total_bytes(ctx.avals_in) / math.prod(_sizes(ctx, _named(axes))))


@_rule("all_gather")
def _all_gather(ctx: Context, *_: Shape, axis_name: Any, **__: Any) -> RooflineResult:
    return _ring(ctx, axis_name, Shape.total_bytes(ctx.avals_in))


@_rule("reduce_scatter")
def _reduce_scatter(ctx: Context, *_: Shape, axis_name: Any, **__: Any) -> RooflineResult:
    return _reduced_ring(ctx, axis_name)


@_rule("psum")
def _psum(ctx: Context, *_: Shape, axes: Any, **__: Any) -> RooflineResult:
    """Parts are reduced and scattered, then gathered."""
    return 2 * _reduced_ring(ctx, axes)


@_rule("pmin", "pmax")
def _extreme(ctx: Context, *operands: Shape, axes: Any, **_: Any) -> RooflineResult:
    """A number an operand goes around."""
    return _ring(ctx, axes, sum(x.dtype.itemsize for x in operands))


@_rule("all_to_all")
def _all_to_all(ctx: Context, *_: Shape, axis_name: Any, **__: Any) -> RooflineResult:
    """Half of everything crosses the middle of the mesh, over as many links as there are, twice those of a ring."""
    axes = _named(axis_name)
    sizes = _sizes(ctx, axes)
    if math.prod(sizes) == 1:
        return _along(axes, 0, 0)
    links = min(sizes) ** (len(axes) - 1) * (2 if min(sizes) > 2 else 1)
    everything = Shape.total_bytes(ctx.avals_in) * math.prod(sizes)
    return _along(axes, everything / 2 / links, sum(n / 2 for n in sizes))


@_rule("ppermute")
def _ppermute(ctx: Context, *_: Shape, axis_name: Any, perm: Any, **__: Any) -> RooflineResult:
    """Parts go the shorter way around along each axis; links carry what goes over them in either direction."""
    axes = _named(axis_name)
    sizes = _sizes(ctx, axes)
    if math.prod(sizes) == 1:
        return _along(axes, 0, 0)
    over: Counter[tuple[tuple[int, ...], ...]] = Counter()
    hops = 0
    for source, target in perm:
        begin, end = (tuple(int(i) for i in np.unravel_index(at, sizes)) for at in (source, target))
        distance = 0
        for i, n in enumerate(sizes):
            ahead = (end[i] - begin[i]) % n
            way, steps = (1, ahead) if 2 * ahead <= n else (-1, n - ahead)
            places = [(*begin[:i], (begin[i] + way * s) % n, *begin[i + 1 :]) for s in range(steps + 1)]
            over.update(tuple(sorted(link)) for link in itertools.pairwise(places))
            distance += steps
        hops = max(hops, distance)
    return _along(axes, Shape.total_bytes(ctx.avals_in) * max(over.values(), default=0), hops)
