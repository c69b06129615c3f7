"""Gathers, scatters, dynamic slices and updates at indices, in range and beyond."""

import math

from tests.fuzz.program import Tolerance
from tests.fuzz.values import broadcasts_to

T = Tolerance


def take(g, pool, v, at):
    mode = g.rng.choice(["clip", "fill", "wrap"])
    return g.expression(g.rng.choice([f"{v}[{at.text}]", f"jnp.take({v}, {at.text}, axis=0, mode={mode!r})"]), T.EXACT)


def along_axis(g, pool, v, at):
    if v.kind == "c":
        return None
    axis = g.rng.randrange(v.ndim)
    return g.expression(f"jnp.take_along_axis({v}, jnp.argsort({v}, axis={axis}), axis={axis})", T.EXACT)


def update(g, pool, v, at):
    """`.at[indices]` with every method; the values of `set` are the same at equal indices, as their order is open."""
    rng = g.rng
    method = rng.choice(["set", "set", "add", "add", "mul", "max", "min", "subtract", "apply", "divide", "power"])
    if (v.kind == "b" and method != "set") or (v.kind == "c" and method in ("max", "min")):
        return None
    if method == "apply":
        return g.expression(f"{v}.at[{at.text}].apply(jnp.negative)", T.SUM)
    if method in ("divide", "power"):
        return g.expression(f"{v}.at[{rng.randrange(v.shape[0])}].{method}(2)", T.ELEMENTWISE)
    number = "1" if v.kind in "iu" else g.literal(v)
    values = [w for w in pool if w.dtype == v.dtype and broadcasts_to(w.shape, at.shape + v.shape[1:])]
    if values and method != "set" and rng.random() < 0.5:
        number = rng.choice(values).name
    mode = rng.choice(["", "", ", mode='drop'", ", mode='clip'", ", unique_indices=False"])
    tolerance = T.EXACT if v.kind in "iub" or method in ("set", "max", "min") else T.SUM
    return g.expression(f"{v}.at[{at.text}].{method}({number}{mode})", tolerance)


def update_rows(g, pool, v, at):
    """A basic index of `.at`: a slice, or one row by an array."""
    rng, n = g.rng, v.shape[0]
    values = [w for w in pool if w.dtype == v.dtype and broadcasts_to(w.shape, v.shape[1:])]
    if v.ndim >= 2 and v.kind != "b" and values and rng.random() < 0.5:
        method = rng.choice(["set", "add"] if v.kind == "c" else ["set", "add", "max"])
        index, number = rng.randrange(n), rng.choice(values)
    else:
        low, high = sorted((rng.randrange(n + 1), rng.randrange(n + 1)))
        step = rng.choice([1, 1, 2, -1])
        index = f"{low}:{high}:{step}" if step > 0 else f"{high}:{low}:{step}"
        method = rng.choice(["set", "set", "multiply", "add"]) if v.kind != "b" else "set"
        number = "1" if v.kind in "iub" else "0.25"
    return g.expression(f"{v}.at[{index}].{method}({number})", T.ELEMENTWISE if v.kind == "c" else T.EXACT)


def dynamic(g, pool, v, at):
    rng = g.rng
    start = g.pick(pool, lambda w: w.kind in "iu" and w.shape == ()) if rng.random() < 0.5 else None
    starts = [rng.randrange(-1, d + 2) for d in v.shape]
    if start is not None:
        starts[rng.randrange(v.ndim)] = start.name
    starts = f"[{', '.join(map(str, starts))}]"
    smaller = [w for w in pool if w.dtype == v.dtype and w.ndim == v.ndim and all(map(int.__le__, w.shape, v.shape))]
    texts = [f"lax.dynamic_slice({v}, {starts}, {[rng.randrange(d + 1) for d in v.shape]})"]
    texts.append(f"lax.dynamic_update_slice({v}, {rng.choice(smaller)}, {starts})")
    if v.shape[0]:
        first = start or rng.randrange(-2, v.shape[0] + 2)
        texts.append(f"lax.dynamic_slice_in_dim({v}, {first}, {rng.randrange(1, v.shape[0] + 1)}, axis=0)")
    return g.expression(rng.choice(texts), T.EXACT)


def of_two_axes(g, pool, v, at):
    rng = g.rng
    if v.ndim < 2 or 0 in v.shape:
        return None
    m = rng.randrange(1, 9)
    rows = f"jnp.array({[rng.randrange(-v.shape[0], v.shape[0]) for _ in range(m)]})"
    columns = f"jnp.array({[rng.randrange(-v.shape[1], v.shape[1]) for _ in range(m)]})"
    if v.kind != "b" and rng.random() < 0.5:
        number = "2" if v.kind in "iu" else "0.5"
        text = f"{v}.at[{rows}, {columns}].{rng.choice(['add', 'mul'])}({number})"
        return g.expression(text, T.SUM if v.kind in "fc" else T.EXACT)
    texts = [
        f"{v}[{rows}, {columns}]",
        f"{v}[:, {columns}]",
        f"{v}[{rows}[:, None], {columns}[:3]]",
        f"{v}[0, {columns}]",
    ]
    return g.expression(rng.choice(texts), T.EXACT)


