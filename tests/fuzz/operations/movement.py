"""Operations that move elements: shapes, slices, pads, concatenations, and those with several results."""

import math

from tests.fuzz.program import Step, Tolerance

T = Tolerance
PAD_MODES = ["constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum", "mean"]


def exact(g, text):
    return g.expression(text, T.EXACT)


def flatten(g, pool, v, axis):
    return exact(g, f"{v}.reshape(-1)")


def regroup(g, pool, v, axis):
    """A reshape that splits an axis or joins two."""
    shape, n = list(v.shape), v.shape[axis]
    factors = [d for d in range(2, min(n, 70)) if n % d == 0]
    if factors:
        first = g.rng.choice(factors)
        shape[axis : axis + 1] = [first, n // first]
    elif len(shape) > 1:
        at = min(axis, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    return exact(g, f"{v}.reshape({tuple(shape)})")


def transpose(g, pool, v, axis):
    return exact(g, f"jnp.transpose({v}, {tuple(g.rng.sample(range(v.ndim), v.ndim))})")


def flip_or_roll(g, pool, v, axis):
    axis -= v.ndim * (g.rng.random() < 0.3)
    texts = [f"jnp.flip({v}, {axis})", f"jnp.roll({v}, {g.rng.randrange(-5, 6)}, {axis})"]
    return exact(g, g.rng.choice(texts))


def new_axis(g, pool, v, axis):
    return exact(g, f"jnp.expand_dims({v}, {axis})")


def squeeze(g, pool, v, axis):
    ones = [i for i, d in enumerate(v.shape) if d == 1]
    if ones:
        return exact(g, f"jnp.squeeze({v}, {g.rng.choice(ones)})")
    return exact(g, f"jnp.swapaxes({v}, {axis}, {g.rng.randrange(v.ndim)})")


def broadcast(g, pool, v, axis):
    if v.size * 3 > g.limit:
        return None
    shape = tuple(g.rng.choice([2, 3]) if d == 1 else d for d in v.shape)
    if g.rng.random() < 0.5:
        shape = (g.rng.choice([1, 2]), *shape)
    return exact(g, f"jnp.broadcast_to({v}, {shape})")


def repeat(g, pool, v, axis):
    if v.size * 4 > g.limit:
        return None
    times = tuple(g.rng.choice([1, 2]) for _ in range(v.ndim))
    texts = [f"jnp.tile({v}, {times})", f"jnp.repeat({v}, {g.rng.randrange(4)}, axis={axis})"]
    return exact(g, g.rng.choice(texts))


def concatenate(g, pool, v, axis):
    if v.size * 4 > g.limit:
        return None

    def fits(w):
        rest = zip(range(v.ndim), w.shape, v.shape)
        return w.dtype == v.dtype and w.ndim == v.ndim and all(a == b for i, a, b in rest if i != axis)

    others = [g.rng.choice([w for w in pool if fits(w)]) for _ in range(g.rng.randrange(1, 4))]
    return exact(g, f"jnp.concatenate([{', '.join(map(str, [v, *others]))}], axis={axis})")


def stack(g, pool, v, axis):
    if v.size * 3 > g.limit:
        return None
    return exact(g, f"jnp.stack([{v}, {g.alike(pool, v)}], axis={g.rng.randrange(v.ndim + 1)})")


def lax_pad(g, pool, v, axis):
    draw = g.rng.randrange
    config = [(draw(-2, 4), draw(-2, 4), g.rng.choice([0, 0, 0, 1, 2])) for _ in range(v.ndim)]
    extents = [max(0, d + max(0, d - 1) * c + a + b) for d, (a, b, c) in zip(v.shape, config)]
    if math.prod(extents) > g.limit:
        return None
    return exact(g, f"lax.pad({v}, jnp.array(1, dtype={v}.dtype), {config})")


def numpy_pad(g, pool, v, axis):
    mode = g.rng.choice(PAD_MODES)
    means = mode in ("linear_ramp", "mean")
    if v.size > 5000 or (v.kind == "b" and means) or (v.kind == "c" and mode == "maximum"):
        return None
    width = [(g.rng.randrange(3), g.rng.randrange(3)) for _ in range(v.ndim)]
    # whole numbers made of means in floats: rounding decides on which side of one they are
    tolerance = (T.UNCOMPARED if v.kind in "iu" else T.LOOSE) if means else T.EXACT
    return g.expression(f"jnp.pad({v}, {width}, mode={mode!r})", tolerance)


def index_of_axis(rng, extent):
    """One entry of a basic index."""
    roll = rng.random()
    if roll < 0.35:
        return ":"
    if roll < 0.5 and extent:
        return str(rng.randrange(-extent, extent))
    if roll < 0.6:
        return "::-1"
    if roll < 0.75:
        return f"{rng.randrange(0, extent + 1)}:"
    if roll < 0.85:
        return f":{rng.randrange(-1, extent + 2)}"
    step = rng.choice([1, 2, 3, -1, -2, -3])
    low, high = sorted((rng.randrange(0, extent + 1), rng.randrange(0, extent + 1)))
    return f"{low}:{high}:{step}" if step > 0 else f"{high}:{low}:{step}"


def basic_index(g, pool, v, axis):
    index = [index_of_axis(g.rng, d) for d in v.shape]
    if g.rng.random() < 0.2:
        index.insert(g.rng.randrange(len(index) + 1), "None")
    if g.rng.random() < 0.1:
        index = [*index[: g.rng.randrange(len(index) + 1)], "..."]
    return exact(g, f"{v}[{', '.join(index)}]")


def lax_slice(g, pool, v, axis):
    starts = [g.rng.randrange(d + 1) for d in v.shape]
    limits = [g.rng.randrange(s, d + 1) for s, d in zip(starts, v.shape)]
    return exact(g, f"lax.slice({v}, {starts}, {limits}, {[g.rng.choice([1, 1, 2, 3]) for _ in starts]})")


def matrix_part(g, pool, v, axis):
    """Triangles, diagonals and quarter turns."""
    if v.ndim == 1:
        return exact(g, f"jnp.diag({v}, {g.rng.randrange(-2, 3)})") if v.size <= 70 else None
    last = f"{v.ndim - 2}, {v.ndim - 1}"
    texts = [
        f"jnp.{g.rng.choice(['tril', 'triu'])}({v}, {g.rng.randrange(-2, 3)})",
        f"jnp.diagonal({v}, {g.rng.randrange(-1, 2)}, {last})", f"jnp.rot90({v}, {g.rng.randrange(4)}, ({last}))",
    ]  # fmt: skip
    return exact(g, g.rng.choice(texts))


MOVES = {
    flatten: 1, regroup: 1, transpose: 2, flip_or_roll: 2, new_axis: 1, squeeze: 1, broadcast: 1, repeat: 2,
    concatenate: 2, stack: 1, lax_pad: 1, numpy_pad: 1, basic_index: 3, lax_slice: 1, matrix_part: 4,
}  # fmt: skip


def move(g, pool):
    from tests.fuzz.values import draw_shape

    v = g.pick(pool, lambda v: v.ndim > 0)
    if v is None:
        return exact(g, f"jnp.broadcast_to({g.pick(pool)}, {draw_shape(g.rng, 'tiny')})")
    move_of = g.rng.choices(list(MOVES), list(MOVES.values()))[0]
    return move_of(g, pool, v, g.rng.randrange(v.ndim))


def several(g, pool):
    """Operations of two results."""
    rng, v = g.rng, g.pick(pool, lambda v: v.ndim > 0)
    if v is None:
        return None
    axis, which = rng.randrange(v.ndim), rng.randrange(5)
    a, b = g.fresh(), g.fresh()
    if which == 0 and v.shape[axis] > 1:
        at = rng.choice([v.shape[axis] // 2, rng.randrange(v.shape[axis] + 1)])
        return Step(f"{a}, {b} = jnp.split({v}, [{at}], axis={axis})", [a, b], T.EXACT)
    if which == 1 and v.kind != "c":
        w = g.pick(pool, lambda w: w.shape == v.shape and w.kind != "c")
        keys = f"dimension={axis}, num_keys={rng.choice([1, 2])}, is_stable=True"
        return Step(f"{a}, {b} = lax.sort(({v}, {w}), {keys})", [a, b], T.EXACT)
    if which == 2 and v.kind in "fiu" and v.shape[-1] > 0:
        return Step(f"{a}, {b} = lax.top_k({v}, {rng.randrange(1, v.shape[-1] + 1)})", [a, b], T.EXACT)
    if which == 3 and v.kind == "f":
        return Step(f"{a}, {b} = jnp.divmod({v}, {g.literal(v)})", [a, b], T.ELEMENTWISE)
    if which == 4 and v.kind == "f" and v.shape[axis] > 0 and not g.awkward:
        return argument_reduction(g.alike(pool, v), v, axis, a, b)
    return None


def argument_reduction(w, v, axis, a, b):
    """A reduction of two operands: the largest and what stands beside it."""
    code = (
        f"def f{a}(x, y):\n    (a0, a1), (b0, b1) = x, y\n    k = a0 >= b0\n"
        f"    return jnp.where(k, a0, b0), jnp.where(k, a1, b1)\n"
        f"{a}, {b} = lax.reduce(({v}, {w}), (jnp.array(-np.inf, {v}.dtype), jnp.zeros((), {v}.dtype)), f{a}, ({axis},))"
    )
    return Step(code, [a, b], T.EXACT)