def draw_windows(rng, v):
    """Windows of an operand: their sizes, indexed axes, dropped axes, batch shape and indices."""
    sizes = [rng.randrange(1, min(d, 6) + 1) for d in v.shape]
    indexed = rng.sample(range(v.ndim), rng.randrange(0, v.ndim + 1))
    dropped = sorted(i for i in range(v.ndim) if sizes[i] == 1 and rng.random() < 0.5)
    batch = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(0, 3)))
    low = -2 if rng.random() < 0.3 else 0
    high = [max(low + 1, v.shape[d] - sizes[d] + (3 if low else 1)) for d in indexed]
    flat = [[rng.randrange(low, end) for end in high] for _ in range(math.prod(batch))]
    indices = f"np.array({flat}, np.int32).reshape({(*batch, len(indexed))})"
    return sizes, indexed, dropped, batch, indices


def gather(g, pool, v, at):
    if 0 in v.shape:
        return None
    sizes, indexed, dropped, batch, indices = draw_windows(g.rng, v)
    kept = v.ndim - len(dropped)
    offsets = tuple(sorted(g.rng.sample(range(len(batch) + kept), kept)))
    if math.prod(batch) * math.prod(sizes) > g.limit:
        return None
    numbers = (
        f"lax.GatherDimensionNumbers(offset_dims={offsets}, collapsed_slice_dims={tuple(dropped)}, "
        f"start_index_map={tuple(indexed)})"
    )
    mode = g.rng.choice(["clip", "fill"])
    return g.expression(f"lax.gather({v}, {indices}, {numbers}, slice_sizes={tuple(sizes)}, mode={mode!r})", T.EXACT)


def scatter(g, pool, v, at):
    if 0 in v.shape or v.kind not in "fiu":
        return None
    rng = g.rng
    sizes, indexed, dropped, batch, indices = draw_windows(rng, v)
    kept = v.ndim - len(dropped)
    windows = tuple(sorted(rng.sample(range(len(batch) + kept), kept)))
    window_sizes, batch_sizes = iter([s for i, s in enumerate(sizes) if i not in dropped]), iter(batch)
    shape = tuple(next(window_sizes if i in windows else batch_sizes) for i in range(len(batch) + kept))
    updates = f"(jnp.arange({math.prod(shape)}).reshape({shape}) % 7).astype({v}.dtype)"
    numbers = (
        f"lax.ScatterDimensionNumbers(update_window_dims={windows}, inserted_window_dims={tuple(dropped)}, "
        f"scatter_dims_to_operand_dims={tuple(indexed)})"
    )
    name = rng.choice(["scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub"])
    mode = rng.choice(["clip", "drop", "fill"])
    text = f"lax.{name}({v}, {indices}, {updates}, {numbers}, mode={mode!r})"
    return g.expression(text, T.SUM if v.kind == "f" else T.EXACT)


WAYS = {take: 3, along_axis: 1, update: 4, update_rows: 2, dynamic: 3, of_two_axes: 2, gather: 2, scatter: 2}


class Indices:
    """An integer array for the first axis: a literal or a variable, in range or beyond."""

    def __init__(self, g, pool, v):
        n, rng = v.shape[0], g.rng
        row = v.size // n if n else 1
        count = rng.randrange(1, 9)
        if row * count > g.limit:
            count = 1
        drawn = g.pick(pool, lambda w: w.kind in "iu" and w.size * max(row, 1) <= g.limit and w.ndim <= 2)
        if drawn is not None and rng.random() < 0.4:
            self.text, self.shape = drawn.name, drawn.shape
            return
        beyond = 2 if rng.random() < 0.5 else 0
        # JAX counts an axis in the dtype of its index
        dtype = rng.choice(["int32", "int32", "int32", "int8" if n < 120 else "int32", "uint32"])
        low = 0 if dtype == "uint32" else -n - beyond
        numbers = [rng.randrange(low, n + max(beyond, 1)) for _ in range(count)]
        self.text, self.shape = f"jnp.array({numbers}, jnp.{dtype})", (count,)


def index(g, pool):
    v = g.pick(pool, lambda v: v.ndim > 0)
    if v is None:
        return None
    way = g.rng.choices(list(WAYS), list(WAYS.values()))[0]
    if v.shape[0] == 0 and way in (take, update, update_rows):
        return None
    return way(g, pool, v, Indices(g, pool, v))
